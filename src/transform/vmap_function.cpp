// vmap over lists of tensors.
#include "ops/common/batching.h"
#include "umbra/generated/functions.h"
#include "umbra/transform/transform.h"
#include "umbra/transform/vmap.h"

namespace umbra::transform {

namespace {

SymInt mapped_size(const std::vector<Tensor>& inputs, const Dims& dims) {
  std::optional<SymInt> size;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!dims[i]) continue;
    SymInt here = inputs[i].sym_size(*dims[i]);
    if (size && !(here == *size))
      fail<ValueError>("vmap: Expected all tensors to have the same size in the mapped dimension, got sizes ",
                       to_string(SymIntArrayRef({*size, here})), " for the mapped dimension");
    size = here;
  }
  if (!size) fail<ValueError>("vmap: Expected at least one Tensor to vmap over");
  return *size;
}

}  // namespace

Tensor VmapLevel::result(const Tensor& tensor, std::optional<int64_t> out_dim) const {
  Batched b = value(tensor);
  if (!out_dim) {
    if (b.is_batched()) fail<ValueError>("vmap: the function can not return a BatchedTensor when out_dim is None");
    return tensor;
  }
  int64_t at = wrap_dim(*out_dim, b.rank() + 1);
  if (b.is_batched()) return b.dim == at ? b.value : b.value.movedim(b.dim, at);
  SymShape sizes(tensor.sym_sizes());
  sizes.insert(static_cast<size_t>(at), size_);
  return tensor.unsqueeze(at).expand(sizes);
}

std::vector<Tensor> vmap(const TensorFunction& function, const std::vector<Tensor>& inputs, const Dims& in_dims,
                         const VmapOptions& options) {
  Dims dims = in_dims.empty() ? Dims(inputs.size(), 0) : in_dims;
  if (dims.size() != inputs.size())
    fail<ValueError>("vmap: in_dims has ", dims.size(), " entries for ", inputs.size(), " inputs");
  auto level = make_counted<VmapLevel>(mapped_size(inputs, dims), options.randomness);
  std::vector<Tensor> outputs;
  {
    EnterLevel scope(level);
    std::vector<Tensor> arguments = inputs;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (dims[i]) arguments[i] = level->wrap(inputs[i], *dims[i]);
    outputs = function(arguments);
  }
  check<ValueError>(options.out_dims.empty() || options.out_dims.size() == outputs.size(), "vmap: out_dims has ",
                    options.out_dims.size(), " entries for ", outputs.size(), " results");
  for (size_t i = 0; i < outputs.size(); ++i)
    outputs[i] = level->result(outputs[i], options.out_dims.empty() ? std::optional<int64_t>(0) : options.out_dims[i]);
  return outputs;
}

}  // namespace umbra::transform
