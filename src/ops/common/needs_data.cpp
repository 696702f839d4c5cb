#include "ops/common/needs_data.h"

#include "dispatch/layers.h"
#include "ops/common/out_asks.h"

namespace umbra::ops {
namespace {

void refuse_meta(const Operator& op, DispatchKeySet, Value* frame) {
  bool copies = op.has_tag(Tag::Generated) && op.functional();
  const Operator& asked = copies ? *op.functional() : op;
  bool any = !copies;
  for (size_t i = 0; i < asked.argument_count(); ++i)
    frame[i].each_tensor([&](TensorImpl* t) { any |= t->device().type == DeviceType::Meta; });
  if (!any) {  // the operator has data, its outputs have none
    Frame arguments(asked, frame);
    asked.call(arguments.data());
    fail("Expected out tensor to have device like cpu, but got meta instead");
  }
  fail<NotImplementedError>(asked.name(),
                            ": attempted to run this operator with Meta tensors, but there was no fake impl or Meta "
                            "kernel registered.");
}

void refuse_outputs(const Operator& op, DispatchKeySet, Value*) {
  const Schema& schema = op.schema();
  fail<TypeError>(schema.name, "() got an unexpected keyword argument '",
                  schema.arguments[schema.arguments.size() - schema.returns.size()].name, "'");
}

}  // namespace

void NoOutputsOnMeta::operator()(OperatorBuilder& builder) const {
  set_own_layer(out_variant(builder.op(), variant), DispatchKey::Meta, refuse_outputs);
}

void NeedsData::operator()(OperatorBuilder& builder) const {
  Operator& functional = builder.op();
  if (variant) return set_own_layer(out_variant(functional, variant), DispatchKey::Meta, refuse_meta);
  set_own_layer(functional, DispatchKey::Meta, refuse_meta);
  for (const Operator* op : operator_overloads(functional.schema().space + "::" + functional.schema().name))
    if (op->functional() == &functional && op->has_out())
      set_own_layer(const_cast<Operator&>(*op), DispatchKey::Meta, refuse_meta);
}

}  // namespace umbra::ops
