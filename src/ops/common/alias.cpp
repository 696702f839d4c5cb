#include "ops/common/alias.h"

#include <atomic>

namespace umbra::ops {

namespace {

enum class Variant : uint8_t { Functional, InPlace, Out };

const Operator* out_variant(const Operator& functional) {
  for (const Operator* op : operator_overloads(functional.schema().space + "::" + functional.schema().name))
    if (op->functional() == &functional && op->has_out()) return op;
  return nullptr;
}

/// Found when first called: definitions come in any order.
struct Target {
  std::string name;
  Variant variant;
  mutable std::atomic<const Operator*> found = nullptr;

  const Operator& get() const {
    const Operator* op = found.load(std::memory_order_acquire);
    if (op) return *op;
    const Operator& base = get_operator(name);
    op = variant == Variant::Functional ? &base : variant == Variant::InPlace ? base.inplace() : out_variant(base);
    if (!op) fail<AttributeError>("'", name, "' has no such variant");
    found.store(op, std::memory_order_release);
    return *op;
  }
};

void redirect(const Operator& op, const char* target, Variant variant) {
  const_cast<Operator&>(op).mutable_definition().composite = {
      [](const void* context, Value* frame) { static_cast<const Target*>(context)->get().call(frame); },
      new Target{std::string("aten::") + target, variant}};
}

}  // namespace

void AliasOf::operator()(OperatorBuilder& builder) const {
  const Operator& op = builder.op();
  redirect(op, target, Variant::Functional);
  if (op.inplace()) redirect(*op.inplace(), target, Variant::InPlace);
  if (const Operator* out = out_variant(op)) redirect(*out, target, Variant::Out);
}

}  // namespace umbra::ops
