// Numbers that only the run tells, asked by functions that may run or not.
#pragma once

#include <cstdint>

namespace umbra {

/// What a fake tensor was asked (item(), how many elements are not zero) is remembered for the function that asked:
/// inside of another one, which runs in other circumstances, the same question has another symbol. What a branch checks
/// of its numbers is nothing that the other branch may count on.
class OwnNumbers {
 public:
  OwnNumbers();
  ~OwnNumbers();
  OwnNumbers(const OwnNumbers&) = delete;
  OwnNumbers& operator=(const OwnNumbers&) = delete;

  /// The function whose numbers are asked for; 0 outside of all.
  static uint64_t asking();

 private:
  uint64_t before_;
};

}  // namespace umbra
