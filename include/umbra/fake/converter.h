// What becomes of real tensors in a fake mode, and the memo of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "umbra/core/tensor.h"
#include "umbra/sym/shape_env.h"

namespace UMBRA_API umbra {

class FakeModeImpl;

/// How one tensor's dimensions become sizes when it is converted: one entry a dimension.
struct SymbolicContext {
  std::string source;  // "L['x']": what guards call the tensor
  std::vector<sym::SymbolOptions> dims;
  /// Sizes that are there already, instead of new ones; empty where none is.
  std::vector<std::optional<SymInt>> given;
  /// Strides that become symbols of their own, by their options; none: one that follows from sizes is an expression of
  /// them, another a symbol, and so is the offset. Where this is empty, what does not follow from sizes stays a number.
  std::vector<std::optional<sym::SymbolOptions>> strides;
};

/// Converts real tensors, and knows what it has converted: one fake for one tensor, one fake storage for one storage,
/// for as long as somebody else uses them. Every fake mode has one.
class FakeConverter final : public RefCounted {
 public:
  FakeConverter();
  ~FakeConverter() override;
  /// A fake tensor like a real one: the same one for the same tensor while it is in use, storage shared where it is
  /// shared, parameters stay leaves; sparse tensors by their parts, those inside vmap by what they wrap.
  Tensor from_tensor(FakeModeImpl& mode, const Tensor& real, const SymbolicContext* context = nullptr);
  /// The same with sizes that the caller has chosen; strides follow them where they followed the real sizes.
  Tensor from_tensor_with_sizes(FakeModeImpl& mode, const Tensor& real, SymIntArrayRef sizes);
  /// Remembers a fake that was made elsewhere.
  void remember(const Tensor& real, const Tensor& fake);
  /// What this tensor was converted to; undefined where it was not, or where either is gone.
  Tensor find(const Tensor& real);
  /// Forgets what was converted.
  void clear();
  /// The tensors, and the storages, that are in use on both sides.
  std::vector<std::pair<Tensor, Tensor>> tensors();
  std::vector<std::pair<Storage, Storage>> storages();

 private:
  Tensor convert(FakeModeImpl& mode, const Tensor& real, SymIntArrayRef sizes, SymIntArrayRef strides, SymInt offset);
  Tensor convert_sparse(FakeModeImpl& mode, const Tensor& real);
  Storage fake_storage(const Storage& real, SymInt bytes, Device device);
  /// A copy of the tensor in a copy of its storage: what a fake carries must not write the original.
  Tensor copy_with_storage(const Tensor& real);

  struct Memos;
  IntrusivePtr<Memos> memos_;
};

}  // namespace umbra
