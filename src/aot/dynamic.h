// Graphs whose sizes are symbols: which calls they are for, and what the symbols are in one call.
#pragma once

#include <optional>

#include "aot/size_program.h"
#include "umbra/aot/analysis.h"

namespace umbra::aot {

/// The calls that may run graphs: those whose sizes and integers could have been the example's. Without symbols all
/// are.
class DynamicSizes {
 public:
  DynamicSizes() = default;
  /// `first` is the first input whose sizes may differ from call to call.
  DynamicSizes(const CallInfo& info, size_t first);

  /// Whether the numbers of these inputs keep the guards. One that cannot be evaluated is not kept.
  bool accept(ArrayRef<Value> inputs) const;
  /// The first condition that these inputs break, with the user's line where it is known; empty where they keep all.
  std::string broken_by(ArrayRef<Value> inputs) const;
  /// The symbols' values in a call.
  sym::Bindings bind(ArrayRef<Value> inputs) const;
  /// A value with numbers in place of symbols, in lists too; nothing where only the run of a graph tells.
  std::optional<Value> evaluate(const Value& value, const sym::Bindings& bindings) const;

 private:
  enum class Answer : uint8_t { No, Yes, AskExpressions };
  struct Condition {
    SizeProgram program;
    int64_t value = 1;  // what it has to give
    size_t number = 0;  // with `is_number`: it has to give this number of the call
    bool is_number = false;
  };
  void prepare();
  Answer ask_programs(const int64_t* numbers) const;
  size_t condition_count() const { return env_->guards().size() + env_->assumptions().size(); }

  IntrusivePtr<sym::ShapeEnv> env_;
  size_t first_ = 0;
  std::vector<SymInt> expected_;
  // The same, to be asked fast: the number that each symbol is, its range, and all else that has to hold of them.
  bool has_programs_ = false;
  size_t known_conditions_ = 0;  // conditions may come later, when a compiler asks for a size
  std::vector<std::pair<size_t, sym::Range>> symbols_;
  std::vector<Condition> conditions_;
};

}  // namespace umbra::aot
