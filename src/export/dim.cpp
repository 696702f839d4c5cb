#include "umbra/export/dim.h"

#include "umbra/core/error.h"

namespace umbra {

Dim::Dim(std::string name, Bounds bounds) : name_(std::move(name)), bounds_(bounds) {
  check<AssertionError>(bounds.max > bounds.min, "Cannot create Dim with inconsistent min=", bounds.min,
                        ", max=", bounds.max);
  bool identifier = !name_.empty() && !std::isdigit(static_cast<unsigned char>(name_[0]));
  for (char c : name_) identifier &= std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  check<AssertionError>(identifier, "Dim name must be a valid identifier, got ", name_);
}

Dim Dim::scaled(int64_t factor) const {
  check<NotImplementedError>(
      factor > 0, "Attempted to multiply ", factor, " with ", name_,
      ", where a positive integer was expected. (Only increasing linear operations with integer coefficients "
      "are supported.)");
  Dim out = *this;
  bool overflow =
      __builtin_mul_overflow(scale_, factor, &out.scale_) || __builtin_mul_overflow(offset_, factor, &out.offset_);
  check<ValueError>(!overflow, factor, " times ", text(), " is out of range");
  return out;
}

Dim Dim::shifted(int64_t number) const {
  Dim out = *this;
  check<ValueError>(!__builtin_add_overflow(offset_, number, &out.offset_), text(), " and ", number,
                    " is out of range");
  return out;
}

std::string Dim::text() const {
  std::string out = scale_ == 1 ? name_ : std::to_string(scale_) + "*" + name_;
  if (offset_ > 0) out += " + " + std::to_string(offset_);
  if (offset_ < 0) out += " - " + std::to_string(-offset_);
  return out;
}

}  // namespace umbra
