// Conditions on sizes, prepared to be asked at each call.
#pragma once

#include <optional>
#include <vector>

#include "umbra/sym/expression.h"

namespace umbra::aot {

/// An expression of integers as a list of steps over numbered values. Expressions that need more than 64 bits or
/// floats have none.
class SizeProgram {
 public:
  /// `slot_of` gives the number of a symbol's value, or -1.
  template <class SlotOf> static std::optional<SizeProgram> of(const sym::Expression* e, SlotOf slot_of) {
    SizeProgram program;
    return program.add(e, slot_of) ? std::optional(std::move(program)) : std::nullopt;
  }

  /// Nothing where the value has more than 64 bits, or there is none (a division by zero).
  std::optional<int64_t> run(const int64_t* slots) const;

 private:
  static constexpr size_t kDeepest = 16, kLongest = 256;
  struct Step {
    sym::Kind kind;
    int64_t operand;  // a number, a slot, or how many values are combined
  };

  template <class SlotOf> bool add(const sym::Expression* e, SlotOf slot_of) {
    if (steps_.size() >= kLongest || e->depth() > kDeepest || e->args().size() > kDeepest) return false;
    switch (e->kind()) {
      case sym::Kind::Symbol: return slot_of(e) >= 0 && push(e->kind(), slot_of(e));
      case sym::Kind::Integer:
      case sym::Kind::Boolean:
        return e->integer() == static_cast<int64_t>(e->integer()) &&
               push(e->kind(), static_cast<int64_t>(e->integer()));
      default: break;
    }
    if (!is_known(e->kind()) || e->type() == sym::Type::Float) return false;
    for (const sym::Expression* argument : e->args())
      if (argument->type() == sym::Type::Float || !add(argument, slot_of)) return false;
    return push(e->kind(), static_cast<int64_t>(e->args().size()));
  }
  bool push(sym::Kind kind, int64_t operand) {
    steps_.push_back({kind, operand});
    return true;
  }
  static bool is_known(sym::Kind kind);

  std::vector<Step> steps_;
};

}  // namespace umbra::aot
