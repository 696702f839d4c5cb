// Fake tensors whose value is known.
#pragma once

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

/// A converted tensor that item() may be asked of. Unlike a constant it is an input of the program: what is computed
/// from it is unknown.
class NumberFakeState final : public FakeState {
 public:
  NumberFakeState(IntrusivePtr<FakeModeImpl> mode, const Tensor& fake, Scalar value)
      : mode_(std::move(mode)), storage_(fake.storage()), version_(storage_->version()), value_(value) {}
  FakeModeImpl* mode() override { return mode_.get(); }
  const Scalar* number() const { return storage_->version() == version_ ? &value_ : nullptr; }

 private:
  IntrusivePtr<FakeModeImpl> mode_;
  Storage storage_;
  uint32_t version_;
  Scalar value_;
};

/// The value of a fake tensor that item() may be asked of, or null.
inline const Scalar* known_number(const Tensor& fake) {
  if (!fake.is_fake()) return nullptr;
  auto* state = dynamic_cast<const NumberFakeState*>(fake.impl()->layer_state().get());
  return state ? state->number() : nullptr;
}

/// Lets a fake tensor remember its value.
inline void remember_constant(FakeModeImpl& mode, const Tensor& fake, const Tensor& value) {
  fake.impl()->set_layer_state(make_counted<ConstantFakeState>(IntrusivePtr<FakeModeImpl>(&mode), fake, value));
}

}  // namespace umbra
