// What libraries registered for one operator: a stack of kernels for each key, the newest in force.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "umbra/dispatch/library.h"

namespace umbra {

/// One registered kernel. Its address tells it from others.
struct LibraryKernel {
  KernelFunction function;  // empty: the layer is passed over
};

/// Belongs to a name rather than to an operator: kernels may be registered before the operator is defined, and a
/// definition may go and come back under them.
class KernelTable {
 public:
  /// The table of "mylib::scale"; made when first asked for, there for good.
  static KernelTable& of(const std::string& name);

  void add(KernelKey key, std::shared_ptr<const LibraryKernel> kernel);
  void remove(KernelKey key, const LibraryKernel* kernel);
  /// Serves an operator from now on (null: none).
  void attach(Operator* op);

  /// The kernel in force; one that falls through included.
  std::shared_ptr<const LibraryKernel> find(KernelKey key) const { return active_[index(key)].load(); }
  /// What runs on a backend: its own kernel, or one for all backends. Null: none was registered.
  std::shared_ptr<const LibraryKernel> find_backend(DispatchKey backend) const;
  std::shared_ptr<const LibraryKernel> find_fake() const;
  std::shared_ptr<const LibraryKernel> find_autograd(DispatchKey backend) const;
  /// "CPU, Meta": the keys that have kernels.
  std::string keys() const;

 private:
  static size_t index(KernelKey key) { return static_cast<size_t>(key); }
  static constexpr size_t kCount = static_cast<size_t>(KernelKey::Count);
  void update();

  mutable std::mutex mutex_;
  Operator* op_ = nullptr;
  std::vector<std::shared_ptr<const LibraryKernel>> stacks_[kCount];
  std::atomic<std::shared_ptr<const LibraryKernel>> active_[kCount];
};

/// Runs a kernel; what its schema says it writes counts as written.
void run_library_kernel(const LibraryKernel& kernel, const Operator& op, Value* frame);

}  // namespace umbra
