// Reading and writing by index: index and index_put.
#include <limits>

#include "capture/core/core.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"

namespace umbra::core_table {
namespace {

/// None for the dimensions before, then the index.
std::vector<Tensor> at_dim(const Tensor& self, int64_t dim, const Tensor& index) {
  int64_t at = dim < 0 ? dim + std::max<int64_t>(self.dim(), 1) : dim;
  std::vector<Tensor> indices(static_cast<size_t>(at) + 1);
  indices.back() = index;
  return indices;
}

Tensor index_added(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  Tensor values = alpha.equals(1) ? source : source * alpha;
  return index_put(self, at_dim(self, dim, index), values, true);
}

/// One number for all elements at the indices.
Tensor index_filled(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  TensorOptions options{.dtype = self.dtype(), .layout = Layout::Strided, .device = self.device(), .pin_memory = false};
  SymShape sizes(self.sym_sizes());
  sizes[static_cast<size_t>(dim < 0 ? dim + self.dim() : dim)] = index.sym_numel();
  return index_put(self, at_dim(self, dim, index), scalar_tensor(value, options).expand(sizes));
}

/// Positions along one edge of a padded tensor, as they are read from the unpadded one.
using Positions = Tensor (*)(const Tensor& steps, SymInt last);
Tensor reflected(const Tensor& steps, SymInt last) { return Scalar(last) - (Scalar(last) - steps.abs()).abs(); }
Tensor repeated(const Tensor& steps, SymInt last) { return steps.clamp(Scalar(0), Scalar(last)); }

Tensor padded(const Tensor& self, SymIntArrayRef pad, Positions positions) {
  size_t rank = pad.size() / 2;
  std::vector<Tensor> indices(static_cast<size_t>(self.dim()));
  TensorOptions options{.layout = Layout::Strided, .device = self.device(), .pin_memory = false};
  Tensor out = self;
  for (size_t i = 0; i < rank; ++i) {
    int64_t dim = self.dim() - static_cast<int64_t>(rank - i);
    SymInt left = pad[2 * (rank - 1 - i)], right = pad[2 * (rank - 1 - i) + 1], n = self.sym_size(dim);
    Tensor steps = arange(Scalar(SymInt(0) - left), Scalar(n + right), 1, options);
    std::vector<Tensor> here(static_cast<size_t>(dim) + 1);
    here.back() = positions(steps, n - 1);
    out = index(out, here);
  }
  return out;
}
template <Positions kPositions> Tensor padded_by(const Tensor& self, SymIntArrayRef pad) {
  return padded(self, pad, kPositions);
}

/// The place in a dimension of windows that slide over it: one row for each element of the kernel.
Tensor window_places(SymInt size, int64_t kernel, int64_t dilation, int64_t padding, int64_t stride, Device device) {
  SymInt blocks = size + 2 * padding - dilation * (kernel - 1);
  TensorOptions options{.dtype = DType::Int64, .device = device, .pin_memory = false};
  Tensor starts = arange(0, Scalar(blocks), stride, options).unsqueeze(0);
  Tensor offsets = arange(0, kernel * dilation, dilation, options).unsqueeze(-1);
  return starts.add(offsets);
}

using Ints = std::vector<int64_t>;

Tensor columns_of(const Tensor& self, const Ints& kernel, const Ints& dilation, const Ints& padding,
                  const Ints& stride) {
  bool batched = self.dim() == 4;
  Tensor input = batched ? self : self.unsqueeze(0);
  Tensor rows = window_places(input.sym_size(2), kernel[0], dilation[0], padding[0], stride[0], input.device());
  Tensor columns = window_places(input.sym_size(3), kernel[1], dilation[1], padding[1], stride[1], input.device());
  Tensor wide = constant_pad_nd(input, IntArrayRef({padding[1], padding[1], padding[0], padding[0]}), 0.0);
  Tensor blocks = index(wide, std::vector<Tensor>{{}, {}, rows.unsqueeze(-1).unsqueeze(-1), columns});
  SymInt count = blocks.sym_size(3) * blocks.sym_size(5);
  Tensor out = blocks.permute(IntArrayRef({0, 1, 2, 4, 3, 5}))
                   .reshape({input.sym_size(0), input.sym_size(1) * kernel[0] * kernel[1], count});
  return batched ? out : out.squeeze(Ints{0});
}

Tensor image_of(const Tensor& self, SymIntArrayRef size, const Ints& kernel, const Ints& dilation, const Ints& padding,
                const Ints& stride) {
  bool batched = self.dim() == 3;
  Tensor input = batched ? self : self.unsqueeze(0);
  SymInt height = size[0] + 2 * padding[0], width = size[1] + 2 * padding[1];
  Tensor rows = window_places(size[0], kernel[0], dilation[0], padding[0], stride[0], input.device());
  Tensor columns = window_places(size[1], kernel[1], dilation[1], padding[1], stride[1], input.device());
  SymInt channels = input.sym_size(1) / (kernel[0] * kernel[1]);
  Tensor blocks =
      input.reshape({input.sym_size(0), channels, kernel[0], kernel[1], rows.sym_size(1), columns.sym_size(1)})
          .permute(IntArrayRef({0, 1, 2, 4, 3, 5}));
  Tensor out = input.new_zeros({input.sym_size(0), channels, height, width});
  out = index_put(out, std::vector<Tensor>{{}, {}, rows.unsqueeze(-1).unsqueeze(-1), columns}, blocks, true);
  out = constant_pad_nd(out, IntArrayRef({-padding[1], -padding[1], -padding[0], -padding[0]}));
  return batched ? out : out.squeeze(Ints{0});
}

}  // namespace

void add_indexing(DecompositionTable& table) {
  table.add("aten::index_add", index_added);
  table.add("aten::index_copy", [](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
    return index_put(self, at_dim(self, dim, index), source);
  });
  table.add("aten::index_fill.int_Scalar", index_filled);
  table.add("aten::take", [](const Tensor& self, const Tensor& places) {
    return index(self.view(IntArrayRef({-1})), std::vector<Tensor>{places});
  });
  table.add("aten::select_scatter", [](const Tensor& self, const Tensor& source, int64_t dim, SymInt position) {
    int64_t at = dim < 0 ? dim + self.dim() : dim;
    TensorOptions options{.layout = Layout::Strided, .device = self.device(), .pin_memory = false};
    std::vector<SymInt> shape(static_cast<size_t>(self.dim()), SymInt(1));
    shape[static_cast<size_t>(at)] = -1;
    Tensor places = arange(0, Scalar(self.sym_size(at)), 1, options).view(SymIntArrayRef(shape));
    Tensor chosen = places.eq(Scalar(position)), wide = source.unsqueeze(at).expand(self.sym_sizes());
    return where(chosen, wide, self);
  });
  table.add("aten::isin.Tensor_Tensor", [](const Tensor& elements, const Tensor& tests, bool, bool invert) {
    SymShape sizes(elements.sym_sizes());
    for (int64_t d = 0; d < tests.dim(); ++d) sizes.push_back(1);
    Ints last;
    for (int64_t d = 0; d < tests.dim(); ++d) last.push_back(-1 - d);
    Tensor found = elements.view(sizes).eq(tests).any(argument::Optional<argument::IntList>(last));
    return invert ? found.logical_not() : found;
  });
  for (const char* name : {"aten::reflection_pad1d", "aten::reflection_pad2d", "aten::reflection_pad3d"})
    table.add(name, padded_by<reflected>);
  for (const char* name : {"aten::replication_pad1d", "aten::replication_pad2d", "aten::replication_pad3d"})
    table.add(name, padded_by<repeated>);
  table.add("aten::im2col", columns_of);
  table.add("aten::col2im", image_of);
}

}  // namespace umbra::core_table
