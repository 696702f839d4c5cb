#include "ops/common/out_variant.h"

#include "umbra/dispatch/writes.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {

Operator& out_variant_of(const Operator& functional) {
  Operator* found = nullptr;
  for (const Operator* op : operator_overloads(functional.schema().space + "::" + functional.schema().name)) {
    if (op->functional() != &functional || !op->has_out()) continue;
    check(!found, functional.name(), " has several out variants");
    found = const_cast<Operator*>(op);
  }
  check(found, functional.name(), ": an out variant is spoken of before it is declared");
  return *found;
}

Tensor unwanted_out(const Tensor& like, DType dtype) { return empty({0}, {.dtype = dtype, .device = like.device()}); }

Tensor resized_out(const Tensor& out, SymIntArrayRef sizes) {
  return out.sym_sizes() == sizes ? out : out.resize_(sizes);
}

Tensor copied_out(const Tensor& out, const Tensor& result) {
  bool lost = result.is_meta() && !out.is_meta() && !result.is_fake();
  check(!lost, "Attempting to copy from device ", result.device(), " to device ", out.device(),
        ", but cross-device copies are not allowed!");
  warn_of_resize(out, result.sym_sizes());
  return resized_out(out, result.sym_sizes()).copy_(result);
}

void OutCopied::operator()(OperatorBuilder& builder) const {
  Operator& variant = out_variant_of(builder.op());
  variant.mutable_definition().composite = {
      [](const void* context, Value* frame) {
        const auto& [variant, refuses_as] = *static_cast<const std::pair<const Operator*, const char*>*>(context);
        const Operator& op = *variant;
        const Operator& functional = *op.functional();
        size_t first = functional.argument_count(), count = functional.return_count();
        std::vector<Tensor> outs;
        for (size_t i = 0; i < count; ++i) outs.push_back(frame[first + i].tensor());
        if (op.definition().meta) {  // what only the out variant refuses
          SpecList unused;
          op.definition().meta(unused, frame);
        }
        Frame inner(functional, frame);
        functional.call(inner.data());
        for (size_t i = 0; i < count; ++i) {
          const Tensor& r = inner[i].tensor_ref();
          check(!refuses_as || r.is_meta() || r.dtype() == outs[i].dtype(), refuses_as, " expected out tensor dtype ",
                kernel_name(r.dtype()), " but got: ", kernel_name(outs[i].dtype()));
          check_output_type(op, frame, outs[i], {r.sym_sizes(), r.sym_strides(), r.dtype(), r.device()});
        }
        for (size_t i = 0; i < count; ++i) frame[i] = Value(copied_out(outs[i], inner[i].tensor_ref()));
      },
      new std::pair<const Operator*, const char*>(&variant, refuses_as)};
}

}  // namespace umbra::ops
