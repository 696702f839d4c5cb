// What is said of inputs that do not fit a program: found again, input by input, once a check has failed.
#include "umbra/export/input_check.h"
#include "umbra/sym/print.h"

namespace umbra {

/// Follows the inputs in order, giving symbols values on the way, up to the first that does not fit.
class InputCheck::Explanation {
 public:
  explicit Explanation(const InputCheck& check) : check_(check), env_(*check.env_) {}

  std::string input(const Input& expected, const Value& actual) {
    const Value& want = expected.expected;
    if (expected.is_constant) return constant(expected.path, want, actual);
    if (want.is_sym_int())
      return actual.is_int() ? number(expected.path, want.to_sym_int(), actual.to_int(), false) : "";
    if (!want.is_tensor() || !actual.is_tensor()) return "";
    const Tensor &tensor = want.tensor_ref(), &given = actual.tensor_ref();
    if (tensor.dim() != given.dim())
      return concat("Unexpected number of dimensions in input at ", expected.path, ".shape (expected ", shape(tensor),
                    ", got ", shape(given), ")");
    if (tensor.dtype() != given.dtype())
      return concat("Expected input at ", expected.path, " to be of type ", tensor.dtype(), ", but got ",
                    given.dtype());
    for (int64_t d = 0; d < tensor.dim(); ++d) {
      SymInt size = given.sym_sizes()[d];
      if (size.is_symbolic()) continue;
      std::string path = expected.path + ".shape[" + std::to_string(d) + "]";
      if (std::string text = number(path, tensor.sym_sizes()[d], size.value(), true); !text.empty()) return text;
    }
    return "";
  }

 private:
  static std::string shape(const Tensor& tensor) { return "torch.Size(" + to_string(tensor.sym_sizes()) + ")"; }
  static std::string plain(const Value& value) { return value.is_string() ? value.to_string() : to_string(value); }

  static std::string constant(const std::string& path, const Value& want, const Value& actual) {
    if (actual.equals(want)) return "";
    return concat("Expected input at ", path, " to be equal to ", plain(want), ", but got ", plain(actual));
  }

  std::string number(const std::string& path, SymInt want, int64_t actual, bool size) {
    if (!want.is_symbolic()) {
      if (want.value() == actual) return "";
      return concat(
          "Expected input at ", path, " to be equal to ", want.value(), ", but got ", actual,
          size ? ". If you meant for this dimension to be dynamic, please re-export and specify dynamic_shapes "
                 "(e.g. with Dim.DYNAMIC)"
               : "");
    }
    const sym::Expression* e = env_.expression(want);
    std::vector<const sym::Expression*> unknown;
    for (const sym::Expression* s : sym::free_symbols(e))
      if (!bindings_.find(s)) unknown.push_back(s);
    if (unknown.size() > 1) return "";
    if (unknown.empty()) {
      std::optional<sym::Number> value = env_.evaluate(e, bindings_);
      if (value && value->integer == actual) return range(path, e, actual);
      return value ? concat("Expected input at ", path, " to be equal to ", integer_text(value->integer), ", but got ",
                            actual)
                   : "";
    }
    if (!solve(e, unknown[0], actual))
      return concat("Expected input ", path, " = ", actual, " to be of the form ", sym::to_text(e), ", where ",
                    sym::to_text(unknown[0]), " is an integer");
    return range(path, e, actual);
  }

  /// The symbol's value, where the expression grows evenly with it.
  bool solve(const sym::Expression* e, const sym::Expression* symbol, int64_t actual) {
    auto at = [&](int64_t value) {
      sym::Bindings trial = bindings_;
      trial.set(symbol, value);
      return env_.evaluate(e, trial);
    };
    std::optional<sym::Number> zero = at(0), one = at(1);
    Integer slope = zero && one ? one->integer - zero->integer : 0;
    if (slope == 0 || (actual - zero->integer) % slope != 0) return false;
    bindings_.set(symbol, to_int64((actual - zero->integer) / slope));
    return true;
  }

  std::string range(const std::string& path, const sym::Expression* e, int64_t actual) const {
    auto found = check_.ranges_.find(sym::to_text(e));
    if (found == check_.ranges_.end()) return "";
    const auto& [lower, upper] = found->second;
    // A lower bound of 2 comes from the example, not from the program.
    if (lower > 2 && actual < lower)
      return concat("Expected input at ", path, " to be >= ", integer_text(lower), ", but got ", actual);
    if (actual > upper)
      return concat("Expected input at ", path, " to be <= ", integer_text(upper), ", but got ", actual);
    return "";
  }

  const InputCheck& check_;
  sym::ShapeEnv& env_;
  sym::Bindings bindings_;
};

std::string InputCheck::explain(const std::vector<Value>& inputs) const {
  Explanation explanation(*this);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (std::string text = explanation.input(inputs_[i], inputs[i]); !text.empty()) return text;
  return "";
}

}  // namespace umbra
