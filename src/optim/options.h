// What the optimisers' sources share about options.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "umbra/core/error.h"

namespace umbra::optim {

inline void check_not_negative(const char* what, double value) {
  check<ValueError>(value >= 0, "Invalid ", what, ": ", value);
}

/// Shows a visitor options of any type as numbers.
class Visit {
 public:
  using Visitor = std::function<void(const std::string&, double&)>;
  explicit Visit(const Visitor& visitor) : visitor_(visitor) {}
  Visit& operator()(const char* name, double& value) {
    visitor_(name, value);
    return *this;
  }
  Visit& operator()(const char* name, bool& value) {
    double number = value;
    visitor_(name, number);
    value = number != 0;
    return *this;
  }
  Visit& operator()(const char* name, int64_t& value) {
    double number = static_cast<double>(value);
    visitor_(name, number);
    value = static_cast<int64_t>(number);
    return *this;
  }
  Visit& operator()(const char* name, std::pair<double, double>& value) {
    visitor_(std::string(name) + ".0", value.first);
    visitor_(std::string(name) + ".1", value.second);
    return *this;
  }

 private:
  const Visitor& visitor_;
};

}  // namespace umbra::optim
