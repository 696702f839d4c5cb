// Fake tensors: shapes, strides, types and devices without data. Nothing below allocates memory for elements.
//
//     FakeMode fake;
//     auto scope = fake.enter();
//     Tensor w = empty({1'000'000, 1'000'000}, {.device = "cuda"});   // a terabyte that is not there
//     Tensor y = w.mm(w);                                              // its metadata, in well under a microsecond
//
// An operator runs from its definition as it does with data, except that outputs get no memory and the kernel is not
// called. That costs less than looking an answer up would, so there is no cache.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "umbra/dispatch/dispatcher.h"
#include "umbra/sym/shape_env.h"

namespace UMBRA_API umbra {

struct FakeOptions {
  /// Symbols for the sizes of converted tensors come from here; without it all sizes are numbers.
  IntrusivePtr<sym::ShapeEnv> shape_env;
  /// Real tensors met by operators are converted instead of refused.
  bool allow_non_fake_inputs = false;
  /// item() gives an unbacked symbol, nonzero() an unbacked size. Needs a shape_env.
  bool allow_scalar_outputs = false;
  bool allow_dynamic_output_shapes = false;
};

/// How one tensor's dimensions become sizes when it is converted: one entry a dimension.
struct SymbolicContext {
  std::string source;  // "L['x']": what guards call the tensor
  std::vector<sym::SymbolOptions> dims;
};

class FakeModeImpl;

/// What makes a tensor fake, and its layer state: the mode itself, or for a constant of the program the mode and the
/// value.
class FakeState : public Mode {
 public:
  FakeState() : Mode(DispatchKey::Fake) {}
  virtual FakeModeImpl* mode() = 0;
  virtual const Tensor* constant() const { return nullptr; }
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

  /// A fake tensor like a real one: the same one for the same tensor while it is in use, storage shared where it is
  /// shared, parameters stay leaves.
  Tensor from_tensor(const Tensor& real, const SymbolicContext* context = nullptr);
  /// The same with sizes that the caller has chosen; strides follow them where they followed the real sizes.
  Tensor from_tensor_with_sizes(const Tensor& real, SymIntArrayRef sizes);
  /// A new fake tensor of the given metadata.
  Tensor make(const TensorSpec& spec);
  /// Forgets what was converted.
  void clear_memo();

 private:
  /// A real object and what it became; neither is kept alive.
  template <class T> struct Converted { WeakPtr<T> real, fake; };
  Tensor convert(const Tensor& real, SymIntArrayRef sizes, SymIntArrayRef strides);
  Storage fake_storage(const Storage& real, SymInt bytes, Device device);
  /// Forgets what is gone, now and then: an entry keeps the memory of the objects it knows, though not their contents.
  template <class Memo> void sweep(Memo& memo, size_t& limit);
  FakeOptions options_;
  std::recursive_mutex mutex_;  // of what follows; a view's base is converted on the way
  size_t tensor_limit_ = 1024, storage_limit_ = 1024;
  std::unordered_map<const void*, Converted<TensorImpl>> tensors_;
  std::unordered_map<const void*, Converted<StorageImpl>> storages_;
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
/// The mode of the first fake tensor among the values, else the thread's active one, else null.
FakeModeImpl* detect_fake_mode(ArrayRef<Tensor> tensors = {});
/// A fake tensor that remembers its value: tensor literals in captured code.
Tensor fake_with_constant(FakeModeImpl& mode, const Tensor& value);

}  // namespace umbra
