// Operators that work element by element.
#include <cmath>

#include "io/onnx/call.h"
#include "umbra/generated/functions.h"

namespace umbra::io::onnx {

namespace {

Name number(const Call& c, double value) { return c.model.scalar(value, c.result_type()); }
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
  table["aten::rsqrt"] = [](Call& c) { c.give(c.emit("Reciprocal", {c.emit("Sqrt", {self(c)})})); };
  table["aten::expm1"] = [](Call& c) { c.give(c.emit("Sub", {c.emit("Exp", {self(c)}), number(c, 1)})); };
  table["aten::log1p"] = [](Call& c) { c.give(c.emit("Log", {c.emit("Add", {self(c), number(c, 1)})})); };
  table["aten::log2"] = [](Call& c) { c.give(c.emit("Div", {c.emit("Log", {self(c)}), number(c, std::log(2.0))})); };
  table["aten::log10"] = [](Call& c) { c.give(c.emit("Div", {c.emit("Log", {self(c)}), number(c, std::log(10.0))})); };
  table["aten::square"] = [](Call& c) { c.give(c.emit("Mul", {self(c), self(c)})); };
  table["aten::trunc"] = [](Call& c) {
    c.give(c.emit("Mul", {c.emit("Sign", {self(c)}), c.emit("Floor", {c.emit("Abs", {self(c)})})}));
  };
  table["aten::isnan"] = [](Call& c) { c.give(c.emit("IsNaN", {c["self"]})); };
  table["aten::isinf"] = [](Call& c) { c.give(c.emit("IsInf", {c["self"]})); };
  table["aten::logical_not"] = [](Call& c) { c.give(c.emit("Not", {c.as("self", DType::Bool)})); };
  table["aten::bitwise_not"] = [](Call& c) {
    c.give(c.emit(c.result_type() == DType::Bool ? "Not" : "BitwiseNot", {c["self"]}));
  };
}

/// `self` and `other`, of the result's type.
Names operands(const Call& c) { return {self(c), c.as("other", c.result_type())}; }

void refuse_truth_values(const Call& c) {
  if (c.result_type() == DType::Bool) c.refuse("arithmetic of truth values");
}

auto of_operands(const char* type) {
  return [type](Call& c) {
    refuse_truth_values(c);
    c.give(c.emit(type, operands(c)));
  };
}

/// The second operand times alpha.
auto of_scaled_operands(const char* type) {
  return [type](Call& c) {
    refuse_truth_values(c);
    Name other = c.as("other", c.result_type());
    if (c.plain("alpha").to_double() != 1) other = c.emit("Mul", {other, c.as("alpha", c.result_type())});
    c.give(c.emit(type, {self(c), other}));
  };
}

Name divided_down(const Call& c, const Names& parts) {
  if (c.result().is_floating_point()) return c.emit("Floor", {c.emit("Div", parts)});
  return c.emit("Div", {c.emit("Sub", {parts[0], c.emit("Mod", parts)}), parts[1]});
}

void divide_rounded(Call& c) {
  Names parts = operands(c);
  if (!c.has("rounding_mode")) return c.give(c.emit("Div", parts));
  if (c.plain("rounding_mode").to_string() == "floor") return c.give(divided_down(c, parts));
  if (c.result().is_floating_point()) c.refuse("rounding_mode='trunc' of floats");
  c.give(c.emit("Div", parts));
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
    Name x = self(c), inner;
    if (c.plain("approximate").to_string() == "tanh") {
      Name cube = c.emit("Mul", {x, c.emit("Mul", {x, x})});
      Name sum = c.emit("Add", {x, c.emit("Mul", {cube, number(c, 0.044715)})});
      inner = c.emit("Tanh", {c.emit("Mul", {sum, number(c, std::sqrt(2 / M_PI))})});
    } else {
      inner = c.emit("Erf", {c.emit("Mul", {x, number(c, std::sqrt(0.5))})});
    }
    Name half = c.emit("Mul", {x, number(c, 0.5)});
    c.give(c.emit("Mul", {half, c.emit("Add", {inner, number(c, 1)})}));
  };
  table["aten::silu"] = [](Call& c) { c.give(c.emit("Mul", {self(c), c.emit("Sigmoid", {self(c)})})); };
  table["aten::mish"] = [](Call& c) {
    c.give(c.emit("Mul", {self(c), c.emit("Tanh", {c.emit("Softplus", {self(c)})})}));
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
  table["aten::elu"] = [](Call& c) {
    if (c.plain("scale").to_double() != 1 || c.plain("input_scale").to_double() != 1) c.refuse("other scales than 1");
    c.give(c.emit("Elu", {self(c)}, Attributes().set("alpha", c.plain("alpha").to_double())));
  };
  table["aten::softplus"] = [](Call& c) {
    double beta = c.plain("beta").to_double();
    Name scaled = c.emit("Mul", {self(c), number(c, beta)});
    Name smooth = c.emit("Div", {c.emit("Softplus", {scaled}), number(c, beta)});
    Name beyond = c.emit("Greater", {scaled, c.as("threshold", c.result_type())});
    c.give(c.emit("Where", {beyond, self(c), smooth}));
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

}  // namespace

void add_pointwise(Table& table) {
  add_unary(table);
  add_arithmetic(table);
  add_comparisons(table);
  add_choices(table);
  add_activations(table);
}

}  // namespace umbra::io::onnx
