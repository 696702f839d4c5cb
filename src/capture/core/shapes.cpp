// Views and rearrangements: permute, view, slice, cat and their like remain.
#include <algorithm>
#include <numeric>

#include "capture/core/core.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"

namespace umbra::core_table {
namespace {

std::vector<int64_t> all_dims(const Tensor& self) {
  std::vector<int64_t> dims(static_cast<size_t>(self.dim()));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

int64_t wrapped(int64_t dim, int64_t rank) { return dim < 0 ? dim + rank : dim; }

Tensor exchange(const Tensor& self, int64_t a, int64_t b) {
  if (self.dim() == 0 || wrapped(a, self.dim()) == wrapped(b, self.dim())) return alias(self);
  std::vector<int64_t> dims = all_dims(self);
  std::swap(dims.at(static_cast<size_t>(wrapped(a, self.dim()))), dims.at(static_cast<size_t>(wrapped(b, self.dim()))));
  return self.permute(dims);
}

std::vector<Tensor> split_evenly(const Tensor& self, SymInt size, int64_t dim) {
  SymInt length = self.sym_size(dim);
  int64_t count = size == 0 ? 1 : std::max<int64_t>(1, ((length + size - 1) / size).guard_int());
  std::vector<SymInt> sizes(static_cast<size_t>(count), size);
  sizes.back() = length - size * (count - 1);
  return split_with_sizes(self, SymIntArrayRef(sizes), dim);
}

/// Neighbours become rows: one slice for each, without its dimension.
std::vector<Tensor> rows_of(const Tensor& self, int64_t dim) {
  std::vector<Tensor> rows;
  int64_t n = self.sym_size(dim).guard_int();
  for (int64_t i = 0; i < n; ++i) rows.push_back(self.slice(dim, SymInt(i), SymInt(i + 1)));
  for (Tensor& row : rows) row = row.squeeze(std::vector<int64_t>{dim});
  return rows;
}

Tensor stacked(TensorList tensors, int64_t dim) {
  int64_t rank = tensors[0].dim(), at = wrapped(dim, rank + 1);
  if (at == rank) {
    std::vector<Tensor> wide;
    for (const Tensor& t : tensors) wide.push_back(t.unsqueeze(at));
    return cat(wide, dim);
  }
  SymShape sizes(tensors[0].sym_sizes());
  sizes.insert(static_cast<size_t>(at), SymInt(static_cast<int64_t>(tensors.size())));
  return cat(tensors, at).view(sizes);
}

/// Whole blocks of channels move into the plane, or back.
Tensor shuffled(const Tensor& self, int64_t factor, bool out_of_channels) {
  int64_t rank = self.dim(), lead = rank - 3;
  SymShape sizes;
  for (int64_t d = 0; d < lead; ++d) sizes.push_back(self.sym_size(d));
  SymInt c = self.sym_size(-3), h = self.sym_size(-2), w = self.sym_size(-1);
  SymShape parts(sizes), result(sizes);
  std::vector<int64_t> order;
  for (int64_t d = 0; d < lead; ++d) order.push_back(d);
  auto add = [&](std::initializer_list<SymInt> more, SymShape& to) {
    for (SymInt s : more) to.push_back(s);
  };
  if (out_of_channels) {
    add({c / (factor * factor), factor, factor, h, w}, parts);
    add({c / (factor * factor), h * factor, w * factor}, result);
    for (int64_t d : {0, 3, 1, 4, 2}) order.push_back(lead + d);
  } else {
    add({c, h / factor, factor, w / factor, factor}, parts);
    add({c * factor * factor, h / factor, w / factor}, result);
    for (int64_t d : {0, 2, 4, 1, 3}) order.push_back(lead + d);
  }
  return self.view(parts).permute(order).reshape(result).clone(MemoryFormat::Contiguous);
}

Tensor quarter_turns(const Tensor& self, int64_t k, std::vector<int64_t> dims) {
  int64_t turns = ((k % 4) + 4) % 4;
  if (turns == 1) return exchange(self.flip(IntArrayRef({dims[1]})), dims[0], dims[1]);
  if (turns == 2) return self.flip(dims);
  if (turns == 3) return exchange(self.flip(IntArrayRef({dims[0]})), dims[0], dims[1]);
  return self.clone(MemoryFormat::Contiguous);
}

/// A row of blocks, each with zeros on both sides.
Tensor diagonal_blocks(TensorList tensors) {
  std::vector<Tensor> blocks;
  SymInt width = 0;
  for (const Tensor& t : tensors) blocks.push_back(t.dim() == 2 ? t : t.view(IntArrayRef({1, -1})));
  for (const Tensor& block : blocks) width = width + block.sym_size(1);
  SymInt left = 0;
  for (Tensor& block : blocks) {
    SymInt rows = block.sym_size(0), columns = block.sym_size(1);
    Tensor before = block.new_zeros({rows, left}), after = block.new_zeros({rows, width - left - columns});
    left = left + columns;
    block = cat(std::vector<Tensor>{before, block, after}, 1);
  }
  return cat(blocks);
}

Tensor shuffled_channels(const Tensor& self, SymInt groups) {
  SymShape parts(self.sym_sizes());
  parts[1] = groups;
  parts.insert(2, self.sym_size(1) / groups);
  std::vector<int64_t> order(parts.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[1], order[2]);
  return self.view(parts).permute(order).clone(MemoryFormat::Contiguous).view(self.sym_sizes());
}

/// A view, and memory of its own.
void add_copies(DecompositionTable& table) {
  auto own = [](const Tensor& view) { return view.clone(MemoryFormat::Contiguous); };
  table.add("aten::alias_copy", [=](const Tensor& self) { return own(alias(self)); });
  table.add("aten::t_copy", [=](const Tensor& self) { return own(self.t()); });
  table.add("aten::transpose_copy.int",
            [=](const Tensor& self, int64_t a, int64_t b) { return own(exchange(self, a, b)); });
  table.add("aten::squeeze_copy", [=](const Tensor& self) { return own(self.squeeze()); });
  table.add("aten::squeeze_copy.dim", [=](const Tensor& self, int64_t dim) { return own(self.squeeze(dim)); });
  table.add("aten::squeeze_copy.dims",
            [=](const Tensor& self, const std::vector<int64_t>& dims) { return own(self.squeeze(dims)); });
  table.add("aten::unsqueeze_copy", [=](const Tensor& self, int64_t dim) { return own(self.unsqueeze(dim)); });
  table.add("aten::expand_copy",
            [=](const Tensor& self, SymIntArrayRef size, bool implicit) { return own(self.expand(size, implicit)); });
  table.add("aten::diagonal_copy",
            [=](const Tensor& self, int64_t offset, int64_t a, int64_t b) { return own(self.diagonal(offset, a, b)); });
  table.add("aten::unfold_copy", [=](const Tensor& self, int64_t dim, int64_t size, int64_t step) {
    return own(self.unfold(dim, size, step));
  });
  table.add("aten::split_with_sizes_copy", [=](const Tensor& self, SymIntArrayRef sizes, int64_t dim) {
    std::vector<Tensor> parts = split_with_sizes(self, sizes, dim);
    for (Tensor& part : parts) part = own(part);
    return parts;
  });
}

}  // namespace

void add_shapes(DecompositionTable& table) {
  table.add("aten::t", [](const Tensor& self) {
    return self.dim() < 2 ? alias(self) : self.permute(IntArrayRef({1, 0}));
  });
  table.add("aten::transpose.int", exchange);
  table.add("aten::_unsafe_view", [](const Tensor& self, SymIntArrayRef size) { return self.view(size); });
  table.add("aten::squeeze", [](const Tensor& self) { return self.squeeze(all_dims(self)); });
  table.add("aten::squeeze.dim",
            [](const Tensor& self, int64_t dim) { return self.squeeze(std::vector<int64_t>{dim}); });
  table.add("aten::split.Tensor", split_evenly);
  table.add("aten::unbind.int", rows_of);
  table.add("aten::stack", stacked);
  table.add("aten::pixel_shuffle", [](const Tensor& self, int64_t factor) { return shuffled(self, factor, true); });
  table.add("aten::pixel_unshuffle", [](const Tensor& self, int64_t factor) { return shuffled(self, factor, false); });
  table.add("aten::rot90", quarter_turns);
  table.add("aten::unsafe_split.Tensor", split_evenly);
  table.add("aten::unsafe_split_with_sizes",
            [](const Tensor& self, SymIntArrayRef sizes, int64_t dim) { return split_with_sizes(self, sizes, dim); });
  table.add("aten::block_diag", diagonal_blocks);
  for (const char* name : {"aten::channel_shuffle", "aten::native_channel_shuffle"}) table.add(name, shuffled_channels);
  add_copies(table);
}

}  // namespace umbra::core_table
