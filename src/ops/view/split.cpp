// A tensor in parts: split, chunk, unbind, and the forms whose parts do not count as views of one tensor.
#include "ops/common/batching.h"
#include "ops/common/list_out.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "ops/sparse/structure.h"
#include "ops/view/select.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

[[noreturn]] void fail_split(const Tensor& self, SymIntArrayRef sizes, int64_t dim) {
  fail("split_with_sizes expects split_sizes to sum exactly to ", self.sym_sizes()[dim],
       " (input tensor's size at dimension ", dim, "), but got split_sizes=", sizes);
}

std::vector<Tensor> split_sizes(const Tensor& self, SymIntArrayRef sizes, int64_t dim) {
  check_held(sizes);
  check(self.dim() > 0, "split expects at least a 1-dimensional tensor");
  int64_t at = wrap_dim(dim, self.dim());
  SymInt start = 0;
  std::vector<Tensor> parts;
  for (SymInt length : sizes) {
    check(expect_at_most(0, length),
          "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=", sizes);
    if (!length.is_symbolic() && !self.is_symbolic() && length > self.sym_sizes()[at] - start)
      fail_split(self, sizes, at);
    SymShape shape(self.sym_sizes());
    shape[at] = length;
    parts.push_back(
        alias_tensor(self, shape, self.sym_strides(), self.sym_storage_offset() + start * self.sym_strides()[at]));
    start += length;
  }
  if (!expect_equal(start, self.sym_sizes()[at])) fail_split(self, sizes, at);
  return parts;
}

void check_split(const Tensor& self, SymInt split) {
  check(self.dim() > 0, "split expects at least a 1-dimensional tensor");
  check(split >= 0, "split expects split_size be non-negative, but got split_size=", split);
}

SymShape even_parts(SymInt size, SymInt split) {
  check(split > 0 || size == 0, "split_size can only be 0 if dimension size is 0, but got dimension size of ", size);
  if (split == 0) return SymShape{0};
  int64_t count = std::max<int64_t>(((size + split - 1) / split).guard_int(), 1);
  SymShape sizes(count, split);
  sizes[count - 1] = size - split * (count - 1);
  return sizes;
}

// Joins the gradients of parts; absent ones are zeros of their part's shape.
Tensor join_parts(TensorList grads, SymIntArrayRef part_sizes, int64_t dim, SymIntArrayRef sizes) {
  Tensor any;
  for (const Tensor& g : grads)
    if (g.defined()) any = g;
  int64_t at = wrap_dim(dim, static_cast<int64_t>(sizes.size()));
  std::vector<Tensor> whole;
  for (size_t i = 0; i < grads.size(); ++i) {
    SymShape shape(sizes);
    shape[at] = part_sizes[i];
    whole.push_back(grads[i].defined() ? grads[i] : any.new_zeros(shape));
  }
  return cat(whole, at);
}

UMBRA_OPERATOR("split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]")
    .view([](const Tensor& self, SymInt split, int64_t dim) {
      check_split(self, split);
      return split_sizes(self, even_parts(self.sym_size(dim), split), dim);
    })
    .view_inverse([](const Tensor& base, const Tensor& written, int64_t which, SymInt split, int64_t dim) {
      SymInt start = split * which;
      return slice_scatter(base, written, dim, start, start + written.sym_size(dim), 1);
    })
    .gradient("self", {"grad", "split_size", "dim", "self.sym_sizes"},
              [](std::vector<Tensor> grads, SymInt split, int64_t dim, SymIntArrayRef sizes) {
                int64_t at = wrap_dim(dim, static_cast<int64_t>(sizes.size()));
                return join_parts(grads, even_parts(sizes[at], split), dim, sizes);
              })
    .linear()
    .use(BatchInFront{.dims = {"dim"}});

UMBRA_OPERATOR("split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]")
    .view(split_sizes)
    .view_inverse([](const Tensor& base, const Tensor& written, int64_t which, std::vector<SymInt> sizes, int64_t dim) {
      SymInt start = 0;
      for (int64_t i = 0; i < which; ++i) start += sizes[i];
      return slice_scatter(base, written, dim, start, start + sizes[which], 1);
    })
    .gradient("self", {"grad", "split_sizes", "dim", "self.sym_sizes"},
              [](std::vector<Tensor> grads, std::vector<SymInt> parts, int64_t dim, SymIntArrayRef sizes) {
                return join_parts(grads, parts, dim, sizes);
              })
    .linear()
    .tags({Tag::Core})
    .use(BatchInFront{.dims = {"dim"}});

// The same memory, but no views: whoever calls these promises that no write to one part is seen in another. Each counts
// its own changes, so that one may be written while autograd keeps the others.
std::vector<Tensor> parts_apart(std::vector<Tensor> parts) {
  for (const Tensor& part : parts) part.impl()->set_version_counter(make_counted<VersionCounter>());
  return parts;
}

UMBRA_OPERATOR("unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]")
    .all_backends([](const Tensor& self, SymInt split, int64_t dim) {
      check_split(self, split);
      return parts_apart(split_sizes(self, even_parts(self.sym_size(dim), split), dim));
    })
    .gradient("self", {"grad", "split_size", "dim", "self.sym_sizes"},
              [](std::vector<Tensor> grads, SymInt split, int64_t dim, SymIntArrayRef sizes) {
                int64_t at = wrap_dim(dim, static_cast<int64_t>(sizes.size()));
                return join_parts(grads, even_parts(sizes[at], split), dim, sizes);
              })
    .linear()
    .use(BatchInFront{.dims = {"dim"}})
    .use(ListOut{"unsafe_split.Tensor_out"});
UMBRA_OPERATOR("unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]")
    .all_backends([](const Tensor& self, std::vector<SymInt> sizes, int64_t dim) {
      return parts_apart(split_sizes(self, sizes, dim));
    })
    .gradient("self", {"grad", "split_sizes", "dim", "self.sym_sizes"},
              [](std::vector<Tensor> grads, std::vector<SymInt> parts, int64_t dim, SymIntArrayRef sizes) {
                return join_parts(grads, parts, dim, sizes);
              })
    .linear()
    .use(BatchInFront{.dims = {"dim"}})
    .use(ListOut{"unsafe_split_with_sizes.out"});

UMBRA_OPERATOR("split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]")
    .composite([](const Tensor& self, SymIntArrayRef sizes, int64_t dim) {
      return split_with_sizes(self, sizes, dim);
    });

/// The length of all parts but the last.
SymInt chunk_length(const Tensor& self, int64_t chunks, int64_t dim) {
  check(self.dim() > 0, "chunk expects at least a 1-dimensional tensor");
  check(chunks > 0, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  SymInt size = self.sym_size(dim);
  if (size.is_symbolic()) return (size + chunks - 1) / chunks;  // as graphs of PyTorch's show it
  return size.same(0) ? size : (size - 1) / chunks + 1;
}

UMBRA_OPERATOR("chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]")
    .composite([](const Tensor& self, int64_t chunks, int64_t dim) {
      SymInt split = chunk_length(self, chunks, dim);
      if (split == 0) return split_with_sizes(self, SymShape(chunks, split), dim);
      return umbra::split(self, split, dim);
    });
UMBRA_OPERATOR("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]")
    .composite([](const Tensor& self, int64_t chunks, int64_t dim) {
      SymInt split = chunk_length(self, chunks, dim);
      if (split == 0) return unsafe_split_with_sizes(self, SymShape(chunks, split), dim);
      return unsafe_split(self, split, dim);
    })
    .tags({Tag::MaybeAliasingOrMutating});

UMBRA_OPERATOR("unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]")
    .view([](const Tensor& self, int64_t dim) {
      int64_t at = wrap_dim(dim, self.dim(), false);
      std::vector<Tensor> parts;
      for (int64_t i = 0, n = self.sym_sizes()[at].guard_int(); i < n; ++i) parts.push_back(select_view(self, at, i));
      return parts;
    })
    .view_inverse([](const Tensor& base, const Tensor& written, int64_t which, int64_t dim) {
      return select_scatter(base, written, dim, which);
    })
    .sparse([](const Tensor& self, int64_t dim) {
      int64_t at = wrap_dim(dim, self.dim(), false);
      std::vector<Tensor> parts;
      for (int64_t i = 0; i < self.size(at); ++i) parts.push_back(sparse::select(self, at, i));
      return parts;
    })
    .gradient("self", {"grad", "dim", "self.sym_sizes"},
              [](std::vector<Tensor> grads, int64_t dim, SymIntArrayRef sizes) {
                Tensor any;
                for (const Tensor& g : grads)
                  if (g.defined()) any = g;
                for (Tensor& g : grads)
                  if (!g.defined()) g = zeros_like(any);
                (void)sizes;
                return stack(grads, dim);
              })
    .linear()
    .use(BatchInFront{.dims = {"dim"}});

}  // namespace
}  // namespace umbra::ops
