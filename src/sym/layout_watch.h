// What a program learns of how its tensors lie in memory.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "umbra/core/tensor.h"
#include "umbra/sym/shape_env.h"

namespace umbra::sym {

/// What a copy is that is made only where it has to be.
enum class CopyIs : uint8_t {
  Contiguous,  // and so is what was copied, where there was no need to
  Reshaped,    // else a view, of any strides
};

/// What the captured program has of composites: calls that decide in every run whether they copy, or what came of them.
enum class Composites : uint8_t { Whole, Apart };

/// The library decides layouts for sizes of two and more: what it copies may be no copy where a size is 0 or 1, and
/// strides may be others. That changes no value, so inputs are not refused for it, unless the program asks how a tensor
/// lies, or writes where a copy may be none. While a program is captured whose inputs are checked, this knows of which.
class LayoutWatch {
 public:
  LayoutWatch(ShapeEnv& env, Composites composites);
  ~LayoutWatch();
  LayoutWatch(const LayoutWatch&) = delete;
  LayoutWatch& operator=(const LayoutWatch&) = delete;
  /// The innermost one of the thread, or null.
  static LayoutWatch* current();

  /// Says of a copy that for sizes of 0 or 1 it may be none.
  void note_copy(const Tensor& from, const Tensor& copy, CopyIs what);
  /// Says of a tensor that what gave it back, or a view of it, would have copied it if it lay otherwise.
  void note_shared(const Tensor& t);
  /// Says that a tensor lies as it does because of a condition that the example keeps, or that only the run tells.
  void note_condition(SymBool holds) { conditions_.push_back(holds); }
  /// Says that a tensor lies as it does because one number is below another, or not.
  void note_order(SymInt a, SymInt b) { orders_.emplace_back(a, b); }
  bool has_copies() const { return !storages_.empty(); }
  /// Whether there are tensors that are contiguous only because they were copied, or because a condition holds.
  bool in_doubt() const { return reshaped_ || !conditions_.empty() || !orders_.empty(); }
  /// Whether contiguous() of a tensor that is contiguous is a call all the same: in another run it may copy.
  bool records_contiguous(const Tensor& t) const {
    return composites_ == Composites::Whole && in_doubt() && t.is_symbolic();
  }
  /// Says that a tensor of the program is another one for the example, by a call that may copy in another run.
  void note_same(const Tensor& t, const Tensor& original) { same_.emplace(t.impl(), std::pair(t, original)); }
  /// That other one, or the tensor itself.
  const Tensor& original(const Tensor& t) const;
  /// Whether a tensor lies in memory that was copied, or copied to, or may have been.
  bool knows(const Tensor& t) const { return storages_.contains(t.storage().get()); }
  /// The program goes by how a tensor lies. From here on it is right for sizes of two and more alone, or for those of 1
  /// that are in the example; it has to refuse others.
  void rely_on(const Tensor& t);

 private:
  void rely_on_size(SymInt size);
  void rely_on_condition(SymBool holds);

  ShapeEnv& env_;
  Composites composites_;
  LayoutWatch* before_;
  bool reshaped_ = false;
  bool open_ = false;  // only the run tells of a copy whether it is one
  std::unordered_set<const StorageImpl*> storages_;
  std::unordered_set<int64_t> sizes_;  // of what was copied: SymInt::raw
  std::vector<SymBool> conditions_;
  std::vector<std::pair<SymInt, SymInt>> orders_;
  std::unordered_map<const TensorImpl*, std::pair<Tensor, Tensor>> same_;  // kept, so that no other gets their places
};

/// Notes a copy where one watches. Returns it.
Tensor with_noted_copy(const Tensor& from, Tensor copy, CopyIs what);
/// Notes that there was no copy of a tensor. Returns the view that there is instead.
Tensor with_noted_sharing(const Tensor& from, Tensor view);

}  // namespace umbra::sym
