// Joining tensors: cat and stack.
#include "kernels/concatenate.h"

#include "kernels/copy.h"
#include "ops/common/batching.h"
#include "ops/common/promotion.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

// A one-dimensional tensor without elements joins anything: an old habit that models rely on.
bool is_skipped(const Tensor& t) {
  return t.dim() == 1 && !t.sym_sizes()[0].is_symbolic() && t.sym_sizes()[0].value() == 0;
}

const Tensor& first_counted(TensorList tensors) {
  for (const Tensor& t : tensors)
    if (!is_skipped(t)) return t;
  return tensors[0];
}

TensorSpec cat_spec(TensorList tensors, int64_t dim) {
  check<ValueError>(!tensors.empty(), "torch.cat(): expected a non-empty list of Tensors");
  ResultType type;
  MemoryFormat format = tensors[0].suggested_format();
  std::vector<const Tensor*> pointers;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    check(t.dim() > 0, "zero-dimensional tensor (at position ", i, ") cannot be concatenated");
    type.add(t);
    pointers.push_back(&t);
    if (t.suggested_format() != format) format = MemoryFormat::Contiguous;
  }
  const Tensor& model = first_counted(tensors);
  int64_t at = wrap_dim(dim, model.dim());
  SymShape shape(model.sym_sizes());
  SymInt length = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (is_skipped(t)) continue;
    check(t.dim() == model.dim(), "Tensors must have same number of dimensions: got ", model.dim(), " and ", t.dim());
    for (int64_t d = 0; d < t.dim(); ++d)
      if (d != at && t.sym_sizes()[d] != shape[d])
        fail("Sizes of tensors must match except in dimension ", at, ". Expected size ", shape[d], " but got size ",
             t.sym_sizes()[d], " for tensor number ", i, " in the list.");
    length += t.sym_sizes()[at];
  }
  if (!is_skipped(model)) shape[at] = length;
  if (model.dim() != 4 && model.dim() != 5) format = MemoryFormat::Contiguous;
  return TensorSpec(shape, strides_for(shape, format), type.get(), common_device(pointers));
}

UMBRA_OPERATOR("cat(Tensor[] tensors, int dim=0) -> Tensor")
    .out("cat.out")
    .meta(cat_spec)
    .cpu([](const Tensor& out, TensorList tensors, int64_t dim) {
      std::vector<Tensor> cast;
      for (const Tensor& t : tensors) cast.push_back(kernels::cast(t, out.dtype()));
      kernels::cat(out, cast, wrap_dim(dim, out.dim()));
    })
    .gradient("tensors", {"grad", "tensors", "dim"},
              [](const Tensor& grad, TensorList tensors, int64_t dim) {
                std::vector<Tensor> parts;
                SymInt start = 0;
                int64_t at = wrap_dim(dim, grad.dim());
                for (const Tensor& t : tensors) {
                  if (is_skipped(t)) {
                    parts.push_back(zeros_like(t));
                    continue;
                  }
                  SymInt length = t.sym_sizes()[at];
                  parts.push_back(grad.narrow(at, start, length));
                  start += length;
                }
                return parts;
              })
    .linear()
    .tags({Tag::Core, Tag::CastsToOut})
    .use(BatchInFront{.dims = {"dim"}});

UMBRA_OPERATOR("stack(Tensor[] tensors, int dim=0) -> Tensor")
    .all_backends([](TensorList tensors, int64_t dim) {
      check(!tensors.empty(), "stack expects a non-empty TensorList");
      int64_t at = wrap_dim(dim, tensors[0].dim() + 1);
      for (size_t i = 1; i < tensors.size(); ++i)
        if (!(tensors[i].sym_sizes() == tensors[0].sym_sizes()))
          fail("stack expects each tensor to be equal size, but got ", to_string(tensors[0].sym_sizes()),
               " at entry 0 and ", to_string(tensors[i].sym_sizes()), " at entry ", i);
      if (at < tensors[0].dim()) {
        // Joined along the dimension and then divided: memory formats stay, as they do in PyTorch.
        SymShape shape(tensors[0].sym_sizes());
        shape.insert(static_cast<size_t>(at), SymInt(static_cast<int64_t>(tensors.size())));
        return cat(tensors, at).view(shape);
      }
      std::vector<Tensor> parts;
      for (const Tensor& t : tensors) parts.push_back(t.unsqueeze(at));
      return cat(parts, at);
    })
    .gradient("tensors", {"grad", "dim"}, [](const Tensor& grad, int64_t dim) { return grad.unbind(dim); })
    .linear()
    .batch([](const std::vector<Batched>& tensors, int64_t dim) {
      std::vector<Tensor> all;
      for (const Batched& t : tensors) all.push_back(batch_all(t));
      check(!all.empty(), "stack expects a non-empty TensorList");
      return Batched(stack(all, wrap_dim(dim, all[0].dim()) + 1), 0);
    });

}  // namespace
}  // namespace umbra::ops
