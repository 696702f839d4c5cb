// What fake tensors remember: their value, or what was asked of it.
#pragma once

#include <optional>

#include "umbra/fake/fake_mode.h"

namespace umbra {

/// Holds until the memory that the fake tensor stands for is written, through whichever alias.
class ConstantFakeState final : public FakeState {
 public:
  ConstantFakeState(IntrusivePtr<FakeModeImpl> mode, const Tensor& fake, Tensor value)
      : mode_(std::move(mode)), storage_(fake.storage()), version_(storage_->version()), value_(std::move(value)) {}
  FakeModeImpl* mode() override { return mode_.get(); }
  const Tensor* constant() const override { return storage_->version() == version_ ? &value_ : nullptr; }

 private:
  IntrusivePtr<FakeModeImpl> mode_;
  Storage storage_;
  uint32_t version_;
  Tensor value_;
};

/// What is known of a fake tensor's data without its being a constant: the value of a converted number, which item()
/// may be asked of, and the symbols that stand for what it was asked. It holds until the memory is written.
class DataFakeState final : public FakeState {
 public:
  DataFakeState(IntrusivePtr<FakeModeImpl> mode, const Tensor& fake, std::optional<Scalar> number = {})
      : number(number), mode_(std::move(mode)), storage_(fake.storage()), version_(storage_->version()) {}
  FakeModeImpl* mode() override { return mode_.get(); }
  bool current() const { return storage_->version() == version_; }

  std::optional<Scalar> number;   // of a converted tensor. It is an input: what is computed from it is unknown
  std::optional<Scalar> element;  // what item() gave
  std::optional<SymInt> count;    // of elements that are not zero

 private:
  IntrusivePtr<FakeModeImpl> mode_;
  Storage storage_;
  uint32_t version_;
};

/// What is remembered of a fake tensor's data, or null.
inline DataFakeState* data_state(const Tensor& fake) {
  if (!fake.is_fake()) return nullptr;
  auto* state = dynamic_cast<DataFakeState*>(fake.impl()->layer_state().get());
  return state && state->current() ? state : nullptr;
}

/// A place to remember what a fake tensor was asked; null where it is a constant.
inline DataFakeState* make_data_state(FakeModeImpl& mode, const Tensor& fake) {
  if (DataFakeState* state = data_state(fake)) return state;
  if (!fake.is_fake() || fake_constant(fake)) return nullptr;
  fake.impl()->set_layer_state(make_counted<DataFakeState>(IntrusivePtr<FakeModeImpl>(&mode), fake));
  return data_state(fake);
}

/// The value of a fake tensor that item() may be asked of, or null.
inline const Scalar* known_number(const Tensor& fake) {
  DataFakeState* state = data_state(fake);
  return state && state->number ? &*state->number : nullptr;
}

/// Lets a fake tensor remember its value.
inline void remember_constant(FakeModeImpl& mode, const Tensor& fake, const Tensor& value) {
  fake.impl()->set_layer_state(make_counted<ConstantFakeState>(IntrusivePtr<FakeModeImpl>(&mode), fake, value));
}

}  // namespace umbra
