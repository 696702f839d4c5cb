// Calls of composites before they come apart.
#pragma once

#include <functional>

#include "umbra/dispatch/operator.h"

namespace UMBRA_API umbra {

/// While it lasts, a composite that is about to come apart is offered to a function first: where that gives true it has
/// put the results into the frame, and the composite stays whole. The innermost one is asked.
class TakeComposites {
 public:
  using Function = std::function<bool(const Operator& op, Value* frame)>;
  explicit TakeComposites(Function take);
  ~TakeComposites();
  TakeComposites(const TakeComposites&) = delete;
  TakeComposites& operator=(const TakeComposites&) = delete;

 private:
  Function take_;
  const Function* before_;
};

/// Whether one that lasts has taken the call.
bool offer_composite(const Operator& op, Value* frame);

}  // namespace umbra
