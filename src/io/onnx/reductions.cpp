// Operators that make one number of many.
#include <cmath>

#include "io/onnx/formula.h"
#include "umbra/generated/functions.h"

namespace umbra::io::onnx {

namespace {

Name reduce(const Call& c, const char* type, const Name& value, const std::vector<int64_t>& dims, bool keep) {
  return c.emit(type, {value, c.model.list(dims)}, Attributes().set("keepdims", keep));
}

bool has_argument(const Call& c, std::string_view name) { return c.node().target().op()->schema().find(name) >= 0; }
std::vector<int64_t> dims_of(const Call& c) {
  std::vector<int64_t> all;
  for (int64_t d = 0; d < c.rank("self"); ++d) all.push_back(d);
  return has_argument(c, "dim") ? c.dims("dim") : all;
}
bool keeps(const Call& c) { return has_argument(c, "keepdim") && c.flag("keepdim"); }

/// A reduction in the result's type.
std::function<void(Call&)> reduction(const char* type) {
  return [type](Call& c) { c.give(reduce(c, type, c.as("self", c.result_type()), dims_of(c), keeps(c))); };
}

/// The number of elements that each result is made of, in the result's type.
Name count(const Call& c, const std::vector<int64_t>& dims) {
  Name sizes = c.emit("Gather", {c.emit("Shape", {c["self"]}), c.model.list(dims)});
  return c.model.cast(c.emit("ReduceProd", {sizes}, Attributes().set("keepdims", 0)), DType::Int64, c.result_type());
}

Name variance(const Call& c, const std::vector<int64_t>& dims, double correction, bool keep) {
  Name x = c["self"], mean = reduce(c, "ReduceMean", x, dims, true), off = c.emit("Sub", {x, mean});
  Name squares = reduce(c, "ReduceSum", c.emit("Mul", {off, off}), dims, keep);
  Name rest = c.emit("Sub", {count(c, dims), c.model.scalar(correction, c.result_type())});
  return c.emit("Div", {squares, rest});
}

double correction_of(const Call& c) {
  if (!has_argument(c, "correction")) return c.flag("unbiased") ? 1 : 0;
  Value given = c.plain("correction");
  return given.is_none() ? 1 : given.to_double();
}

void add_variances(Table& table) {
  for (const char* overload : {"", ".dim", ".correction"}) {
    table[concat("aten::var", overload)] = [](Call& c) { c.give(variance(c, dims_of(c), correction_of(c), keeps(c))); };
    table[concat("aten::std", overload)] = [](Call& c) {
      c.give(c.emit("Sqrt", {variance(c, dims_of(c), correction_of(c), keeps(c))}));
    };
    table[concat("aten::var_mean", overload)] = [](Call& c) {
      c.give_many({variance(c, dims_of(c), correction_of(c), keeps(c)),
                   reduce(c, "ReduceMean", c["self"], dims_of(c), keeps(c))});
    };
  }
}

void add_extremes(Table& table) {
  for (auto [name, best, place] : {std::tuple("max", "ReduceMax", "ArgMax"), {"min", "ReduceMin", "ArgMin"}}) {
    table[concat("aten::a", name)] = table[concat("aten::", name)] = reduction(best);
    table[concat("aten::", name, ".dim")] = [best = best, place = place](Call& c) {
      int64_t dim = c.dim("dim");
      Name index = c.emit(place, {c["self"]}, Attributes().set("axis", dim).set("keepdims", keeps(c)));
      c.give_many({reduce(c, best, c["self"], {dim}, keeps(c)), index});
    };
    table[concat("aten::arg", name)] = [place = place](Call& c) {
      bool flat = !c.has("dim");
      Name value = flat ? c.emit("Reshape", {c["self"], c.model.list({-1})}) : c["self"];
      c.give(
          c.emit(place, {value}, Attributes().set("axis", flat ? 0 : c.dim("dim")).set("keepdims", !flat && keeps(c))));
    };
  }
}

void add_truths(Table& table) {
  for (auto [name, type] : {std::pair("any", "ReduceMax"), {"all", "ReduceMin"}})
    for (const char* overload : {"", ".dim", ".dims"})
      table[concat("aten::", name, overload)] = [type = type](Call& c) {
        Name numbers = c.model.cast(c.as("self", DType::Bool), DType::Bool, DType::Int32);
        c.give(c.model.cast(reduce(c, type, numbers, dims_of(c), keeps(c)), DType::Int32, DType::Bool));
      };
}

}  // namespace

Name norm(const Call& c, const Name& self, double order, const std::vector<int64_t>& dims, bool keep) {
  if (order == 1 || order == 2) return reduce(c, order == 1 ? "ReduceL1" : "ReduceL2", self, dims, keep);
  Name sizes = c.emit("Abs", {self});
  if (std::isinf(order)) return reduce(c, order > 0 ? "ReduceMax" : "ReduceMin", sizes, dims, keep);
  Bindings all = {{"sizes", sizes}};
  if (order == 0)
    return reduce(c, "ReduceSum", c.model.cast(evaluate(c, "Not(Equal(sizes, 0))", all), DType::Bool, c.result_type()),
                  dims, keep);
  Name exponent = c.model.scalar(order, c.result_type());
  Name sum = reduce(c, "ReduceSum", c.emit("Pow", {sizes, exponent}), dims, keep);
  return c.emit("Pow", {sum, c.emit("Reciprocal", {exponent})});
}

void add_reductions(Table& table) {
  table["aten::sum"] = table["aten::sum.dim_IntList"] = reduction("ReduceSum");
  table["aten::mean"] = table["aten::mean.dim"] = reduction("ReduceMean");
  table["aten::prod"] = table["aten::prod.dim_int"] = reduction("ReduceProd");
  table["aten::logsumexp"] = reduction("ReduceLogSumExp");
  table["aten::linalg_vector_norm"] = [](Call& c) {
    c.give(norm(c, c.as("self", c.result_type()), c.plain("ord").to_double(), dims_of(c), keeps(c)));
  };
  table["aten::dist"] = [](Call& c) {
    Name flat = evaluate(c, "Reshape(Sub(self, other), [-1])");
    c.give(norm(c, flat, c.plain("p").to_double(), {0}, false));
  };
  table["aten::cumsum"] = [](Call& c) {
    c.give(c.emit("CumSum", {c.as("self", c.result_type()), c.model.scalar(c.dim("dim"), DType::Int64)}));
  };
  add_variances(table);
  add_extremes(table);
  add_truths(table);
}

}  // namespace umbra::io::onnx
