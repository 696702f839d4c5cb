// Operators that work element by element.
#include "io/onnx/formula.h"
#include "umbra/generated/functions.h"

namespace umbra::io::onnx {

namespace {

Name self(const Call& c) { return c.as("self", c.result_type()); }

/// The type that two operands of a comparison meet in.
DType common_type(const Call& c) {
  const fx::Argument& other = c.argument("other");
  const Tensor& self = c.tensor("self");
  if (!other.node() || !other.node()->meta.val.is_tensor()) {
    bool real = other.node() ? other.node()->meta.val.tag() == Value::Tag::SymFloat : other.value().is_double();
    if (self.dtype() == DType::Bool) return real ? DType::Float32 : DType::Int64;
    return real && !self.is_floating_point() ? DType::Float32 : self.dtype();
  }
  const Tensor& second = other.node()->meta.val.tensor_ref();
  bool same_kind = self.is_floating_point() == second.is_floating_point();
  if (same_kind && self.dim() == 0 && second.dim() > 0) return second.dtype();
  if (same_kind && second.dim() == 0 && self.dim() > 0) return self.dtype();
  return promote_types(self.dtype(), second.dtype());
}

void add_unary(Table& table) {
  for (auto [name, type] : {std::pair("abs", "Abs"),
                            {"acos", "Acos"},
                            {"acosh", "Acosh"},
                            {"asin", "Asin"},
                            {"asinh", "Asinh"},
                            {"atan", "Atan"},
                            {"atanh", "Atanh"},
                            {"ceil", "Ceil"},
                            {"cos", "Cos"},
                            {"cosh", "Cosh"},
                            {"erf", "Erf"},
                            {"exp", "Exp"},
                            {"floor", "Floor"},
                            {"log", "Log"},
                            {"neg", "Neg"},
                            {"relu", "Relu"},
                            {"reciprocal", "Reciprocal"},
                            {"round", "Round"},
                            {"sigmoid", "Sigmoid"},
                            {"sign", "Sign"},
                            {"sin", "Sin"},
                            {"sinh", "Sinh"},
                            {"sqrt", "Sqrt"},
                            {"tan", "Tan"},
                            {"tanh", "Tanh"}})
    table[concat("aten::", name)] = [type = type](Call& c) { c.give(c.emit(type, {self(c)})); };
  table["aten::isnan"] = [](Call& c) { c.give(c.emit("IsNaN", {c["self"]})); };
  table["aten::signbit"] = [](Call& c) {
    DType dtype = c.type("self");
    Name zero = c.model.scalar(0, dtype);
    // A zero's sign is that of its reciprocal.
    c.give(evaluate(
        c, is_floating(dtype) ? "Less(Where(Equal(@self, zero), Reciprocal(@self), @self), zero)" : "Less(@self, zero)",
        {{"zero", zero}}));
  };
  table["aten::isinf"] = [](Call& c) { c.give(c.emit("IsInf", {c["self"]})); };
  table["aten::logical_not"] = [](Call& c) { c.give(c.emit("Not", {c.as("self", DType::Bool)})); };
  table["aten::bitwise_not"] = [](Call& c) {
    c.give(c.emit(c.result_type() == DType::Bool ? "Not" : "BitwiseNot", {c["self"]}));
  };
}

/// `self` and `other`, of the result's type.
Names operands(const Call& c) { return {self(c), c.as("other", c.result_type())}; }

/// The node of an operation, which of truth values is another one; a third operand stands only for 1 there.
const char* type_for(const Call& c, const char* type) {
  std::string_view name = type;
  if (c.result_type() != DType::Bool) return type;
  if (name == "Mul" || name == "Min") return "And";
  if (name == "Add" || name == "Max") return "Or";
  c.refuse("arithmetic of truth values");
}

auto of_operands(const char* type) {
  return [type](Call& c) { c.give(c.emit(type_for(c, type), operands(c))); };
}

/// The second operand times alpha.
auto of_scaled_operands(const char* type) {
  return [type](Call& c) {
    const char* chosen = type_for(c, type);
    Name other = c.as("other", c.result_type());
    bool truth = c.result_type() == DType::Bool;
    if (truth && c.plain("alpha").to_double() == 0) c.refuse("a sum of truth values with alpha=0");
    if (!truth && c.plain("alpha").to_double() != 1) other = c.emit("Mul", {other, c.as("alpha", c.result_type())});
    c.give(c.emit(chosen, {self(c), other}));
  };
}

constexpr const char* kTruncated = "Mul(Sign(x), Floor(Abs(x)))";

Name divided_down(const Call& c, const Names& parts) {
  if (c.result().is_floating_point()) return c.emit("Floor", {c.emit("Div", parts)});
  return c.emit("Div", {c.emit("Sub", {parts[0], c.emit("Mod", parts)}), parts[1]});
}

void divide_rounded(Call& c) {
  Names parts = operands(c);
  if (!c.has("rounding_mode")) return c.give(c.emit("Div", parts));
  if (c.plain("rounding_mode").to_string() == "floor") return c.give(divided_down(c, parts));
  Name quotient = c.emit("Div", parts);
  c.give(c.result().is_floating_point() ? evaluate(c, kTruncated, {{"x", quotient}}) : quotient);
}

void remainder(Call& c) {
  Names parts = operands(c);
  if (!c.result().is_floating_point()) return c.give(c.emit("Mod", parts));
  Name whole = divided_down(c, parts);
  c.give(c.emit("Sub", {parts[0], c.emit("Mul", {whole, parts[1]})}));
}

void add_arithmetic(Table& table) {
  for (const char* overload : {"Tensor", "Scalar"}) {
    table[concat("aten::add.", overload)] = of_scaled_operands("Add");
    table[concat("aten::sub.", overload)] = of_scaled_operands("Sub");
    table[concat("aten::mul.", overload)] = of_operands("Mul");
    table[concat("aten::div.", overload)] = of_operands("Div");
    table[concat("aten::div.", overload, "_mode")] = divide_rounded;
    table[concat("aten::remainder.", overload)] = remainder;
    table[concat("aten::fmod.", overload)] = [](Call& c) {
      c.give(c.emit("Mod", operands(c), Attributes().set("fmod", 1)));
    };
  }
  table["aten::rsub.Scalar"] = [](Call& c) { c.give(c.emit("Sub", {c.as("other", c.result_type()), self(c)})); };
  table["aten::maximum"] = of_operands("Max");
  table["aten::minimum"] = of_operands("Min");
  table["aten::floor_divide"] = [](Call& c) { c.give(divided_down(c, operands(c))); };
  for (const char* name : {"aten::pow.Tensor_Scalar", "aten::pow.Tensor_Tensor", "aten::pow.Scalar"})
    table[name] = [](Call& c) { c.give(c.emit("Pow", {self(c), c.as("exponent", c.result_type())})); };
}

void add_comparisons(Table& table) {
  for (auto [name, type] : {std::pair("eq", "Equal"),
                            {"ne", "Equal"},
                            {"lt", "Less"},
                            {"gt", "Greater"},
                            {"le", "LessOrEqual"},
                            {"ge", "GreaterOrEqual"}})
    for (const char* overload : {"Tensor", "Scalar"})
      table[concat("aten::", name, ".", overload)] = [type = type, negated = std::string_view(name) == "ne"](Call& c) {
        DType dtype = common_type(c);
        Name truth = c.emit(type, {c.as("self", dtype), c.as("other", dtype)});
        c.give(negated ? c.emit("Not", {truth}) : truth);
      };
  for (auto [name, type] : {std::pair("and", "And"), {"or", "Or"}, {"xor", "Xor"}}) {
    auto convert = [type = type](Call& c) {
      DType dtype = c.result_type();
      bool logical = dtype == DType::Bool;
      c.give(c.emit(logical ? type : concat("Bitwise", type).c_str(), {c.as("self", dtype), c.as("other", dtype)}));
    };
    for (const char* overload : {"Tensor", "Scalar"}) {
      table[concat("aten::bitwise_", name, ".", overload)] = convert;
      table[concat("aten::__", name, "__.", overload)] = convert;
    }
    table[concat("aten::logical_", name)] = [type = type](Call& c) {
      c.give(c.emit(type, {c.as("self", DType::Bool), c.as("other", DType::Bool)}));
    };
  }
}

void add_choices(Table& table) {
  for (const char* overload : {"self", "ScalarSelf", "ScalarOther", "Scalar"})
    table[concat("aten::where.", overload)] = [](Call& c) {
      c.give(c.emit("Where", {c.as("condition", DType::Bool), self(c), c.as("other", c.result_type())}));
    };
  for (const char* overload : {"Scalar", "Tensor"})
    table[concat("aten::masked_fill.", overload)] = [](Call& c) {
      c.give(c.emit("Where", {c["mask"], c.as("value", c.result_type()), self(c)}));
    };
  auto clamp = [](Call& c) {
    Name value = self(c);
    if (c.has("min")) value = c.emit("Max", {value, c.as("min", c.result_type())});
    if (c.has("max")) value = c.emit("Min", {value, c.as("max", c.result_type())});
    c.give(value);
  };
  table["aten::clamp"] = table["aten::clamp.Tensor"] = clamp;
  for (const char* overload : {"", ".Tensor"}) {
    table[concat("aten::clamp_min", overload)] = [](Call& c) {
      c.give(c.emit("Max", {self(c), c.as("min", c.result_type())}));
    };
    table[concat("aten::clamp_max", overload)] = [](Call& c) {
      c.give(c.emit("Min", {self(c), c.as("max", c.result_type())}));
    };
  }
}

void add_activations(Table& table) {
  table["aten::gelu"] = [](Call& c) {
    bool by_tanh = c.plain("approximate").to_string() == "tanh";
    const char* inner = by_tanh ? "Tanh(Mul(Add(self, Mul(Mul(self, Mul(self, self)), 0.044715)), 0.7978845608028654))"
                                : "Erf(Mul(self, 0.7071067811865476))";
    c.give(evaluate(c, "Mul(Mul(self, 0.5), Add(inner, 1))", {{"inner", evaluate(c, inner)}}));
  };
  table["aten::hardsigmoid"] = [](Call& c) {
    c.give(c.emit("HardSigmoid", {self(c)}, Attributes().set("alpha", 1.0 / 6).set("beta", 0.5)));
  };
  table["aten::hardswish"] = [](Call& c) { c.give(c.emit("HardSwish", {self(c)})); };
  table["aten::hardtanh"] = [](Call& c) {
    c.give(c.emit("Clip", {self(c), c.as("min_val", c.result_type()), c.as("max_val", c.result_type())}));
  };
  table["aten::leaky_relu"] = [](Call& c) {
    c.give(c.emit("LeakyRelu", {self(c)}, Attributes().set("alpha", c.plain("negative_slope").to_double())));
  };
  for (const char* name : {"aten::prelu", "aten::_prelu_kernel"})
    table[name] = [](Call& c) {
      Name weight = c["weight"];
      if (c.rank("weight") == 1 && c.rank("self") > 2) {
        std::vector<int64_t> shape(static_cast<size_t>(c.rank("self") - 1), 1);
        shape[0] = -1;
        weight = c.emit("Reshape", {weight, c.model.list(shape)});
      }
      c.give(c.emit("PRelu", {self(c), weight}));
    };
}

void add_formulas(Table& table) {
  static constexpr Formula kFormulas[] = {
      {"aten::rsqrt", "Reciprocal(Sqrt(self))"},
      {"aten::expm1", "Sub(Exp(self), 1)"},
      {"aten::log1p", "Log(Add(self, 1))"},
      {"aten::log2", "Div(Log(self), 0.6931471805599453)"},
      {"aten::log10", "Div(Log(self), 2.302585092994046)"},
      {"aten::exp2", "Pow(2, self)"},
      {"aten::erfc", "Sub(1, Erf(self))"},
      {"aten::square", "Mul(self, self)"},
      {"aten::trunc", "x = self; Mul(Sign(x), Floor(Abs(x)))"},
      {"aten::silu", "Mul(self, Sigmoid(self))"},
      {"aten::mish", "Mul(self, Tanh(Softplus(self)))"},
      {"aten::softplus", "x = Mul(self, beta); Where(Greater(x, threshold), self, Div(Softplus(x), beta))"},
      {"aten::elu", "x = self; Mul(scale, Where(Greater(x, 0), x, Mul(alpha, Sub(Exp(Mul(x, input_scale)), 1))))"},
      {"aten::ldexp.Tensor", "Mul(self, Pow(2, other))"},
      {"aten::round.decimals", "n = Pow(10, decimals); Div(Round(Mul(self, n)), n)"},
      // The angle of a point: both may be infinite, and zeros have signs.
      {"aten::atan2",
       "y = self; x = other; up = Not(Less(Where(Equal(y, 0), Reciprocal(y), y), 0));"
       "left = Less(Where(Equal(x, 0), Reciprocal(x), x), 0);"
       "q = Where(And(IsInf(x), IsInf(y)), Mul(Sign(x), Sign(y)), Where(Equal(y, 0), Mul(y, Where(left, -1, 1)), "
       "Div(y, x)));"
       "Add(Atan(q), Where(left, Where(up, 3.141592653589793, -3.141592653589793), 0))"},
      {"aten::hypot",
       "a = Abs(self); b = Abs(other); m = Max(a, b); d = Where(Equal(m, 0), 1, m); p = Div(a, d); q = Div(b, d);"
       "Where(Or(IsInf(a), IsInf(b)), Abs(Where(IsInf(a), a, b)), Mul(m, Sqrt(Add(Mul(p, p), Mul(q, q)))))"},
      {"aten::copysign.Tensor",
       "s = other; Where(Less(Where(Equal(s, 0), Reciprocal(s), s), 0), Neg(Abs(self)), Abs(self))"},
  };
  for (const Formula& formula : kFormulas)
    table[formula.name] = [text = formula.text](Call& c) { c.give(evaluate(c, text)); };
  for (auto [name, type] : {std::pair("fmax", "Max"), {"fmin", "Min"}})
    table[concat("aten::", name)] = [type = type](Call& c) {
      if (!c.result().is_floating_point()) return c.give(c.emit(type, operands(c)));
      Name both = c.emit(type, operands(c));
      c.give(evaluate(c, "Where(IsNaN(self), other, Where(IsNaN(other), self, both))", {{"both", both}}));
    };
  // Whole numbers are moved by factors of powers of two: a shift rounds down.
  for (bool left : {false, true}) {
    auto shift = [left](Call& c) {
      if (c.result_type() == DType::UInt64) c.refuse("shifts of unsigned numbers of 64 bits");
      Name number = c.as("self", DType::Int64), places = c.as("other", DType::Int64);
      Name made = evaluate(c, left ? "Mul(x, Pow(#2, n))" : "d = Pow(#2, n); Div(Sub(x, Mod(x, d)), d)",
                           {{"x", number}, {"n", places}});
      c.give(c.model.cast(made, DType::Int64, c.result_type()));
    };
    std::string name = left ? "left" : "right";
    for (const char* overload : {"Tensor", "Tensor_Scalar"})
      table[concat("aten::bitwise_", name, "_shift.", overload)] = shift;
    for (const char* overload : {"Tensor", "Scalar"})
      table[concat("aten::__", name.substr(0, 1), "shift__.", overload)] = shift;
  }
}

}  // namespace

void add_pointwise(Table& table) {
  add_formulas(table);
  add_unary(table);
  add_arithmetic(table);
  add_comparisons(table);
  add_choices(table);
  add_activations(table);
}

}  // namespace umbra::io::onnx
