// Fake tensors: shapes, strides, types and devices without data. Nothing below allocates memory for elements.
//
//     FakeMode fake;
//     auto scope = fake.enter();
//     Tensor w = empty({1'000'000, 1'000'000}, {.device = "cuda"});   // a terabyte that is not there
//     Tensor y = w.mm(w);                                              // its metadata, in well under a microsecond
//
// An operator runs from its definition as it does with data, except that outputs get no memory and the kernel is not
// called. That costs less than looking an answer up would, so there is no cache; umbra/fake/cache_info.h counts.
#pragma once

#include "umbra/dispatch/dispatcher.h"
#include "umbra/fake/converter.h"

namespace UMBRA_API umbra {

struct FakeOptions {
  /// Symbols for the sizes of converted tensors come from here; without it all sizes are numbers.
  IntrusivePtr<sym::ShapeEnv> shape_env;
  /// Real tensors met by operators are converted instead of refused.
  bool allow_non_fake_inputs = false;
  /// item() gives an unbacked symbol, nonzero() an unbacked size. Needs a shape_env.
  bool allow_scalar_outputs = false;
  bool allow_dynamic_output_shapes = false;
  /// Tensors on the device `meta` may be made and used inside.
  bool allow_meta = true;
  /// Every fake tensor carries a real one, on which operators run beside.
  bool propagate_real_tensors = false;
  /// Calls are counted where somebody asks for counts (umbra/fake/cache_info.h).
  bool counts_calls = true;
};

/// What makes a tensor fake, and its layer state: the mode itself, or for a constant of the program the mode and the
/// value.
class FakeState : public Mode {
 public:
  FakeState() : Mode(DispatchKey::Fake) {}
  virtual FakeModeImpl* mode() = 0;
  virtual const Tensor* constant() const { return nullptr; }
  /// The real tensor that it carries, or null.
  virtual const Tensor* real() const { return nullptr; }
};

/// The state behind FakeMode handles; the dispatcher's mode for DispatchKey::Fake.
class FakeModeImpl final : public FakeState {
 public:
  explicit FakeModeImpl(FakeOptions options);
  ~FakeModeImpl() override;
  FakeModeImpl* mode() override { return this; }
  const FakeOptions& options() const { return options_; }
  FakeOptions& mutable_options() { return options_; }
  sym::ShapeEnv* shape_env() const { return options_.shape_env.get(); }

  /// What becomes of a real tensor here; `converter()` says how.
  Tensor from_tensor(const Tensor& real, const SymbolicContext* context = nullptr) {
    return converter_->from_tensor(*this, real, context);
  }
  Tensor from_tensor_with_sizes(const Tensor& real, SymIntArrayRef sizes) {
    return converter_->from_tensor_with_sizes(*this, real, sizes);
  }
  const IntrusivePtr<FakeConverter>& converter() const { return converter_; }
  /// A new fake tensor of the given metadata.
  Tensor make(const TensorSpec& spec);

 private:
  FakeOptions options_;
  IntrusivePtr<FakeConverter> converter_;
};

/// A handle on a fake mode; see the top of this file.
class FakeMode {
 public:
  explicit FakeMode(FakeOptions options = {});
  explicit FakeMode(IntrusivePtr<FakeModeImpl> impl) : impl_(std::move(impl)) {}
  /// Factories make fake tensors until the scope ends.
  [[nodiscard]] EnterMode enter() const { return EnterMode(impl_); }
  Tensor from_tensor(const Tensor& real) const { return impl_->from_tensor(real); }
  Tensor from_tensor(const Tensor& real, const SymbolicContext& context) const {
    return impl_->from_tensor(real, &context);
  }
  FakeModeImpl* operator->() const { return impl_.get(); }
  const IntrusivePtr<FakeModeImpl>& pointer() const { return impl_; }

 private:
  IntrusivePtr<FakeModeImpl> impl_;
};

/// The mode a fake tensor belongs to, or null.
FakeModeImpl* fake_mode_of(const Tensor& tensor);
/// The value of a fake tensor that is a constant, or null.
const Tensor* fake_constant(const Tensor& tensor);
/// The real tensor that a fake one carries (FakeOptions::propagate_real_tensors), or null.
const Tensor* fake_real(const Tensor& tensor);
/// The mode of the first fake tensor among the values, else the thread's active one, else null.
FakeModeImpl* detect_fake_mode(ArrayRef<Tensor> tensors = {});
/// A fake tensor that remembers its value: tensor literals in captured code.
Tensor fake_with_constant(FakeModeImpl& mode, const Tensor& value);
/// Lets a fake tensor remember its value: what stands for a constant of the program.
void remember_constant(FakeModeImpl& mode, const Tensor& fake, const Tensor& value);

}  // namespace umbra
