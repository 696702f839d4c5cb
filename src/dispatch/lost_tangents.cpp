#include "dispatch/lost_tangents.h"

namespace umbra {

namespace {
/// A handful: those of batch norms.
std::vector<std::pair<const Operator*, LostTangents>>& all() {
  static auto* list = new std::vector<std::pair<const Operator*, LostTangents>>;
  return *list;
}
}  // namespace

void refuse_tangents(OperatorBuilder& builder, std::initializer_list<const char*> arguments, const char* unless,
                     const char* error) {
  const Operator& op = builder.op();
  LostTangents lost{.unless = unless ? op.schema().find(unless) : -1, .error = error};
  for (const char* name : arguments) lost.arguments.push_back(static_cast<size_t>(op.schema().find(name)));
  all().emplace_back(&op, std::move(lost));
}

const LostTangents* lost_tangents(const Operator& op) {
  for (const auto& [known, lost] : all())
    if (known == &op) return &lost;
  return nullptr;
}

}  // namespace umbra
