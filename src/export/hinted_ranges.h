// Bounds that hints put on sizes: Dim.AUTO(max=5), Dim.DYNAMIC(min=3).
#pragma once

#include <string>
#include <vector>

#include "umbra/export/dim.h"
#include "umbra/export/exported_program.h"

namespace umbra {

/// The bounds of hints count for the program that was captured, not while it is captured, and the example need not be
/// within: what capture has found out is held against them at the end.
class HintedRanges {
 public:
  /// A size or an integer of the inputs; `place` is what users are told: "inputs['x'].shape[0]".
  void add(std::string place, SymInt number, int64_t example, const Dim& dim);
  /// ValueError where the example of a DYNAMIC is 0 or 1, which is no symbol from the start.
  void refuse_fixed_examples(sym::ShapeEnv& env) const;
  /// Narrows the program's ranges to what was asked for; ValueError where nothing is left, or one value of a DYNAMIC.
  void settle(sym::ShapeEnv& env, std::vector<RangeConstraint>& ranges) const;

 private:
  struct Entry {
    std::string place;
    SymInt number;
    int64_t example;
    Dim dim;
  };
  static std::string conflict(const Entry& entry, const sym::Range& found, const sym::Range& left);
  std::vector<Entry> entries_;
};

}  // namespace umbra
