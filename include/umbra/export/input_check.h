// Whether inputs fit a program: their types, the sizes it was captured for, and the conditions it relies on.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "umbra/export/exported_program.h"
#include "umbra/export/guard_calls.h"

namespace UMBRA_API umbra {

/// Inputs that a program does not take. In Python it is an AssertionError, as PyTorch raises it, and a RuntimeError, as
/// versions before 2.9 did.
class InputMismatch : public AssertionError {
 public:
  using AssertionError::AssertionError;
};

/// The checks of one program's inputs, prepared once for many calls.
class InputCheck {
 public:
  explicit InputCheck(const ExportedProgram& program);
  /// Throws an InputMismatch in PyTorch's words ("Guard failed: x.size()[0] <= 4096"), and what was given, where inputs
  /// do not fit.
  void run(const std::vector<Value>& inputs) const;
  /// What PyTorch's guards compute.
  GuardCalls calls() const;

 private:
  class Sizes;
  class Explanation;
  struct Input {
    std::string text;  // "parts['b'][0]"
    std::string path;  // "*args[1]['b'][0]"
    bool is_constant;
    Value expected;  // the constant, or what stood for the input in the capture
  };
  struct Condition {
    std::string text;
    const sym::Expression* condition;  // null where the text was not understood
  };
  /// A symbol of a condition: the size of an input, or with dimension -1 the input itself.
  struct Source {
    size_t input;
    int64_t dim;
    const sym::Expression* symbol;
  };
  void run_checks(const std::vector<Value>& inputs) const;
  /// What was expected and what was given, of the first input that does not fit; empty where sizes fit one by one.
  std::string explain(const std::vector<Value>& inputs) const;
  /// Whether a guard says that two sizes are equal, besides their being one symbol.
  bool compares(const GuardCalls::Size& a, const GuardCalls::Size& b) const;
  void read_guards(const std::vector<std::string>& guards);
  void check_input(const Input& input, const Value& actual, Sizes& sizes) const;
  void check_conditions(const std::vector<Value>& inputs) const;
  /// The values of a condition's sizes: "; x.size()[0] is 3".
  std::string given(const Condition& c, const sym::Bindings& bindings) const;
  bool check_symbolically(const Condition& c, const sym::Bindings& bindings,
                          const std::unordered_map<const sym::Expression*, SymInt>& symbolic) const;

  std::vector<Input> inputs_;
  std::unordered_map<std::string, sym::Range> ranges_;  // of sizes, by their expressions
  IntrusivePtr<sym::ShapeEnv> env_;                     // of the program
  IntrusivePtr<sym::ShapeEnv> guards_env_;              // of the conditions, whose symbols are their sources
  std::vector<Condition> conditions_;
  std::vector<Source> sources_;
};

}  // namespace umbra
