// Operators that change shapes, cut and join tensors, and make new ones.
#include <limits>
#include <numeric>

#include "io/onnx/call.h"
#include "umbra/generated/functions.h"

namespace umbra::io::onnx {

namespace {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

Name reshape(const Call& c, const Name& value, const Name& shape, bool zeros_are_sizes = false) {
  return c.emit("Reshape", {value, shape}, Attributes().set("allowzero", zeros_are_sizes));
}

void view(Call& c) {
  bool inferred = false;
  for (const fx::Argument& item : c.argument("size").elements())
    inferred |= item.is_value() && item.value().to_int() < 0;
  c.give(reshape(c, c["self"], c.sizes("size"), !inferred));
}

Name transpose(const Call& c, const Name& value, const std::vector<int64_t>& order) {
  return c.emit("Transpose", {value}, Attributes().set("perm", order));
}

void swap_dims(Call& c, int64_t a, int64_t b) {
  int64_t rank = c.rank("self");
  if (rank < 2) return c.give(c.emit("Identity", {c["self"]}));
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<size_t>(a < 0 ? a + rank : a)], order[static_cast<size_t>(b < 0 ? b + rank : b)]);
  c.give(transpose(c, c["self"], order));
}

Name part(const Call& c, const Name& value, int64_t dim, const Name& from, const Name& to, const Name& step = "") {
  Names inputs = {value, from, to, c.model.list({dim})};
  if (!step.empty()) inputs.push_back(step);
  return c.emit("Slice", inputs);
}

void slice(Call& c) {
  Name from = c.has("start") ? c.list_of("start") : c.model.list({0});
  Name to = c.has("end") ? c.list_of("end") : c.model.list({kEnd});
  c.give(part(c, c["self"], c.dim("dim"), from, to, c.list_of("step")));
}

/// `self` with `source` in the place of [from, to) of a dimension.
void replace_part(Call& c, const Name& source, int64_t dim, const Name& from, const Name& to, bool reaches_end) {
  Names parts = {part(c, c["self"], dim, c.model.list({0}), from), source};
  if (!reaches_end) parts.push_back(part(c, c["self"], dim, to, c.model.list({kEnd})));
  c.give(c.emit("Concat", parts, Attributes().set("axis", dim)));
}

bool is_one(SymInt size) { return !size.is_symbolic() && size.value() == 1; }

void squeeze(Call& c, const std::vector<int64_t>& dims) {
  std::vector<int64_t> ones;
  for (int64_t d : dims)
    if (is_one(c.tensor("self").sym_size(d))) ones.push_back(d);
  c.give(ones.empty() ? c.emit("Identity", {c["self"]}) : c.emit("Squeeze", {c["self"], c.model.list(ones)}));
}

void add_views(Table& table) {
  for (const char* name : {"aten::view", "aten::reshape", "aten::_unsafe_view", "aten::view_copy"}) table[name] = view;
  table["aten::_reshape_copy"] = view;
  table["aten::permute"] = [](Call& c) { c.give(transpose(c, c["self"], c.dims("dims"))); };
  table["aten::transpose.int"] = [](Call& c) { swap_dims(c, c.number("dim0"), c.number("dim1")); };
  table["aten::t"] = [](Call& c) { swap_dims(c, 0, 1); };
  table["aten::mT"] = [](Call& c) { swap_dims(c, -1, -2); };
  table["aten::unsqueeze"] = [](Call& c) {
    int64_t d = c.number("dim");
    c.give(c.emit("Unsqueeze", {c["self"], c.model.list({d < 0 ? d + c.rank("self") + 1 : d})}));
  };
  for (const char* overload : {"dim", "dims"})
    table[concat("aten::squeeze.", overload)] = [](Call& c) {
      squeeze(c, c.rank("self") ? c.dims("dim") : std::vector<int64_t>());
    };
  table["aten::squeeze"] = [](Call& c) {
    std::vector<int64_t> all(static_cast<size_t>(c.rank("self")));
    std::iota(all.begin(), all.end(), 0);
    squeeze(c, all);
  };
  table["aten::expand"] = [](Call& c) { c.give(c.emit("Expand", {c["self"], c.sizes("size", 1)})); };
  table["aten::slice.Tensor"] = slice;
  table["aten::select.int"] = [](Call& c) {
    c.give(c.emit("Gather", {c["self"], c.as("index", DType::Int64)}, Attributes().set("axis", c.dim("dim"))));
  };
  for (const char* name : {"aten::clone", "aten::alias", "aten::detach", "aten::contiguous", "aten::lift_fresh_copy",
                           "aten::detach_copy", "aten::alias_copy"})
    table[name] = [](Call& c) { c.give(c.emit("Identity", {c["self"]})); };
  for (const char* name : {"aten::_to_copy", "aten::to.dtype", "aten::to.device", "aten::to.dtype_layout"})
    table[name] = [](Call& c) {
      Name value = c.as("self", c.result_type());
      c.give(value == c["self"] ? c.emit("Identity", {value}) : value);
    };
}

void concatenate(Call& c) {
  Names parts;
  for (const fx::Argument& item : c.argument("tensors").elements()) {
    const Tensor& tensor = item.node()->meta.val.tensor_ref();
    bool is_nothing = tensor.dim() == 1 && c.result().dim() != 1;  // of no elements, whatever the others are
    if (!is_nothing) parts.push_back(c.value(item, c.result_type()));
  }
  int64_t d = c.number("dim");
  c.give(c.emit("Concat", parts, Attributes().set("axis", d < 0 ? d + c.result().dim() : d)));
}

void split(Call& c) {
  int64_t dim = c.dim("dim");
  std::vector<int64_t> sizes;
  for (const Tensor& piece : c.node().meta.val.tensor_list()) {
    if (piece.sym_size(dim).is_symbolic()) c.refuse("pieces whose sizes vary");
    sizes.push_back(piece.sym_size(dim).value());
  }
  c.give_many(
      c.model.emit_many("Split", {c["self"], c.model.list(sizes)}, sizes.size(), Attributes().set("axis", dim)));
}

void unbind(Call& c) {
  Names names;
  for (size_t i = 0; i < c.node().meta.val.tensor_list().size(); ++i)
    names.push_back(c.emit("Gather", {c["self"], c.model.scalar(static_cast<int64_t>(i), DType::Int64)},
                           Attributes().set("axis", c.dim("dim"))));
  c.give_many(names);
}

void repeat(Call& c) {
  Name value = c["self"];
  std::vector<int64_t> added;
  for (int64_t d = 0; d < c.result().dim() - c.rank("self"); ++d) added.push_back(d);
  if (!added.empty()) value = c.emit("Unsqueeze", {value, c.model.list(added)});
  c.give(c.emit("Tile", {value, c.sizes("repeats")}));
}

void flip(Call& c) {
  std::vector<int64_t> dims = c.dims("dims"), back(dims.size(), -1), last(dims.size(), kEnd), first(dims.size(), -kEnd);
  c.give(c.emit("Slice", {c["self"], c.model.list(last), c.model.list(first), c.model.list(dims), c.model.list(back)}));
}

void roll(Call& c) {
  std::vector<int64_t> shifts = c.numbers("shifts"), dims = c.numbers("dims");
  bool flat = dims.empty();
  if (flat) dims = {0};
  Name value = flat ? c.emit("Reshape", {c["self"], c.model.list({-1})}) : c["self"];
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t d = dims[i] < 0 ? dims[i] + c.rank("self") : dims[i];
    // What goes round is cut off where the size, which may be smaller than the shift, says so.
    Name size = c.size_of(value, d), shift = c.emit("Mod", {c.model.list({shifts[i]}), size});
    Name cut = c.emit("Sub", {size, shift}), zero = c.model.list({0}), end = c.model.list({kEnd});
    value = c.emit("Concat", {part(c, value, d, cut, end), part(c, value, d, zero, cut)}, Attributes().set("axis", d));
  }
  c.give(flat ? c.emit("Reshape", {value, c.emit("Shape", {c["self"]})}) : value);
}

void add_parts(Table& table) {
  table["aten::cat"] = concatenate;
  for (const char* name :
       {"aten::split_with_sizes", "aten::split.Tensor", "aten::split_with_sizes_copy", "aten::split_copy.Tensor",
        "aten::unsafe_split.Tensor", "aten::unsafe_split_with_sizes", "aten::chunk"})
    table[name] = split;
  table["aten::unbind.int"] = unbind;
  table["aten::repeat"] = repeat;
  table["aten::flip"] = flip;
  table["aten::roll"] = roll;
}

void add_replacements(Table& table) {
  table["aten::select_scatter"] = [](Call& c) {
    int64_t index = c.number("index"), dim = c.dim("dim");
    Name source = c.emit("Unsqueeze", {c["src"], c.model.list({dim})});
    replace_part(c, source, dim, c.model.list({index}), c.model.list({index + 1}), index == -1);
  };
}

void add_paddings(Table& table) {
  table["aten::constant_pad_nd"] = [](Call& c) {
    size_t rank = static_cast<size_t>(c.rank("self")), count = c.argument("pad").elements().size() / 2;
    // Pairs from the last dimension on, there; all beginnings and then all ends, here.
    std::vector<int64_t> order, dims;
    for (size_t i = 0; i < count; ++i) dims.push_back(static_cast<int64_t>(rank - count + i));
    for (size_t end : {0, 1})
      for (size_t i = 0; i < count; ++i) order.push_back(static_cast<int64_t>(2 * (count - 1 - i) + end));
    Name pads;
    bool fixed = true;
    for (const fx::Argument& item : c.argument("pad").elements()) fixed &= item.is_value();
    if (fixed) {
      std::vector<int64_t> values = c.numbers("pad"), given;
      for (int64_t at : order) given.push_back(values[static_cast<size_t>(at)]);
      pads = c.model.list(given);
    } else {
      for (const fx::Argument& item : c.argument("pad").elements())
        if (item.is_value() && item.value().to_int() < 0) c.refuse("padding that cuts off, beside sizes that vary");
      pads = c.emit("Gather", {c.sizes("pad"), c.model.list(order)});
    }
    c.give(c.emit("Pad", {c["self"], pads, c.as("value", c.result_type()), c.model.list(dims)}));
  };
  for (auto [name, mode] : {std::pair("reflection", "reflect"), {"replication", "edge"}})
    for (int d : {1, 2, 3})
      table[concat("aten::", name, "_pad", d, "d")] = [mode = mode, d](Call& c) {
        std::vector<int64_t> values = c.numbers("padding"), pads(static_cast<size_t>(2 * c.rank("self")), 0);
        for (int i = 0; i < d; ++i)
          for (int end : {0, 1})
            pads[static_cast<size_t>((end + 1) * c.rank("self") - 1 - i)] = values[static_cast<size_t>(2 * i + end)];
        c.give(c.emit("Pad", {c["self"], c.model.list(pads)}, Attributes().set("mode", mode)));
      };
}

/// A tensor of that shape (a value of one dimension) filled with a number.
Name filled(const Call& c, const Name& shape, const fx::Argument& value) {
  if (value.node()) return c.emit("Expand", {c.value(value, c.result_type()), shape});
  return c.emit("ConstantOfShape", {shape},
                Attributes().set("value", full({1}, value.value().to_scalar(), c.result_type())));
}

void add_factories(Table& table) {
  auto constant = [&](const std::string& name, double number, bool like) {
    table[name] = [number, like](Call& c) {
      c.give(filled(c, like ? c.emit("Shape", {c["self"]}) : c.sizes("size"), fx::Argument(number)));
    };
  };
  for (auto [name, number] : {std::pair("zeros", 0.0), {"ones", 1.0}}) {
    constant(concat("aten::", name), number, false);
    constant(concat("aten::new_", name), number, false);
    constant(concat("aten::", name, "_like"), number, true);
  }
  for (const char* name : {"aten::empty.memory_format", "aten::new_empty", "aten::empty_permuted"})
    constant(name, 0, false);
  constant("aten::empty_like", 0, true);
  for (const char* name : {"aten::full", "aten::new_full"})
    table[name] = [](Call& c) { c.give(filled(c, c.sizes("size"), c.argument("fill_value"))); };
  table["aten::full_like"] = [](Call& c) { c.give(filled(c, c.emit("Shape", {c["self"]}), c.argument("fill_value"))); };
  for (const char* name : {"aten::fill.Scalar", "aten::fill.Tensor"})
    table[name] = [](Call& c) { c.give(filled(c, c.emit("Shape", {c["self"]}), c.argument("value"))); };
  table["aten::scalar_tensor"] = [](Call& c) { c.give(c.as("s", c.result_type())); };
  for (const char* overload : {"", ".start", ".start_step"})
    table[concat("aten::arange", overload)] = [first = std::string_view(overload).empty(),
                                               stepped = std::string_view(overload) == ".start_step"](Call& c) {
      DType dtype = c.result_type();
      bool whole = is_integral(dtype, false);
      DType wide = whole ? DType::Int64 : dtype == DType::Float64 ? dtype : DType::Float32;  // Range takes few types
      for (const char* name : {"start", "end", "step"})
        if (whole && c.node().target().op()->schema().find(name) >= 0 && !c.argument(name).node() &&
            c.plain(name).is_double())
          c.refuse("whole numbers of a range with fractions");
      Name from = first ? c.model.scalar(0, wide) : c.as("start", wide);
      Name to = c.as("end", wide), step = stepped ? c.as("step", wide) : c.model.scalar(1, wide);
      c.give(c.model.cast(c.emit("Range", {from, to, step}), wide, dtype));
    };
  for (auto [name, upper] : {std::pair("tril", 0), {"triu", 1}})
    table[concat("aten::", name)] = [upper = upper](Call& c) {
      c.give(c.emit("Trilu", {c["self"], c.as("diagonal", DType::Int64)}, Attributes().set("upper", upper)));
    };
  table["aten::copy"] = [](Call& c) {
    c.give(c.emit("Expand", {c.as("src", c.result_type()), c.emit("Shape", {c["self"]})}));
  };
}

void add_sizes(Table& table) {
  table["aten::sym_size.int"] = [](Call& c) {
    c.give(c.emit("Squeeze", {c.size_of(c["self"], c.dim("dim")), c.model.list({0})}));
  };
  table["aten::sym_numel"] = [](Call& c) { c.give(c.emit("Size", {c["self"]})); };
  for (const char* name : {"aten::item", "aten::_local_scalar_dense"})
    table[name] = [](Call& c) {
      DType dtype = c.tensor("self").is_floating_point() ? DType::Float64
                    : c.type("self") == DType::Bool      ? DType::Bool
                                                         : DType::Int64;
      c.give(c.emit("Reshape", {c.as("self", dtype), c.model.list(std::vector<int64_t>())}));
    };
  // Programs are checked by their inputs' names and sizes; the model itself asserts nothing.
  for (const char* name : {"aten::_assert_scalar", "aten::_assert_tensor_metadata", "aten::_assert_async.msg",
                           "aten::_assert_async", "aten::sym_constrain_range_for_size", "aten::sym_constrain_range"})
    table[name] = [](Call&) {};
}

}  // namespace

void add_shapes(Table& table) {
  add_views(table);
  add_parts(table);
  add_replacements(table);
  add_paddings(table);
  add_factories(table);
  add_sizes(table);
}

}  // namespace umbra::io::onnx
