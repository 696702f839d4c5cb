// Operators that pick and place elements by their places.
#include <algorithm>
#include <limits>

#include "io/onnx/call.h"
#include "umbra/generated/functions.h"

namespace umbra::io::onnx {

namespace {

/// The tensors of an index, and the dimensions that they are for.
struct Places {
  std::vector<fx::Argument> tensors;
  std::vector<int64_t> dims;
  /// Whether there is one mask and nothing else; its dimensions are all there.
  bool mask() const { return tensors.size() == 1 && tensors[0].node()->meta.val.tensor_ref().dtype() == DType::Bool; }
};

Places places_of(const Call& c) {
  Places out;
  int64_t d = 0;
  for (const fx::Argument& item : c.argument("indices").elements()) {
    bool given = item.node() != nullptr;
    int64_t covered = given && item.node()->meta.val.tensor_ref().dtype() == DType::Bool
                          ? item.node()->meta.val.tensor_ref().dim()
                          : 1;
    if (given) out.tensors.push_back(item), out.dims.push_back(d);
    d += covered;
  }
  if (!out.mask()) return out;
  for (int64_t i = 1; i < out.tensors[0].node()->meta.val.tensor_ref().dim(); ++i) out.dims.push_back(out.dims[0] + i);
  return out;
}

/// The places of true elements, one row each.
Name rows_of_mask(const Call& c, const fx::Argument& mask) {
  return c.emit("Transpose", {c.emit("NonZero", {c.value_of(mask.node())})}, Attributes().set("perm", {1, 0}));
}

/// Indices of several dimensions as rows: [..., number of dimensions].
Name rows_of(const Call& c, const Places& places) {
  if (places.mask()) return rows_of_mask(c, places.tensors[0]);
  Names parts;
  Name whole = c.value(places.tensors[0], DType::Int64);
  for (size_t i = 1; i < places.tensors.size(); ++i)
    whole = c.emit("Add", {whole, c.value(places.tensors[i], DType::Int64)});
  Name shape = c.emit("Shape", {whole});  // all broadcast together
  for (const fx::Argument& tensor : places.tensors) {
    if (tensor.node()->meta.val.tensor_ref().dtype() == DType::Bool) c.refuse("a mask beside other indices");
    Name spread = c.emit("Expand", {c.value(tensor, DType::Int64), shape});
    parts.push_back(c.emit("Unsqueeze", {spread, c.model.list({-1})}));
  }
  return c.emit("Concat", parts, Attributes().set("axis", -1));
}

/// Brings the indexed dimensions to the front.
std::vector<int64_t> indexed_first(const Call& c, const Places& places) {
  std::vector<int64_t> order = places.dims;
  for (int64_t d = 0; d < c.rank("self"); ++d)
    if (std::ranges::find(places.dims, d) == places.dims.end()) order.push_back(d);
  return order;
}

bool is_in_order(const std::vector<int64_t>& order) {
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] != static_cast<int64_t>(i)) return false;
  return true;
}

/// What indices pick, with the indexed dimensions of `self` in front: those of the result stand there too.
struct Picked {
  Name self, rows, elements;
  std::vector<int64_t> order;  // how `self` was permuted; empty: not at all
  std::vector<int64_t> back;   // the permutation that brings the elements where the result has them; empty: none
};

Picked pick(const Call& c, const Places& places) {
  Picked out{c["self"], {}, {}, {}, {}};
  out.order = indexed_first(c, places);
  if (is_in_order(out.order)) out.order.clear();
  else out.self = c.emit("Transpose", {out.self}, Attributes().set("perm", out.order));
  out.rows = rows_of(c, places);
  out.elements = c.emit("GatherND", {out.self, out.rows});
  bool adjacent = true;
  for (size_t i = 1; i < places.dims.size(); ++i) adjacent &= places.dims[i] == places.dims[i - 1] + 1;
  if (places.dims[0] == 0 || !adjacent) return out;
  // Adjacent indices leave their result where they stood.
  int64_t own = 0, before = places.dims[0], others = c.rank("self") - static_cast<int64_t>(places.dims.size());
  if (places.mask()) own = 1;
  else
    for (const fx::Argument& tensor : places.tensors)
      own = std::max(own, tensor.node()->meta.val.tensor_ref().dim());  // they broadcast together
  for (int64_t d = 0; d < before; ++d) out.back.push_back(own + d);
  for (int64_t d = 0; d < own; ++d) out.back.push_back(d);
  for (int64_t d = own + before; d < own + others; ++d) out.back.push_back(d);
  return out;
}

Name permuted(const Call& c, const Name& value, const std::vector<int64_t>& order) {
  return order.empty() ? value : c.emit("Transpose", {value}, Attributes().set("perm", order));
}

std::vector<int64_t> inverse(const std::vector<int64_t>& order) {
  std::vector<int64_t> out(order.size());
  for (size_t i = 0; i < order.size(); ++i) out[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return out;
}

void index(Call& c) {
  Places places = places_of(c);
  if (places.tensors.size() == 1 && !places.mask())
    return c.give(c.emit("Gather", {c["self"], c.value(places.tensors[0], DType::Int64)},
                         Attributes().set("axis", places.dims[0])));
  Picked picked = pick(c, places);
  c.give(permuted(c, picked.elements, picked.back));
}

void index_put(Call& c) {
  Places places = places_of(c);
  if (places.dims.empty()) c.refuse("no indices");
  Picked picked = pick(c, places);
  // Values have the shape of what is replaced.
  Name shape = c.emit("Shape", {permuted(c, picked.elements, picked.back)});
  Name values = c.emit("Expand", {c.as("values", c.result_type()), shape});
  Name made = c.emit("ScatterND", {picked.self, picked.rows, permuted(c, values, inverse(picked.back))},
                     Attributes().set("reduction", c.flag("accumulate") ? "add" : "none"));
  c.give(permuted(c, made, inverse(picked.order)));
}

void scatter(Call& c, const Name& source, const char* reduction) {
  c.give(c.emit("ScatterElements", {c["self"], c.as("index", DType::Int64), source},
                Attributes().set("axis", c.dim("dim")).set("reduction", reduction)));
}

/// A scatter takes the part of its source that the index covers.
Name covered(const Call& c) {
  Name shape = c.emit("Shape", {c["index"]});
  std::vector<int64_t> zeros(static_cast<size_t>(c.rank("src")), 0);
  return c.emit("Slice", {c["src"], c.model.list(zeros), shape});
}

/// The middle value along a dimension and its place, which stay dimensions of size 1: the last of the smaller half. One
/// NaN makes the value NaN, and its place is that of the first.
Names median(const Call& c, const Name& self, int64_t dim, DType type) {
  Name half = c.emit("Div", {c.emit("Add", {c.size_of(self, dim), c.model.list({1})}), c.model.list({2})});
  Names smaller = c.model.emit_many("TopK", {self, half}, 2, Attributes().set("axis", dim).set("largest", 0));
  Names middle;
  for (const Name& part : smaller)
    middle.push_back(c.emit("Gather", {part, c.model.list({-1})}, Attributes().set("axis", dim)));
  if (!is_floating(type)) return middle;
  Name nans = c.model.cast(c.emit("IsNaN", {self}), DType::Bool, DType::Int32);
  Name some = c.model.cast(c.emit("ReduceMax", {nans, c.model.list({dim})}), DType::Int32, DType::Bool);
  Name nan = c.model.scalar(std::numeric_limits<double>::quiet_NaN(), type);
  return {c.emit("Where", {some, nan, middle[0]}),
          c.emit("Where", {some, c.emit("ArgMax", {nans}, Attributes().set("axis", dim)), middle[1]})};
}

}  // namespace

void add_indexing(Table& table) {
  table["aten::median"] = [](Call& c) {
    Name flat = c.emit("Reshape", {c["self"], c.model.list({-1})});
    c.give(c.emit("Squeeze", {median(c, flat, 0, c.type("self"))[0]}));
  };
  table["aten::median.dim"] = [](Call& c) {
    bool number = c.rank("self") == 0;
    Name self = number ? c.emit("Reshape", {c["self"], c.model.list({-1})}) : c["self"];
    Names found = median(c, self, number ? 0 : c.dim("dim"), c.type("self"));
    if (number || !c.flag("keepdim"))
      for (Name& part : found) part = c.emit("Squeeze", {part, c.model.list({number ? 0 : c.dim("dim")})});
    c.give_many(std::move(found));
  };
  table["aten::index.Tensor"] = table["aten::_unsafe_index.Tensor"] = index;
  table["aten::index_put"] = table["aten::_unsafe_index_put"] = index_put;
  table["aten::index_select"] = [](Call& c) {
    c.give(c.emit("Gather", {c["self"], c["index"]}, Attributes().set("axis", c.dim("dim"))));
  };
  table["aten::embedding"] = [](Call& c) { c.give(c.emit("Gather", {c["weight"], c["indices"]})); };
  table["aten::gather"] = [](Call& c) {
    c.give(c.emit("GatherElements", {c["self"], c["index"]}, Attributes().set("axis", c.dim("dim"))));
  };
  table["aten::scatter.src"] = [](Call& c) { scatter(c, covered(c), "none"); };
  table["aten::scatter_add"] = [](Call& c) { scatter(c, covered(c), "add"); };
  table["aten::scatter.value"] = [](Call& c) {
    scatter(c, c.emit("Expand", {c.as("value", c.result_type()), c.emit("Shape", {c["index"]})}), "none");
  };
  table["aten::nonzero"] = [](Call& c) {
    Name places = c.emit("Transpose", {c.emit("NonZero", {c["self"]})}, Attributes().set("perm", {1, 0}));
    if (c.rank("self") == 0)  // a scalar has no coordinates
      places = c.emit("Slice", {places, c.model.list({0}), c.model.list({0}), c.model.list({1})});
    c.give(places);
  };
  table["aten::topk"] = [](Call& c) {
    c.give_many(c.model.emit_many(
        "TopK", {c["self"], c.list_of("k")}, 2,
        Attributes().set("axis", c.dim("dim")).set("largest", c.flag("largest")).set("sorted", c.flag("sorted"))));
  };
  for (const char* name : {"aten::sort", "aten::sort.stable"})
    table[name] = [](Call& c) {
      int64_t dim = c.dim("dim");
      c.give_many(c.model.emit_many("TopK", {c["self"], c.size_of(c["self"], dim)}, 2,
                                    Attributes().set("axis", dim).set("largest", c.flag("descending"))));
    };
}

}  // namespace umbra::io::onnx
