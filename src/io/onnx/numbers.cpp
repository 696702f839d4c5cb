// Arithmetic on sizes: numbers are values of no dimensions, integers of 64 bits, floats of 64.
#include "io/onnx/call.h"
#include "umbra/generated/functions.h"

namespace umbra::io::onnx {

namespace {

bool is_real(const Value& value) { return value.is_double() || value.tag() == Value::Tag::SymFloat; }
bool is_truth(const Value& value) { return value.is_bool() || value.tag() == Value::Tag::SymBool; }

DType type_of(const Value& value) {
  return is_truth(value) ? DType::Bool : is_real(value) ? DType::Float64 : DType::Int64;
}

class Arithmetic {
 public:
  Arithmetic(Builder& model, Values& values, const fx::Node& node) : model_(model), values_(values), node_(node) {}

  bool run() {
    const std::string& name = node_.target().function()->name;
    static const std::unordered_map<std::string, const char*> plain = {
        {"operator.add", "Add"},        {"operator.sub", "Sub"},           {"operator.mul", "Mul"},
        {"operator.eq", "Equal"},       {"operator.lt", "Less"},           {"operator.gt", "Greater"},
        {"operator.le", "LessOrEqual"}, {"operator.ge", "GreaterOrEqual"}, {"torch.sym_max", "Max"},
        {"torch.sym_min", "Min"}};
    if (auto found = plain.find(name); found != plain.end()) return give(model_.emit(found->second, both()));
    if (name == "operator.ne") return give(model_.emit("Not", {model_.emit("Equal", both())}));
    if (name == "operator.neg") return give(model_.emit("Neg", {part(0, type_of(result()))}));
    if (name == "operator.floordiv" || name == "operator.mod") return divide(name == "operator.mod");
    if (name == "operator.truediv") return give(model_.emit("Div", {part(0, DType::Float64), part(1, DType::Float64)}));
    if (name == "operator.pow")
      return give(model_.emit("Pow", {part(0, type_of(result())), part(1, type_of(result()))}));
    if (name == "operator.and_" || name == "operator.or_") return logic(name == "operator.and_" ? "And" : "Or");
    if (name == "torch.sym_not") return give(model_.emit("Not", {part(0, DType::Bool)}));
    if (name == "torch.sym_float") return give(part(0, DType::Float64));
    if (name == "torch.sym_ite")
      return give(model_.emit("Where", {part(0, DType::Bool), part(1, type_of(result())), part(2, type_of(result()))}));
    return rounding(name);
  }

 private:
  const Value& result() const { return node_.meta.val; }
  Value shown(size_t i) const { return node_.arg(i).node() ? node_.arg(i).node()->meta.val : node_.arg(i).value(); }

  Name part(size_t i, DType dtype) const {
    const fx::Argument& argument = node_.arg(i);
    if (!argument.node()) return model_.scalar(argument.value().to_scalar(), dtype);
    return model_.cast(values_.at(argument.node()).at(0), type_of(argument.node()->meta.val), dtype);
  }
  Names both() const {
    DType dtype = is_real(shown(0)) || is_real(shown(1)) ? DType::Float64 : DType::Int64;
    return {part(0, dtype), part(1, dtype)};
  }
  bool give(Name name) {
    values_[&node_] = {std::move(name)};
    return true;
  }
  // Python rounds down, ONNX towards zero; Mod has the divisor's sign in both.
  bool divide(bool remainder) {
    if (is_real(shown(0)) || is_real(shown(1))) return false;
    Names parts = both();
    Name rest = model_.emit("Mod", parts);
    return give(remainder ? rest : model_.emit("Div", {model_.emit("Sub", {parts[0], rest}), parts[1]}));
  }
  bool logic(const char* type) {
    return is_truth(result()) && give(model_.emit(type, {part(0, DType::Bool), part(1, DType::Bool)}));
  }
  bool rounding(const std::string& name) {
    static const std::unordered_map<std::string, const char*> types = {
        {"math.floor", "Floor"}, {"math.ceil", "Ceil"}, {"round", "Round"}, {"builtins.round", "Round"}};
    if (name == "math.trunc") return give(model_.cast(part(0, DType::Float64), DType::Float64, DType::Int64));
    if (name == "torch._sym_sqrt" || name == "math.sqrt") return give(model_.emit("Sqrt", {part(0, DType::Float64)}));
    auto found = types.find(name);
    if (found == types.end() || node_.args().size() != 1) return false;
    return give(model_.cast(model_.emit(found->second, {part(0, DType::Float64)}), DType::Float64, DType::Int64));
  }

  Builder& model_;
  Values& values_;
  const fx::Node& node_;
};

}  // namespace

bool convert_number(Builder& builder, Values& values, const fx::Node& node) {
  return Arithmetic(builder, values, node).run();
}

}  // namespace umbra::io::onnx
