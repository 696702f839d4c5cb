#include "ops/common/outputs_as_given.h"

namespace umbra::ops {

void OutputsAsGiven::operator()(OperatorBuilder& builder) const {
  const Operator& functional = builder.op();
  for (const Operator* op : operator_overloads(functional.schema().space + "::" + functional.schema().name)) {
    if (op->functional() != &functional || !op->has_out()) continue;
    const_cast<Operator*>(op)->mutable_definition().fake = {
        [](const void* context, Value* frame) {
          const auto& variant = *static_cast<const Operator*>(context);
          size_t first = variant.argument_count() - variant.return_count();
          for (size_t i = 0; i < variant.return_count(); ++i) frame[i] = Value(frame[first + i]);
        },
        op};
  }
}

}  // namespace umbra::ops
