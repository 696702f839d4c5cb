// Operators whose elements are found by places that follow from sizes or from other elements: diagonals, windows,
// searches, running reductions, reduced scatters.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "io/onnx/formula.h"
#include "umbra/generated/functions.h"

namespace umbra::io::onnx {

namespace {

std::vector<int64_t> counted(int64_t count) {
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Name transposed(const Call& c, const Name& value, const std::vector<int64_t>& order) {
  return c.emit("Transpose", {value}, Attributes().set("perm", order));
}

/// The order that brings some dimensions to the front, and the one that brings them back.
std::pair<std::vector<int64_t>, std::vector<int64_t>> in_front(int64_t rank, const std::vector<int64_t>& dims) {
  std::vector<int64_t> order = dims, back(static_cast<size_t>(rank));
  for (int64_t d : counted(rank))
    if (std::ranges::find(dims, d) == dims.end()) order.push_back(d);
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return {order, back};
}

// ---- diagonals ----

/// A matrix's diagonal: the two dimensions in front, and the rows of places [elements, 2].
struct Diagonal {
  Name matrix, rows;
  std::vector<int64_t> back;  // of all dimensions
};

Diagonal diagonal_of(const Call& c) {
  int64_t offset = c.number("offset"), rank = c.rank("self");
  auto [order, back] = in_front(rank, {c.dim("dim1"), c.dim("dim2")});
  Name matrix = transposed(c, c["self"], order);
  Name from = c.model.list({std::max<int64_t>(-offset, 0), std::max<int64_t>(offset, 0)});
  return {matrix,
          evaluate(c,
                   "n = Max(ReduceMin{keepdims=0}(Sub(Shape{start=0,end=2}(matrix), from)), #0);"
                   "Add(Unsqueeze(Range(#0, n, #1), [1]), Unsqueeze(from, [0]))",
                   {{"matrix", matrix}, {"from", from}}),
          back};
}

void diagonal(Call& c) {
  Diagonal found = diagonal_of(c);
  std::vector<int64_t> order = counted(c.rank("self") - 1);  // the elements' dimension is the last one
  std::rotate(order.begin(), order.begin() + 1, order.end());
  c.give(transposed(c, c.emit("GatherND", {found.matrix, found.rows}), order));
}

void diagonal_scatter(Call& c) {
  Diagonal found = diagonal_of(c);
  std::vector<int64_t> order = counted(c.rank("src"));
  std::rotate(order.begin(), order.end() - 1, order.end());
  Name made = c.emit("ScatterND", {found.matrix, found.rows, transposed(c, c["src"], order)});
  c.give(transposed(c, made, found.back));
}

void triangle(Call& c, bool upper) {
  int64_t rows = c.number("row"), columns = c.number("col"), offset = c.number("offset");
  auto made = upper ? umbra::triu_indices(rows, columns, offset) : umbra::tril_indices(rows, columns, offset);
  c.give(c.model.constant(made.to(c.result_type())));
}

// ---- windows, strides ----

void unfold(Call& c) {
  int64_t rank = c.rank("self");
  int64_t dim = c.number("dimension") < 0 ? c.number("dimension") + rank : c.number("dimension");
  if (rank == 0) c.refuse("windows of a scalar");
  Name places = evaluate(
      c, "Add(Unsqueeze(Range(#0, Add(Squeeze(Sub(n, size), [0]), #1), step), [1]), Range(#0, Squeeze(size, [0]), #1))",
      {{"n", c.size_of(c["self"], dim)}, {"size", c.list_of("size")}, {"step", c.as("step", DType::Int64)}});
  std::vector<int64_t> order = counted(rank + 1);  // the window's dimension goes to the end
  std::rotate(order.begin() + dim + 1, order.begin() + dim + 2, order.end());
  c.give(transposed(c, c.emit("Gather", {c["self"], places}, Attributes().set("axis", dim)), order));
}

bool is_one(SymInt size) { return !size.is_symbolic() && size.value() == 1; }

/// Whether a view by strides shows the elements of its base in their places: strides of dimensions of one mean nothing.
bool is_same_view(const Call& c) {
  const Tensor &before = c.tensor("self"), &after = c.result();
  if (before.dim() != after.dim() || !before.sym_storage_offset().same(after.sym_storage_offset())) return false;
  for (int64_t d = 0; d < after.dim(); ++d) {
    if (!before.sym_size(d).same(after.sym_size(d))) return false;
    if (!is_one(after.sym_size(d)) && !before.sym_stride(d).same(after.sym_stride(d))) return false;
  }
  return true;
}

/// A view by strides of a tensor that lies in memory as it counts: its elements, by their numbers.
void view_by_strides(Call& c) {
  if (is_same_view(c)) return c.give(c.emit("Identity", {c["self"]}));
  const Tensor &before = c.tensor("self"), &after = c.result();
  if (before.is_symbolic() || after.is_symbolic()) c.refuse("a view by strides of sizes that vary");
  int64_t first = after.storage_offset() - before.storage_offset(), last = first;
  Tensor places = full({}, first, DType::Int64);
  for (int64_t d = 0; d < after.dim(); ++d) {
    last += (after.size(d) - 1) * after.stride(d);
    places = places.unsqueeze(-1).add(arange(after.size(d)).mul(after.stride(d)));
  }
  if (!before.is_contiguous() || first < 0 || (after.numel() && last >= before.numel()))
    c.refuse("a view by strides of elements that its base does not have");
  c.give(c.emit("Gather", {c.emit("Reshape", {c["self"], c.model.list({-1})}), c.model.constant(places)}));
}

// ---- searches ----

/// How many of the sorted values are before each of the others: a NaN is behind all.
void search(Call& c, const char* sorted, const char* values, bool rows) {
  bool right = c.flag("right");
  if (rows && c.has("side")) right = c.plain("side").to_string() == "right";
  bool is_tensor = c.argument(values).node() && c.argument(values).node()->meta.val.is_tensor();
  DType dtype = is_tensor ? promote_types(c.type(sorted), c.type(values)) : c.type(sorted);
  Name among = c.as(sorted, dtype);
  if (rows && c.has("sorter"))
    among = c.emit("GatherElements", {among, c["sorter"]}, Attributes().set("axis", c.rank(sorted) - 1));
  bool one_row = c.rank(sorted) == 1;
  Name wanted = c.as(values, dtype);
  if (is_tensor) wanted = c.emit("Unsqueeze", {wanted, c.model.list({-1})});
  if (!one_row) among = c.emit("Unsqueeze", {among, c.model.list({-2})});
  Name behind = c.emit(right ? "Greater" : "GreaterOrEqual", {among, wanted});
  Name count = evaluate(c, "ReduceSum{keepdims=0}(Cast{to=7}(Not(behind)), [-1])", {{"behind", behind}});
  c.give(c.model.cast(count, DType::Int64, c.result_type()));
}

// ---- running reductions ----

/// Each place's reduction is that of all places up to it, the others being what changes nothing.
void running(Call& c, const char* reduction, double neutral, const char* place) {
  DType dtype = c.node().meta.val.is_tensor() ? c.result_type() : c.type("self");
  if (!is_floating(dtype) && std::abs(neutral) > 1) c.refuse("whole numbers");
  int64_t dim = c.dim("dim"), rank = c.rank("self");
  Name n = c.emit("Squeeze", {c.size_of(c["self"], dim), c.model.list({0})});
  Name seen = evaluate(c, "r = Range(#0, n, #1); GreaterOrEqual(Unsqueeze(r, [1]), Unsqueeze(r, [0]))", {{"n", n}});
  Name self = c.emit("Unsqueeze", {c.as("self", dtype), c.model.list({dim})});
  std::vector<int64_t> behind = counted(rank - dim - 1);
  for (int64_t& d : behind) d += 2;
  if (!behind.empty()) seen = c.emit("Unsqueeze", {seen, c.model.list(behind)});
  Name all = c.emit("Where", {seen, self, c.model.scalar(neutral, dtype)});
  Attributes without;
  Name value = c.emit(reduction, {all, c.model.list({dim + 1})}, without.set("keepdims", 0));
  if (!place) return c.give(value);
  c.give_many(
      {value, c.emit(place, {all}, Attributes().set("axis", dim + 1).set("keepdims", 0).set("select_last_index", 1))});
}

// ---- masks ----

Name places_of_mask(const Call& c, const Name& shape) {
  return evaluate(c, "Transpose{perm=[1,0]}(NonZero(Expand(@mask, shape)))", {{"shape", shape}});
}

void masked_select(Call& c) {
  Name self = c["self"],
       shape = c.emit("Shape", {c.emit("Where", {c["mask"], self, self})});  // they broadcast together
  c.give(c.emit("GatherND", {c.emit("Expand", {self, shape}), places_of_mask(c, shape)}));
}

void masked_scatter(Call& c) {
  Name self = c.emit("Expand", {c["self"], c.emit("Shape", {c.emit("Where", {c["mask"], c["self"], c["self"]})})});
  Name places = places_of_mask(c, c.emit("Shape", {self}));
  c.give(evaluate(c, "ScatterND(self, places, Slice(Reshape(@source, [-1]), [0], Shape{start=0,end=1}(places), [0]))",
                  {{"self", self}, {"places", places}}));
}

// ---- reduced scatters ----

/// The part of the source that the index covers.
Name covered(const Call& c) {
  Name shape = c.emit("Shape", {c["index"]});
  if (c.node().target().op()->schema().find("value") >= 0)
    return c.emit("Expand", {c.as("value", c.result_type()), shape});
  return c.emit("Slice", {c["src"], c.model.list(std::vector<int64_t>(static_cast<size_t>(c.rank("src")))), shape});
}

void scatter_reduced(Call& c) {
  std::string name = c.plain("reduce").to_string();
  bool mean = name == "mean", sum = name == "sum" || name == "add" || mean;
  bool product = name == "prod" || name == "multiply", most = name == "amax";
  DType dtype = c.result_type();
  if (mean && !is_floating(dtype)) c.refuse("means of whole numbers");
  Name index = c.as("index", DType::Int64), self = c["self"], source = covered(c);
  auto scattered = [&](const Name& onto, const Name& from, const char* how) {
    return c.emit("ScatterElements", {onto, index, from}, Attributes().set("axis", c.dim("dim")).set("reduction", how));
  };
  auto filled = [&](const Name& like, double value) {
    return c.emit("Expand", {c.model.scalar(value, dtype), c.emit("Shape", {like})});
  };
  bool own = c.node().target().op()->schema().find("include_self") < 0 || c.flag("include_self");
  double infinity = std::numeric_limits<double>::infinity();
  if (!own && !sum && !product && !is_floating(dtype)) c.refuse("extremes of whole numbers with include_self=False");
  if (!own) self = scattered(self, filled(source, sum ? 0 : product ? 1 : most ? -infinity : infinity), "none");
  Name made = scattered(self, source, sum ? "add" : product ? "mul" : most ? "max" : "min");
  if (mean) {
    Name counts = filled(self, 1);
    if (!own) counts = scattered(counts, filled(source, 0), "none");
    made = c.emit("Div", {made, scattered(counts, filled(source, 1), "add")});
  }
  c.give(made);
}

/// `self` with the rows that a slice picks replaced, whatever its step and wherever it is counted from.
void slice_scatter(Call& c) {
  int64_t dim = c.dim("dim");
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  auto [order, back] = in_front(c.rank("self"), {dim});
  Name from = c.has("start") ? c.list_of("start") : c.model.list({0});
  Name to = c.has("end") ? c.list_of("end") : c.model.list({kEnd});
  Name places = evaluate(c, "Unsqueeze(Slice(Range(#0, Squeeze(n, [0]), #1), from, to, [0], step), [1])",
                         {{"n", c.size_of(c["self"], dim)}, {"from", from}, {"to", to}, {"step", c.list_of("step")}});
  Name made = c.emit("ScatterND", {transposed(c, c["self"], order), places, transposed(c, c["src"], order)});
  c.give(transposed(c, made, back));
}

// ---- counts ----

void unique(Call& c) {
  Names made = c.model.emit_many("Unique", {c["self"]}, 4, Attributes().set("sorted", 1));
  c.give_many({made[0], c.emit("Reshape", {made[2], c.emit("Shape", {c["self"]})}), made[3]});
}

void bincount(Call& c) {
  Name self = c.as("self", DType::Int64);
  Name rows = evaluate(c,
                       "n = Max(Add(ReduceMax{keepdims=0}(Concat{axis=0}(self, [-1])), #1), least);"
                       "Equal(Unsqueeze(Range(#0, n, #1), [1]), Unsqueeze(self, [0]))",
                       {{"self", self}, {"least", c.as("minlength", DType::Int64)}});
  Name counts = c.model.cast(rows, DType::Bool, c.result_type());
  c.give(c.has("weights") ? c.emit("MatMul", {counts, c.as("weights", c.result_type())})
                          : evaluate(c, "ReduceSum{keepdims=0}(counts, [1])", {{"counts", counts}}));
}

void kth_value(Call& c) {
  int64_t dim = c.dim("dim");
  Names smallest =
      c.model.emit_many("TopK", {c["self"], c.list_of("k")}, 2, Attributes().set("axis", dim).set("largest", 0));
  for (Name& part : smallest) {
    part = c.emit("Gather", {part, c.model.list({-1})}, Attributes().set("axis", dim));
    if (!c.flag("keepdim")) part = c.emit("Squeeze", {part, c.model.list({dim})});
  }
  c.give_many(smallest);
}

}  // namespace

void add_places(Table& table) {
  const double infinity = std::numeric_limits<double>::infinity();
  table["aten::diagonal"] = table["aten::diagonal_copy"] = diagonal;
  table["aten::diagonal_scatter"] = diagonal_scatter;
  table["aten::tril_indices"] = [](Call& c) { triangle(c, false); };
  table["aten::triu_indices"] = [](Call& c) { triangle(c, true); };
  table["aten::unfold"] = table["aten::unfold_copy"] = unfold;
  for (const char* overload : {"Tensor", "Scalar"}) {
    table[concat("aten::searchsorted.", overload)] = [](Call& c) { search(c, "sorted_sequence", "self", true); };
    table[concat("aten::bucketize.", overload)] = [](Call& c) { search(c, "boundaries", "self", false); };
  }
  table["aten::cumprod"] = [](Call& c) { running(c, "ReduceProd", 1, nullptr); };
  table["aten::logcumsumexp"] = [infinity](Call& c) { running(c, "ReduceLogSumExp", -infinity, nullptr); };
  table["aten::cummax"] = [infinity](Call& c) { running(c, "ReduceMax", -infinity, "ArgMax"); };
  table["aten::cummin"] = [infinity](Call& c) { running(c, "ReduceMin", infinity, "ArgMin"); };
  table["aten::masked_select"] = masked_select;
  table["aten::masked_scatter"] = masked_scatter;
  for (const char* name : {"aten::scatter.reduce", "aten::scatter.value_reduce", "aten::scatter_reduce.two"})
    table[name] = scatter_reduced;
  table["aten::put"] = [](Call& c) {
    const char* how = c.flag("accumulate") ? "add" : "none";
    Names flat;
    for (const char* name : {"self", "index", "source"})
      flat.push_back(c.emit("Reshape", {c[name], c.model.list({-1})}));
    Name made = c.emit("ScatterElements", flat, Attributes().set("reduction", how));
    c.give(c.emit("Reshape", {made, c.emit("Shape", {c["self"]})}));
  };
  table["aten::repeat_interleave.Tensor"] = [](Call& c) {
    c.give(c.model.cast(evaluate(c,
                                 "ends = CumSum(Cast{to=7}(@repeats), #0);"
                                 "behind = LessOrEqual(Unsqueeze(ends, [0]), Unsqueeze(Range(#0, "
                                 "ReduceSum{keepdims=0}(Cast{to=7}(@repeats)), #1), [1]));"
                                 "ReduceSum{keepdims=0}(Cast{to=7}(behind), [1])"),
                        DType::Int64, c.result_type()));
  };
  table["aten::slice_scatter"] = slice_scatter;
  table["aten::as_strided"] = view_by_strides;
  table["aten::_unique2"] = unique;
  table["aten::bincount"] = bincount;
  table["aten::kthvalue"] = kth_value;
}

}  // namespace umbra::io::onnx
