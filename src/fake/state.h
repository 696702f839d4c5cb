// A fake tensor whose value is known.
#pragma once

#include "umbra/fake/fake_mode.h"

namespace umbra {

class ConstantFakeState final : public FakeState {
 public:
  ConstantFakeState(IntrusivePtr<FakeModeImpl> mode, Tensor value) : mode_(std::move(mode)), value_(std::move(value)) {}
  FakeModeImpl* mode() override { return mode_.get(); }
  const Tensor* constant() const override { return &value_; }

 private:
  IntrusivePtr<FakeModeImpl> mode_;
  Tensor value_;
};

}  // namespace umbra
