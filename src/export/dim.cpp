#include "umbra/export/dim.h"

#include "umbra/core/error.h"

namespace umbra {

Dim::Dim(std::string name, Bounds bounds) : name_(std::move(name)), bounds_(bounds) {
  check<AssertionError>(bounds.max > bounds.min, "Cannot create Dim with inconsistent min=", bounds.min, ", max=", bounds.max);
  bool identifier = !name_.empty() && !std::isdigit(static_cast<unsigned char>(name_[0]));
  for (char c : name_) identifier &= std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  check<AssertionError>(identifier, "Dim name must be a valid identifier, got ", name_);
}

std::string Dim::text() const {
  std::string out = scale_ == 1 ? name_ : std::to_string(scale_) + "*" + name_;
  if (offset_ > 0) out += " + " + std::to_string(offset_);
  if (offset_ < 0) out += " - " + std::to_string(-offset_);
  return out;
}

}  // namespace umbra
