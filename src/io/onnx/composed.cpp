// Operators without a counterpart of their own, made of several: random numbers, distances, bags of embeddings.
#include <limits>

#include "io/onnx/formula.h"

namespace umbra::io::onnx {

namespace {

// ---- random numbers ----

void add_random(Table& table) {
  for (auto [name, type] : {std::pair("rand", "RandomUniformLike"), {"randn", "RandomNormalLike"}})
    for (bool like : {false, true})
      table[concat("aten::", name, like ? "_like" : "")] = [type = type, like](Call& c) {
        Name shape = like ? c["self"] : c.emit("ConstantOfShape", {c.sizes("size")});
        c.give(c.emit(type, {shape}, Attributes().set("dtype", element_type(c.result_type()))));
      };
  // From uniform numbers of [0, 1).
  auto from_uniform = [&](const std::string& name, const char* shape, const char* formula) {
    table[name] = [shape, formula](Call& c) {
      DType real = is_floating(c.result_type()) ? c.result_type() : DType::Float32;
      std::string given = shape;
      Name like = c.emit("ConstantOfShape", {given == "self" ? c.emit("Shape", {c["self"]}) : c.sizes(shape)});
      Name u = c.emit("RandomUniformLike", {like}, Attributes().set("dtype", element_type(real)));
      Bindings names = {{"u", u}};
      for (const char* bound : {"low", "high"})
        if (c.node().target().op()->schema().find(bound) >= 0) names.emplace_back(bound, c.as(bound, real));
      Name made = evaluate(c, formula, names);
      c.give(c.model.cast(made, real, c.result_type()));
    };
  };
  from_uniform("aten::uniform", "self", "Add(from, Mul(u, Sub(to, from)))");
  from_uniform("aten::exponential", "self", "Neg(Div(Log(Sub(1, u)), lambd))");
  from_uniform("aten::randint", "size", "Floor(Mul(u, high))");
  from_uniform("aten::randint.low", "size", "Add(low, Floor(Mul(u, Sub(high, low))))");
}

// ---- distances ----

/// Between the rows of two matrices.
void distances(Call& c) {
  Name rows = c.emit("Unsqueeze", {c["x1"], c.model.list({-2})});
  Name columns = c.emit("Unsqueeze", {c["x2"], c.model.list({-3})});
  c.give(norm(c, c.emit("Sub", {rows, columns}), c.plain("p").to_double(), {-1}, false));
}

// ---- bags of embeddings ----

Name part(const Call& c, const Name& list, int64_t from, int64_t to) {
  return c.emit("Slice", {list, c.model.list({from}), c.model.list({to})});
}

/// Which indices belong to which bag, as truth values: [bags, indices].
Name members(const Call& c, const Name& indices) {
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  Name count = c.size_of(indices, 0), offsets = c.as("offsets", DType::Int64);
  bool ended = c.flag("include_last_offset");
  Name starts = ended ? part(c, offsets, 0, -1) : offsets, later = part(c, offsets, 1, kEnd);
  Name ends = ended ? later : c.emit("Concat", {later, count}, Attributes().set("axis", 0));
  Name none = c.model.list({0}), zero = c.model.scalar(0, DType::Int64), one = c.model.scalar(1, DType::Int64);
  Name places = c.emit("Unsqueeze", {c.emit("Range", {zero, c.emit("Squeeze", {count, none}), one}), none});
  auto column = [&](const Name& list) { return c.emit("Unsqueeze", {list, c.model.list({1})}); };
  Name inside =
      c.emit("And", {c.emit("GreaterOrEqual", {places, column(starts)}), c.emit("Less", {places, column(ends)})});
  int64_t padding = c.number("padding_idx");
  if (padding < 0) return inside;
  Name counts = c.emit("Not", {c.emit("Equal", {indices, c.model.scalar(padding, DType::Int64)})});
  return c.emit("And", {inside, c.emit("Unsqueeze", {counts, none})});
}

void embedding_bag(Call& c) {
  if (c.uses(1) || c.uses(2) || c.uses(3)) c.refuse("results beside the embeddings");
  if (c.rank("indices") != 1) c.refuse("indices of several dimensions");
  DType dtype = c.result_type();
  Name indices = c.as("indices", DType::Int64), belongs = members(c, indices);
  Name rows = c.emit("Gather", {c["weight"], indices});
  if (c.has("per_sample_weights"))
    rows = c.emit("Mul", {rows, c.emit("Unsqueeze", {c["per_sample_weights"], c.model.list({1})})});
  Name weights = c.model.cast(belongs, DType::Bool, dtype), zero = c.model.scalar(0, dtype);
  Name counts = c.emit("ReduceSum", {weights, c.model.list({1})}, Attributes().set("keepdims", 1));
  enum Mode { kSum, kMean, kMax };
  int64_t mode = c.number("mode");
  Name made;
  if (mode == kMax) {
    Name lowest = c.model.scalar(-std::numeric_limits<double>::infinity(), dtype);
    Name all = c.emit("Where", {c.emit("Unsqueeze", {belongs, c.model.list({2})}),
                                c.emit("Unsqueeze", {rows, c.model.list({0})}), lowest});
    made = c.emit("ReduceMax", {all, c.model.list({1})}, Attributes().set("keepdims", 0));
    made = c.emit("Where", {c.emit("Greater", {counts, zero}), made, zero});  // a bag without members is zeros
  } else {
    made = c.emit("MatMul", {weights, rows});
    if (mode == kMean) made = c.emit("Div", {made, c.emit("Max", {counts, c.model.scalar(1, dtype)})});
  }
  c.give_many({made, "", "", ""});
}

}  // namespace

void add_composed(Table& table) {
  add_random(table);
  table["aten::_cdist_forward"] = distances;
  table["aten::_trilinear"] = [](Call& c) {
    Name product;
    for (auto [name, dims] : {std::pair("i1", "expand1"), {"i2", "expand2"}, {"i3", "expand3"}}) {
      Name factor = c.emit("Unsqueeze", {c[name], c.model.list(c.numbers(dims))});
      product = product.empty() ? factor : c.emit("Mul", {product, factor});
    }
    c.give(c.emit("ReduceSum", {product, c.model.list(c.numbers("sumdim"))}, Attributes().set("keepdims", 0)));
  };
  table["aten::_linalg_det"] = [](Call& c) {
    if (c.uses(1) || c.uses(2)) c.refuse("factors beside the determinant");
    c.give_many({c.emit("Det", {c["A"]}), "", ""});
  };
  table["aten::_embedding_bag"] = table["aten::_embedding_bag_forward_only"] = embedding_bag;
}

}  // namespace umbra::io::onnx
