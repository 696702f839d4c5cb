#include "ops/common/list_out.h"

#include "core/cpp_name.h"
#include "dispatch/layers.h"
#include "ops/common/out_variant.h"
#include "umbra/dispatch/dispatcher.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {

namespace {

/// What one variant does; lives as long as its operator.
struct Copying {
  const Operator& functional;
  ListOut options;
};

void refuse_history(const Operator& functional, const Value* frame) {
  if (!is_grad_enabled()) return;
  for (size_t i = 0; i <= functional.argument_count(); ++i)
    frame[i].each_tensor([&](TensorImpl* t) {
      check(!Tensor(IntrusivePtr<TensorImpl>(t)).requires_grad(), functional.schema().name,
            "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad.");
    });
}

void check_fits_result(const Tensor& out, const Tensor& result) {
  check_out_dtype(result.dtype(), out.dtype());
  check(out.device() == result.device() || result.is_meta(), "Expected out tensor to have device ", result.device(),
        ", but got ", out.device(), " instead");
}

void run_list_out(const void* context, Value* frame) {
  const auto& [functional, options] = *static_cast<const Copying*>(context);
  std::vector<Tensor> outs = frame[functional.argument_count()].tensor_list().vec();
  Frame inner(functional, frame);
  functional.call(inner.data());
  TensorList results = inner[0].tensor_list();
  check(outs.size() == results.size(), options.called, " expected an out= argument of size ", results.size(),
        ", got size ", outs.size());
  refuse_history(functional, frame);
  for (size_t i = 0; i < outs.size(); ++i) {
    if (options.resizes) check_fits_result(outs[i], results[i]);
    if (options.resizes) copied_out(outs[i], results[i]);
    else outs[i].copy_(results[i]);
  }
}

}  // namespace

void ListOut::operator()(OperatorBuilder& builder) const {
  Schema schema = builder.op().schema();
  size_t dot = name.find('.');
  schema.name = name.substr(0, dot);
  schema.overload = dot == std::string::npos ? "" : name.substr(dot + 1);
  schema.arguments.push_back({"out", schema.returns[0].type, {"a", true}, true, std::nullopt});
  schema.returns.clear();  // a list that is written is not returned
  Operator& variant = register_operator(std::move(schema));
  auto* copying = new Copying{builder.op(), *this};
  if (called.empty()) copying->options.called = name;
  variant.mutable_definition().all_backends = {run_list_out, copying};
}

}  // namespace umbra::ops
