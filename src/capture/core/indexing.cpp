// Reading and writing by index: index and index_put.
#include <algorithm>

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

/// A tensor without dimensions is indexed as its one element.
template <class F> Tensor as_a_row(const Tensor& self, F&& compute) {
  return self.dim() > 0 ? compute(self) : compute(self.unsqueeze(0)).squeeze(IntArrayRef({0}));
}

Tensor index_added(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  Tensor values = alpha.equals(1) ? source : source * alpha;
  return as_a_row(self, [&](const Tensor& x) { return index_put(x, at_dim(x, dim, index), values, true); })
      .contiguous();
}

/// One tensor without dimensions for all elements at the indices.
Tensor filled_at(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  return as_a_row(self, [&](const Tensor& x) {
    SymShape sizes(x.sym_sizes());
    sizes[static_cast<size_t>(dim < 0 ? dim + x.dim() : dim)] = index.sym_numel();
    return index_put(x, at_dim(x, dim, index), value.expand(sizes));
  });
}
/// One number for them.
Tensor index_filled(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  TensorOptions options{.dtype = self.dtype(), .layout = Layout::Strided, .device = self.device(), .pin_memory = false};
  return filled_at(self, dim, index, scalar_tensor(value, options));
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
  SymInt channels = input.sym_size(1) / (kernel[0] * kernel[1]);
  auto places = [&](size_t d) {
    return (size[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
  };
  Tensor blocks = input.reshape({input.sym_size(0), channels, kernel[0], kernel[1], places(0), places(1)})
                      .permute(IntArrayRef({0, 1, 2, 4, 3, 5}));
  Tensor rows = window_places(size[0], kernel[0], dilation[0], padding[0], stride[0], input.device());
  rows = rows.unsqueeze(-1).unsqueeze(-1);
  Tensor columns = window_places(size[1], kernel[1], dilation[1], padding[1], stride[1], input.device());
  Tensor out = input.new_zeros({input.sym_size(0), channels, height, width});
  out = index_put(out, std::vector<Tensor>{{}, {}, rows, columns}, blocks, true);
  out = constant_pad_nd(out, IntArrayRef({-padding[1], -padding[1], -padding[0], -padding[0]}));
  return batched ? out : out.squeeze(Ints{0});
}

/// Every plane of the output begins at its own place of one long row.
Tensor unpooled(const Tensor& self, const Tensor& indices, SymIntArrayRef size) {
  SymShape lead(self.sym_sizes().drop_back(2)), shape(lead), ones(lead);
  SymInt planes = 1;
  for (SymInt s : lead) planes = planes * s;
  for (SymInt s : size) shape.push_back(s);
  for (int i = 0; i < 2; ++i) ones.push_back(1);
  TensorOptions options{.layout = Layout::Strided, .device = self.device(), .pin_memory = false};
  Tensor starts = arange(0, Scalar(planes), 1, options).view(ones) * Scalar(size[0] * size[1]);
  Tensor places = indices.add(starts).reshape(IntArrayRef({-1}));
  Tensor flat = self.new_zeros(shape).view(IntArrayRef({-1}));
  return index_put(flat, std::vector<Tensor>{places}, self.reshape(IntArrayRef({-1}))).view(shape);
}

/// Each dimension in turn is read from where its first element comes from, around.
Tensor rolled(const Tensor& self, SymIntArrayRef shifts, const Ints& dims) {
  if (self.sym_numel() == 0) return self.clone();
  if (dims.empty()) {
    Tensor row = self.dim() == 1 ? self : self.reshape(SymIntArrayRef({self.sym_numel()}));
    Tensor flat = rolled(row, shifts, {0});
    return flat.view(self.sym_sizes());
  }
  Tensor out = self;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t at = dims[i] < 0 ? dims[i] + self.dim() : dims[i];
    SymInt n = self.sym_size(at);
    TensorOptions options{.layout = Layout::Strided, .device = self.device(), .pin_memory = false};
    Tensor places = (arange(0, Scalar(n), 1, options) + Scalar((n - shifts[i]) % n)).fmod(Scalar(n));
    out = out.index_select(at, places);
  }
  return out;
}

Tensor as_diagonals(const Tensor& self, int64_t offset, int64_t first, int64_t second) {
  int64_t rank = self.dim() + 1, a = first < 0 ? first + rank : first, b = second < 0 ? second + rank : second;
  if (a > b) {
    std::swap(a, b);
    offset = -offset;
  }
  SymInt length = self.sym_size(-1);
  Tensor rows = self;
  if (offset != 0) {
    SymShape edge(self.sym_sizes());
    edge[static_cast<size_t>(self.dim() - 1)] = std::abs(offset);
    Tensor zeros = self.new_zeros(edge);
    rows = offset > 0 ? cat(std::vector<Tensor>{zeros, self}, -1) : cat(std::vector<Tensor>{self, zeros}, -1);
    length = length + std::abs(offset);
  }
  rows = rows.unsqueeze(a);
  Ints order;  // the last dimension goes to `b`
  for (int64_t d = 0; d + 1 < rank; ++d) order.push_back(d);
  order.insert(order.begin() + b, rank - 1);
  rows = rows.permute(order);
  TensorOptions options{.dtype = DType::Int64, .layout = Layout::Strided, .device = self.device(), .pin_memory = false};
  Tensor columns = arange(0, Scalar(length), 1, options);
  Tensor on_diagonal = columns.eq(arange(offset, Scalar(length + offset), 1, options).unsqueeze(-1));
  SymShape shape;
  for (int64_t d = 0; d < rank; ++d) shape.push_back(d == a || d == b ? length : SymInt(1));
  on_diagonal = on_diagonal.view(shape);
  if (self.dtype() == DType::Bool) return on_diagonal.logical_and(rows);
  return where(on_diagonal, rows, number_like(rows, 0));
}

}  // namespace

void add_indexing(DecompositionTable& table) {
  table.add("aten::index_add", index_added);
  table.add("aten::index_copy", [](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
    return as_a_row(self, [&](const Tensor& x) { return index_put(x, at_dim(x, dim, index), source); }).contiguous();
  });
  table.add("aten::index_fill.int_Scalar", index_filled);
  table.add("aten::index_fill.int_Tensor", filled_at);
  table.add("aten::max_unpool2d", unpooled);
  table.add("aten::roll", rolled);
  table.add("aten::diag_embed", as_diagonals);
  table.add("aten::take", [](const Tensor& self, const Tensor& places) {
    return index(self.reshape(IntArrayRef({-1})), std::vector<Tensor>{places});
  });
  table.add("aten::select_scatter", [](const Tensor& self, const Tensor& source, int64_t dim, SymInt position) {
    int64_t at = dim < 0 ? dim + self.dim() : dim;
    TensorOptions options{.layout = Layout::Strided, .device = self.device(), .pin_memory = false};
    std::vector<SymInt> shape(static_cast<size_t>(self.dim()), SymInt(1));
    shape[static_cast<size_t>(at)] = -1;
    Tensor places = arange(0, Scalar(self.sym_size(at)), 1, options).view(SymIntArrayRef(shape));
    if (position < 0) position = position + self.sym_size(at);
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
