// Whether inputs fit a program: their types, the sizes it was captured for, and the conditions it relies on.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "umbra/export/exported_program.h"

namespace UMBRA_API umbra {

/// The checks of one program's inputs, prepared once for many calls.
class InputCheck {
 public:
  explicit InputCheck(const ExportedProgram& program);
  /// Throws an AssertionError in PyTorch's words ("Guard failed: x.size()[0] <= 4096") where inputs do not fit.
  void run(const std::vector<Value>& inputs) const;

 private:
  class Sizes;
  struct Input {
    std::string text;  // "parts['b'][0]"
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
  void read_guards(const std::vector<std::string>& guards);
  void check_input(const Input& input, const Value& actual, Sizes& sizes) const;
  void check_conditions(const std::vector<Value>& inputs) const;
  bool check_symbolically(const Condition& c, const sym::Bindings& bindings,
                          const std::unordered_map<const sym::Expression*, SymInt>& symbolic) const;

  std::vector<Input> inputs_;
  IntrusivePtr<sym::ShapeEnv> env_;         // of the program
  IntrusivePtr<sym::ShapeEnv> guards_env_;  // of the conditions, whose symbols are their sources
  std::vector<Condition> conditions_;
  std::vector<Source> sources_;
};

}  // namespace umbra
