// What a program learns of how its tensors lie in memory.
#pragma once

#include <unordered_set>

#include "umbra/core/tensor.h"
#include "umbra/sym/shape_env.h"

namespace umbra::sym {

/// What a copy is that is made only where it has to be.
enum class CopyIs : uint8_t {
  Contiguous,  // and so is what was copied, where there was no need to
  Reshaped,    // else a view, of any strides
};

/// The library decides layouts for sizes of two and more: what it copies may be no copy where a size is 0 or 1, and
/// strides may be others. That changes no value, so inputs are not refused for it, unless the program asks how a tensor
/// lies, or writes where a copy may be none. While a program is captured whose inputs are checked, this knows of which.
class LayoutWatch {
 public:
  explicit LayoutWatch(ShapeEnv& env);
  ~LayoutWatch();
  LayoutWatch(const LayoutWatch&) = delete;
  LayoutWatch& operator=(const LayoutWatch&) = delete;
  /// The innermost one of the thread, or null.
  static LayoutWatch* current();

  /// Says of a copy that for sizes of 0 or 1 it may be none.
  void note_copy(const Tensor& from, const Tensor& copy, CopyIs what);
  bool has_copies() const { return !storages_.empty(); }
  /// Whether there are tensors that are contiguous only because they were copied.
  bool has_reshaped() const { return reshaped_; }
  /// Whether a tensor lies in memory that was copied, or copied to.
  bool knows(const Tensor& t) const { return storages_.contains(t.storage().get()); }
  /// The program goes by how a tensor lies. From here on it is right for sizes of two and more alone, or for those of 1
  /// that are in the example; it has to refuse others.
  void rely_on(const Tensor& t);

 private:
  void rely_on_size(SymInt size);

  ShapeEnv& env_;
  LayoutWatch* before_;
  bool reshaped_ = false;
  bool open_ = false;  // only the run tells of a copy whether it is one
  std::unordered_set<const StorageImpl*> storages_;
  std::unordered_set<int64_t> sizes_;  // of what was copied: SymInt::raw
};

/// Notes a copy where one watches. Returns it.
Tensor with_noted_copy(const Tensor& from, Tensor copy, CopyIs what);

}  // namespace umbra::sym
