// Graphs whose sizes are symbols: which calls they are for, and what the symbols are in one call.
#pragma once

#include <optional>

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
  bool accept(const std::vector<Value>& inputs) const;
  /// The symbols' values in a call.
  sym::Bindings bind(const std::vector<Value>& inputs) const;
  /// A value with numbers in place of symbols, in lists too; nothing where only the run of a graph tells.
  std::optional<Value> evaluate(const Value& value, const sym::Bindings& bindings) const;

 private:
  IntrusivePtr<sym::ShapeEnv> env_;
  size_t first_ = 0;
  std::vector<SymInt> expected_;
};

}  // namespace umbra::aot
