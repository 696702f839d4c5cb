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

/// A composite calls the operators that PyTorch's calls; see calls.cpp.
bool check_calls(const Operator& op, const Group& group, const Json& record);

/// In-place and out variants give what the operator gives; see properties.cpp.
bool check_variants(const Operator& op, const Group& group, const Json& record);
/// Results depend neither on how inputs lie in memory nor on the number of threads.
bool check_layout(const Operator& op, const Group& group, const Json& record);
/// A captured call gives what the call gave.
bool check_replay(const Operator& op, const Group& group, const Json& record);

/// Derivatives are the same where hooks keep copies of what is saved, and hooks are asked once for each.
bool check_hooks(const Operator& op, const Group& group, const Json& record);

/// Throws a Mismatch where elements differ by more than [relative, absolute].
void check_close(const Tensor& got, const Tensor& want, const Json& tolerance, const std::string& what);

/// Throws a Mismatch where the tensors of two runs of a record differ, other than in outputs that it leaves out.
void check_same(const std::vector<Tensor>& got, const std::vector<Tensor>& want, const Json& record,
                const std::string& what);

/// Compiled ahead of time, a call gives what it gives, gradients included; see aot.cpp.
bool check_aot(const Operator& op, const Group& group, const Json& record);

/// vmap over stacked inputs gives what a loop gives; see vmap.cpp.
bool check_vmap(const Operator& op, const Group& group, const Json& record);

}  // namespace umbra::golden
