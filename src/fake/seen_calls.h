// Counts fake calls by whether they were seen before; see umbra/fake/cache_info.h.
#pragma once

#include "umbra/dispatch/operator.h"
#include "umbra/fake/cache_info.h"

namespace umbra {

/// Set once somebody has asked for counts: the one thing the fast path looks at.
extern bool g_count_fake_calls;

/// One outermost fake call: made before it runs, told about the results after.
class SeenCall {
 public:
  SeenCall(const Operator& op, FakeModeImpl& mode, const Value* frame);
  ~SeenCall();
  SeenCall(const SeenCall&) = delete;
  void finish(const Operator& op, const Value* results);

 private:
  bool outermost_;
  std::string key_, bypass_;
};

}  // namespace umbra
