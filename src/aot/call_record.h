// What a function did when it was analysed, in bytes: two functions with the same record have the same graphs.
#pragma once

#include <string>

#include "umbra/aot/analysis.h"

namespace umbra::aot {

/// The operators that a function calls while it runs, below autograd, with their arguments, the grad mode, and which
/// tensors need gradients.
class CallRecord {
 public:
  CallRecord();
  ~CallRecord();
  /// The function, recorded whenever it runs.
  ValueFunction watch(const ValueFunction& function);
  /// The bytes. `why_not` says what keeps them from telling everything: code of the user's that runs in the backward,
  /// constants, operators of a user's library.
  std::string finish(const CallInfo& info, std::string& why_not) const;

 private:
  class Recorder;
  IntrusivePtr<Recorder> recorder_;
};

}  // namespace umbra::aot
