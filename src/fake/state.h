// What fake tensors remember: their value, or what was asked of it.
#pragma once

#include <optional>
#include <vector>

#include "dispatch/data_dependent.h"
#include "fake/own_numbers.h"
#include "umbra/fake/fake_mode.h"

namespace umbra {

/// Whether what is known of a piece of fake memory still holds. All tensors that lie in it share one: a write of known
/// values through one of them is known to the others, any other write ends what is known.
class KnownMemory final : public RefCounted {
 public:
  explicit KnownMemory(Storage storage) : storage_(std::move(storage)), version_(storage_->version()) {}
  bool current() const { return storage_->version() == version_; }
  /// The values behind were written as the fake memory was.
  void wrote_known_values() { version_ = storage_->version(); }

 private:
  Storage storage_;
  uint32_t version_;
};

/// A constant of the program; it lies in memory of which the value's storage is the image.
class ConstantFakeState final : public FakeState {
 public:
  ConstantFakeState(IntrusivePtr<FakeModeImpl> mode, IntrusivePtr<KnownMemory> memory, Tensor value)
      : memory(std::move(memory)), mode_(std::move(mode)), value_(std::move(value)) {}
  FakeModeImpl* mode() override { return mode_.get(); }
  const Tensor* constant() const override { return memory->current() ? &value_ : nullptr; }
  const Tensor* real() const override { return mode_->options().propagate_real_tensors ? constant() : nullptr; }

  const IntrusivePtr<KnownMemory> memory;

 private:
  IntrusivePtr<FakeModeImpl> mode_;
  Tensor value_;
};

/// What is known of a fake tensor's data without its being a constant: the value of a converted number, which item()
/// may be asked of, the symbols that stand for what it was asked, the real tensor that it carries. All but the last
/// hold until the memory is written.
class DataFakeState final : public FakeState, public ZeroMark {
 public:
  DataFakeState(IntrusivePtr<FakeModeImpl> mode, const Tensor& fake)
      : mode_(std::move(mode)), storage_(fake.storage()), version_(storage_->version()) {}
  FakeModeImpl* mode() override { return mode_.get(); }
  const Tensor* real() const override { return carried.defined() ? &carried : nullptr; }
  bool is_zero() const override { return zero && current(); }
  bool current() const { return storage_->version() == version_; }

  std::optional<Scalar> number;  // of a converted tensor. It is an input: what is computed from it is unknown
  bool zero = false;             // every element is zero
  Tensor carried;                // a real tensor on which operators run beside

  struct Asked {
    std::optional<Scalar> element;  // what item() gave
    std::optional<SymInt> count;    // of elements that are not zero
  };
  /// What the function that runs now has asked.
  Asked& asked() {
    uint64_t function = OwnNumbers::asking();
    for (auto& [by, answers] : asked_)
      if (by == function) return answers;
    return asked_.emplace_back(function, Asked{}).second;
  }

 private:
  std::vector<std::pair<uint64_t, Asked>> asked_;
  IntrusivePtr<FakeModeImpl> mode_;
  Storage storage_;
  uint32_t version_;
};

/// A fake tensor over a fake storage, without geometry.
Tensor fake_over(FakeModeImpl& mode, Storage storage, DType dtype, Device device);

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
  const Tensor* real = fake_real(fake);
  auto state = make_counted<DataFakeState>(IntrusivePtr<FakeModeImpl>(&mode), fake);
  if (real) state->carried = *real;
  fake.impl()->set_layer_state(state);
  return state.get();
}

/// The value of a fake tensor that item() may be asked of, or null.
inline const Scalar* known_number(const Tensor& fake) {
  DataFakeState* state = data_state(fake);
  return state && state->number ? &*state->number : nullptr;
}

/// What runs on data, beside fake tensors, runs below all layers and unseen by the fake mode.
class RunOnData {
 public:
  RunOnData() { dispatch_state() = {}; }

 private:
  WithoutMode without_{DispatchKey::Fake};
  SaveDispatchState state_;
};

/// Lets a fake tensor carry a real one.
inline void carry(FakeModeImpl& mode, const Tensor& fake, const Tensor& real) {
  if (DataFakeState* state = make_data_state(mode, fake)) state->carried = real;
}

/// A view starts with its base's state. What is known of one element, or of all, is known of the view's too; how many
/// are not zero, and what it carries, is its own.
inline void separate_view(FakeModeImpl& mode, const Tensor& view) {
  IntrusivePtr<RefCounted> before = view.impl()->layer_state();  // it may be the view's alone
  DataFakeState* base = view.is_fake() ? dynamic_cast<DataFakeState*>(before.get()) : nullptr;
  if (!base) return;
  view.impl()->set_layer_state(IntrusivePtr<FakeModeImpl>(&mode));
  if (!base->current() || !(base->number || base->asked().element || base->zero)) return;
  DataFakeState* own = make_data_state(mode, view);
  own->number = base->number;
  own->asked().element = base->asked().element;
  own->zero = base->zero;
}

}  // namespace umbra
