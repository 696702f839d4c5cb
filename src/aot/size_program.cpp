#include "aot/size_program.h"

#include <algorithm>

namespace umbra::aot {

using sym::Kind;

bool SizeProgram::is_known(Kind kind) {
  switch (kind) {
    case Kind::Add:
    case Kind::Mul:
    case Kind::FloorDiv:
    case Kind::Mod:
    case Kind::Min:
    case Kind::Max:
    case Kind::Where:
    case Kind::Eq:
    case Kind::Ne:
    case Kind::Lt:
    case Kind::Le:
    case Kind::And:
    case Kind::Or:
    case Kind::Not: return true;
    default: return false;
  }
}

namespace {

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }

/// Combines two values; false where there is no result.
bool combine(Kind kind, int64_t a, int64_t b, int64_t& result) {
  switch (kind) {
    case Kind::Add: return !__builtin_add_overflow(a, b, &result);
    case Kind::Mul: return !__builtin_mul_overflow(a, b, &result);
    case Kind::Min: return result = std::min(a, b), true;
    case Kind::Max: return result = std::max(a, b), true;
    case Kind::Eq: return result = a == b, true;
    case Kind::Ne: return result = a != b, true;
    case Kind::Lt: return result = a < b, true;
    case Kind::Le: return result = a <= b, true;
    case Kind::And: return result = a && b, true;
    case Kind::Or: return result = a || b, true;
    default:
      if (b == 0 || b == -1) return false;
      result = kind == Kind::FloorDiv ? floor_divide(a, b) : a - floor_divide(a, b) * b;
      return true;
  }
}

}  // namespace

std::optional<int64_t> SizeProgram::run(const int64_t* slots) const {
  int64_t stack[kDeepest * kDeepest + kDeepest];
  int64_t* top = stack;  // behind the last value
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Kind::Symbol: *top++ = slots[step.operand]; continue;
      case Kind::Integer:
      case Kind::Boolean: *top++ = step.operand; continue;
      case Kind::Not: top[-1] = !top[-1]; continue;
      case Kind::Where:
        top -= 2;
        top[-1] = top[-1] ? top[0] : top[1];
        continue;
      default: break;
    }
    int64_t* first = top - step.operand;
    for (int64_t i = 1; i < step.operand; ++i)
      if (!combine(step.kind, *first, first[i], *first)) return std::nullopt;
    top = first + 1;
  }
  return stack[0];
}

}  // namespace umbra::aot
