// Constants: fake tensors whose values are known, since they are literals of the program or made of literals alone.
#include "fake/constants.h"

#include <algorithm>

#include "umbra/dispatch/writes.h"
#include "umbra/generated/functions.h"

namespace umbra {

namespace {

bool is_random(const Operator& op) {
  return op.definition().random || (op.functional() && op.functional()->definition().random);
}

/// Whether a call depends on a number that differs from run to run: its result is no constant then.
bool has_symbols(const Value& argument) {
  if (argument.is_symbolic()) return true;
  if (argument.is_tensor()) return !argument.tensor_ref().is_fake() && !argument.tensor_ref().storage()->has_data();
  if (argument.is_int_list())
    for (SymInt number : argument.int_list())
      if (number.is_symbolic()) return true;
  if (argument.is_list())
    for (const Value& item : argument.list())
      if (has_symbols(item)) return true;
  return false;
}
bool has_symbols(const Operator& op, const Value* frame) {
  return std::any_of(frame, frame + op.argument_count(), [](const Value& v) { return has_symbols(v); });
}

constexpr int64_t kLargestConstant = 128;  // elements: literals and small tables, not weights

ConstantFakeState& constant_state(const Tensor& fake) {
  return static_cast<ConstantFakeState&>(*fake.impl()->layer_state());
}

/// Lets a view remember its value, in the memory that it shares. Where elements share memory, a write through it would
/// not be the same write of the value's elements: such a view is unknown.
void remember_view(FakeModeImpl& mode, const IntrusivePtr<KnownMemory>& memory, const Tensor& fake,
                   const Tensor& value) {
  IntrusivePtr<FakeModeImpl> of(&mode);
  if (overlaps_itself(fake)) fake.impl()->set_layer_state(of);
  else fake.impl()->set_layer_state(make_counted<ConstantFakeState>(of, memory, value));
}

/// `.data` counts its writes apart; a constant that is written through it is written all the same.
void note_write_apart(const Tensor& written) {
  if (written.impl()->version_counter()) written.storage()->bump_version();
}

Tensor real_copy(const Tensor& value) {
  RunOnData scope;
  return value.clone();
}
}  // namespace

bool lift_literal(const Operator& op, FakeModeImpl& mode, Value* frame) {
  if (!op.has_tag(Tag::LiftsData)) return false;
  const Tensor& literal = frame[0].tensor_ref();
  bool small = literal.storage()->has_data() && literal.numel() <= kLargestConstant;
  // The value is the program's to write, the literal may be a graph's too.
  frame[0] = Value(small ? fake_with_constant(mode, real_copy(literal)) : mode.from_tensor(literal));
  return true;
}

bool fold_constants(const Operator& op, FakeModeImpl& mode, Value* frame) {
  if (op.is_mutable() || is_random(op) || op.is_view() || has_symbols(op, frame)) return false;
  for (size_t i = 0; i < op.argument_count(); ++i) {
    if (frame[i].is_tensor_list() || frame[i].is_list()) return false;
    // A literal that moves to another device cannot be followed there.
    if (frame[i].tag() == Value::Tag::Device && frame[i].to_device().type != DeviceType::CPU) return false;
  }
  Frame inner(op, frame);
  for (size_t i = 0; i < op.argument_count(); ++i)
    if (inner[i].is_tensor() && inner[i].tensor_ref().is_fake())
      inner[i] = Value(*fake_constant(inner[i].tensor_ref()));
  RunOnData scope;
  op.call(inner.data());
  for (size_t i = 0; i < op.return_count(); ++i)
    if (inner[i].is_tensor() && inner[i].tensor_ref().numel() > kLargestConstant) return false;
  for (size_t i = 0; i < op.return_count(); ++i)
    frame[i] = inner[i].is_tensor() ? Value(fake_with_constant(mode, inner[i].tensor_ref())) : std::move(inner[i]);
  return true;
}

void view_constant(const Operator& op, FakeModeImpl& mode, Value* frame) {
  if (has_symbols(op, frame)) {  // which elements it shows differs from run to run
    run_fake(op, mode, frame);
    for (size_t i = 0; i < op.return_count(); ++i)
      frame[i].each_tensor([&](TensorImpl* t) { t->set_layer_state(IntrusivePtr<RefCounted>(&mode)); });
    return;
  }
  Frame inner(op, frame);
  IntrusivePtr<KnownMemory> memory = constant_state(frame[0].tensor_ref()).memory;
  inner[0] = Value(*fake_constant(frame[0].tensor_ref()));
  run_fake(op, mode, frame);
  RunOnData scope;
  op.call(inner.data());
  if (frame[0].is_tensor()) return remember_view(mode, memory, frame[0].tensor_ref(), inner[0].tensor_ref());
  TensorList fakes = frame[0].tensor_list(), values = inner[0].tensor_list();
  for (size_t i = 0; i < fakes.size(); ++i) remember_view(mode, memory, fakes[i], values[i]);
}

bool write_constant(const Operator& op, FakeModeImpl& mode, Value* frame) {
  static const Operator& detach = get_operator("aten::detach_");  // changes metadata that no value has
  if (!op.is_mutable() || is_random(op) || op.argument_count() == 0 || has_symbols(op, frame)) return false;
  if (op.has_tag(Tag::InPlaceView) && &op != &detach) return false;
  for (size_t i = 0; i < op.argument_count(); ++i) {
    if (op.schema().arguments[i].alias.write != (i == 0)) return false;
    if (frame[i].is_tensor_list() || frame[i].is_list()) return false;
  }
  Tensor self = frame[0].tensor();
  if (!fake_constant(self)) return false;
  IntrusivePtr<KnownMemory> memory = constant_state(self).memory;
  Frame inner(op, frame);
  for (size_t i = 0; i < op.argument_count(); ++i)
    if (inner[i].is_tensor() && inner[i].tensor_ref().is_fake())
      inner[i] = Value(*fake_constant(inner[i].tensor_ref()));
  run_fake(op, mode, frame);
  RunOnData scope;
  op.call(inner.data());
  note_write_apart(self);
  memory->wrote_known_values();
  return true;
}

void forget_written_constants(const Operator& op, FakeModeImpl& mode, Value* frame) {
  for (size_t i = 0; i < op.argument_count(); ++i)
    if (op.schema().arguments[i].alias.write)
      frame[i].each_tensor([&](TensorImpl* t) {
        Tensor tensor{IntrusivePtr<TensorImpl>(t)};
        const Tensor* value = fake_constant(tensor);
        if (!value) return;
        Tensor kept = mode.options().propagate_real_tensors ? real_copy(*value) : Tensor();
        note_write_apart(tensor);
        t->set_layer_state(IntrusivePtr<RefCounted>(&mode));
        if (kept.defined()) carry(mode, tensor, kept);  // no constant any more, but what it is for the example is known
      });
}

}  // namespace umbra
