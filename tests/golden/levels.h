// The levels at which a record is checked. Each throws a Mismatch where the behaviour differs, and gives false where
// the record has nothing to say at that level.
#pragma once

#include "records.h"

namespace umbra::golden {

struct Mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

bool check_forward(const Operator& op, const Group& group, const Json& record);
bool check_gradient(const Operator& op, const Group& group, const Json& record);
bool check_tangent(const Operator& op, const Group& group, const Json& record);
bool check_fake(const Operator& op, const Group& group, const Json& record);
/// Sizes that are symbols have the values of real ones; see symbolic.cpp.
bool check_symbolic(const Operator& op, const Group& group, const Json& record);
bool check_error(const Operator& op, const Group& group, const Json& record);
/// Variants of the call with something wrong end in order; see robust.cpp.
bool check_robust(const Operator& op, const Group& group, const Json& record);
/// What writes does and refuses the same under functionalisation; see functional.cpp.
bool check_functional(const Operator& op, const Group& group, const Json& record);

/// Makes one thing wrong in a call's arguments; the same thing for the same seed.
void make_wrong(const std::string& seed, Json& record, std::vector<Tensor>& tensors);

/// Going back twice gives what differences of the gradient give; see second.cpp.
bool check_second(const Operator& op, const Group& group, const Json& record);

/// vmap over stacked inputs gives what a loop gives; see vmap.cpp.
bool check_vmap(const Operator& op, const Group& group, const Json& record);

}  // namespace umbra::golden
