#include "ops/common/needs_data.h"

#include <map>

#include "dispatch/layers.h"
#include "ops/common/out_asks.h"
#include "ops/common/shape.h"

namespace umbra::ops {
namespace {

void refuse_meta(const Operator& op, DispatchKeySet, Value* frame) {
  refuse_lazy_lists(op, frame);
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

std::map<const Operator*, std::vector<int>>& likes() {
  static std::map<const Operator*, std::vector<int>> table;
  return table;
}

void describe_like(const Operator& op, DispatchKeySet, Value* frame) {
  const std::vector<int>& arguments = likes().at(&op);
  std::vector<Tensor> results;
  for (int k : arguments) {
    const Tensor& like = frame[k].tensor_ref();
    check(like.is_meta() || like.sym_numel() == 0,
          "Expected all tensors to be on the same device, but found at least two devices, ", like.device(),
          " and meta!");
    SymShape strides = strides_in_format(like, MemoryFormat::Preserve);
    results.push_back(allocate_tensor(like.sym_sizes(), strides, like.dtype(), like.device()));
  }
  for (size_t i = 0; i < results.size(); ++i) frame[i] = Value(std::move(results[i]));
}

/// A call with a meta tensor must not seem to have written one with data, if it has any.
void check_written(const Tensor& self) {
  check<NotImplementedError>(self.is_meta() || self.sym_numel() == 0,
                             "Cannot inplace into non-meta tensor with meta tensor argument");
}

void do_nothing(const Operator& op, DispatchKeySet, Value* frame) {
  refuse_lazy_lists(op, frame);
  if (op.return_count() == 0) return;
  check_written(frame[0].tensor_ref());
  frame[0] = Value(frame[0].tensor());
}

template <AsksInPlace asks> void write_by_sizes(const Operator&, DispatchKeySet, Value* frame) {
  Tensor self = frame[0].tensor();
  DType other = frame[1].is_tensor() ? frame[1].tensor_ref().dtype() : frame[1].to_scalar().dtype();
  if (frame[1].is_tensor()) {
    SymShape sizes = broadcast_shapes(self.sym_sizes(), frame[1].tensor_ref().sym_sizes());
    check(self.sym_sizes() == SymIntArrayRef(sizes), "output with shape ", to_string(self.sym_sizes()),
          " doesn't match the broadcast shape ", to_string(sizes));
  }
  bool whole = is_integral(self.dtype(), true);
  if (asks == AsksInPlace::NoFloatIntoInteger)
    check(!whole || !is_floating(other),
          "Promotion of int.add/sub_(float) in in-place ops are not possible due to element size change.");
  if (asks == AsksInPlace::CastOfQuotient)
    check(!whole, "result type ", kernel_name(default_dtype()), " can't be cast to the desired output type ",
          kernel_name(self.dtype()));
  check_written(self);
  self.impl()->bump_version();
  frame[0] = Value(std::move(self));
}

}  // namespace

void InPlaceOnMeta::operator()(OperatorBuilder& builder) const {
  auto* variant = const_cast<Operator*>(builder.op().inplace());
  set_own_layer(*variant, DispatchKey::Meta,
                asks == AsksInPlace::Nothing              ? write_by_sizes<AsksInPlace::Nothing>
                : asks == AsksInPlace::NoFloatIntoInteger ? write_by_sizes<AsksInPlace::NoFloatIntoInteger>
                                                          : write_by_sizes<AsksInPlace::CastOfQuotient>);
}

void LikeOnMeta::operator()(OperatorBuilder& builder) const {
  likes()[&builder.op()] = arguments;
  set_own_layer(builder.op(), DispatchKey::Meta, describe_like);
}

void NothingOnMeta::operator()(OperatorBuilder& builder) const {
  Operator* in_place = const_cast<Operator*>(builder.op().inplace());
  set_own_layer(in_place ? *in_place : builder.op(), DispatchKey::Meta, do_nothing);
}

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
