#include "ops/common/tangents_through.h"

#include <unordered_map>

namespace umbra::ops {

namespace {
// Filled while definitions are made, read afterwards.
std::unordered_map<const Operator*, BoxedFunction>& forms() {
  static auto* all = new std::unordered_map<const Operator*, BoxedFunction>;
  return *all;
}
}  // namespace

void set_tangent_form(const Operator& op, BoxedFunction function) { forms().insert_or_assign(&op, function); }

const BoxedFunction* tangent_form(const Operator& op) {
  auto found = forms().find(&op);
  return found == forms().end() ? nullptr : &found->second;
}

}  // namespace umbra::ops
