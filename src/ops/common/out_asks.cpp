#include "ops/common/out_asks.h"

#include "core/cpp_name.h"

namespace umbra::ops {

Operator& out_variant(const Operator& functional, const char* name) {
  for (const Operator* op : operator_overloads(functional.schema().space + "::" + functional.schema().name))
    if (op->functional() == &functional && op->has_out() && op->name() == functional.schema().space + "::" + name)
      return const_cast<Operator&>(*op);
  fail(functional.name(), ": it has no variant ", name);
}

void check_written_type(const Tensor& self, const Tensor& out) {
  if (self.is_meta() || out.is_meta() || self.is_fake()) return;
  check(self.dtype() == out.dtype(), "Found dtype ", kernel_name(out.dtype()), " but expected ",
        kernel_name(self.dtype()));
}

namespace {

/// Puts the output's type in the place of the one that was not given.
void decide_type(const void* context, SpecList&, Value* frame) {
  const Operator& op = *static_cast<const Operator*>(context);
  Value& dtype = frame[op.schema().find("dtype")];
  const Tensor& out = frame[op.functional()->argument_count()].tensor_ref();
  if (dtype.is_none()) dtype = Value(out.dtype());
  SpecList unused;
  op.functional()->definition().meta(unused, frame);  // what is refused of the arguments comes first
  check_out_dtype(dtype.to_dtype(), out.dtype());
}

}  // namespace

void OutDecidesType::operator()(OperatorBuilder& builder) const {
  Operator& out = out_variant(builder.op(), variant);
  out.mutable_definition().meta = {decide_type, &out, nullptr};
}

}  // namespace umbra::ops
