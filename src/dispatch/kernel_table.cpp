#include "dispatch/kernel_table.h"

#include <unordered_map>

#include "dispatch/layers.h"
#include "dispatch/library_writes.h"
#include "umbra/dispatch/dispatcher.h"
#include "umbra/dispatch/take_composites.h"

namespace umbra {

namespace {

KernelKey backend_slot(DispatchKey backend) {
  return backend == DispatchKey::CUDA   ? KernelKey::CUDA
         : backend == DispatchKey::Meta ? KernelKey::Meta
                                        : KernelKey::CPU;
}
KernelKey autograd_slot(DispatchKey backend) {
  return backend == DispatchKey::CUDA   ? KernelKey::AutogradCUDA
         : backend == DispatchKey::Meta ? KernelKey::AutogradMeta
                                        : KernelKey::AutogradCPU;
}

bool usable(const std::shared_ptr<const LibraryKernel>& kernel) { return kernel && kernel->function; }

/// A composite comes apart where no library has a kernel for the backend that would take it whole.
bool take_apart(const Operator& op, const KernelTable& table, DispatchKey backend, Value* frame) {
  if (usable(table.find_backend(backend))) return false;
  auto composite = table.find(KernelKey::CompositeImplicitAutograd);
  if (!usable(composite) && !op.definition().composite) return false;
  if (offer_composite(op, frame)) return true;
  if (usable(composite)) run_library_kernel(*composite, op, frame);
  else op.definition().composite(frame);
  return true;
}

/// The way through autograd and the layers below it of an operator that has kernels of libraries.
void library_layer(const Operator& op, DispatchKeySet keys, Value* frame) {
  const KernelTable& table = *op.library_kernels();
  DispatchKey key = keys.highest();
  DispatchKeySet backends = keys & kBackendKeys;
  DispatchKey backend = backends.empty() ? DispatchKey::CPU : backends.highest();
  if (key == DispatchKey::Autograd) {
    if (auto kernel = table.find_autograd(backend)) {
      if (!kernel->function) return op.redispatch(keys.below(key), frame);
      return run_library_kernel(*kernel, op, frame);
    }
  }
  if (key == DispatchKey::Functionalize && functionalize_writes(op, keys, frame)) return;
  if (take_apart(op, table, backend, frame)) return;
  LayerFunction own = own_layer(op, key);
  (own ? own : layer_function(key))(op, keys, frame);
}

}  // namespace

KernelTable& KernelTable::of(const std::string& name) {
  static std::mutex mutex;
  static auto* tables = new std::unordered_map<std::string, std::unique_ptr<KernelTable>>;
  std::lock_guard lock(mutex);
  std::unique_ptr<KernelTable>& table = (*tables)[name];
  if (!table) table = std::make_unique<KernelTable>();
  return *table;
}

void KernelTable::add(KernelKey key, std::shared_ptr<const LibraryKernel> kernel) {
  std::lock_guard lock(mutex_);
  stacks_[index(key)].push_back(std::move(kernel));
  update();
}

void KernelTable::remove(KernelKey key, const LibraryKernel* kernel) {
  std::lock_guard lock(mutex_);
  std::erase_if(stacks_[index(key)], [&](const auto& k) { return k.get() == kernel; });
  update();
}

void KernelTable::attach(Operator* op) {
  std::lock_guard lock(mutex_);
  op_ = op;
  if (op_) op_->set_library_kernels(this);
  update();
}

void KernelTable::update() {
  bool any = false;
  for (size_t k = 0; k < kCount; ++k) {
    active_[k].store(stacks_[k].empty() ? nullptr : stacks_[k].back());
    any |= !stacks_[k].empty();
  }
  if (!op_) return;
  bool autograd = false;
  for (KernelKey key : {KernelKey::Autograd, KernelKey::AutogradCPU, KernelKey::AutogradCUDA, KernelKey::AutogradMeta})
    autograd |= !stacks_[index(key)].empty();
  op_->set_own_keys(autograd ? DispatchKeySet(DispatchKey::Autograd) : DispatchKeySet());
  for (int key = 0; key <= static_cast<int>(DispatchKey::Autograd); ++key)
    op_->set_layer_kernel(static_cast<DispatchKey>(key),
                          any ? library_layer : own_layer(*op_, static_cast<DispatchKey>(key)));
}

std::shared_ptr<const LibraryKernel> KernelTable::find_backend(DispatchKey backend) const {
  for (KernelKey key :
       {backend_slot(backend), KernelKey::CompositeExplicitAutogradNonFunctional, KernelKey::CompositeExplicitAutograd})
    if (auto kernel = find(key); usable(kernel)) return kernel;
  return nullptr;
}

std::shared_ptr<const LibraryKernel> KernelTable::find_fake() const {
  auto kernel = find(KernelKey::Fake);
  return usable(kernel) ? kernel : find_backend(DispatchKey::Meta);
}

std::shared_ptr<const LibraryKernel> KernelTable::find_autograd(DispatchKey backend) const {
  auto kernel = find(autograd_slot(backend));
  return kernel ? kernel : find(KernelKey::Autograd);
}

std::string KernelTable::keys() const {
  std::string text;
  for (size_t k = 0; k < kCount; ++k)
    if (active_[k].load()) text += (text.empty() ? "" : ", ") + std::string(to_string(static_cast<KernelKey>(k)));
  return text;
}

void run_library_kernel(const LibraryKernel& kernel, const Operator& op, Value* frame) {
  if (!op.is_mutable()) return kernel.function(op, frame);
  std::vector<std::pair<IntrusivePtr<TensorImpl>, uint32_t>> written;
  for (size_t i = 0; i < op.argument_count(); ++i)
    if (op.schema().arguments[i].alias.write)
      frame[i].each_tensor([&](TensorImpl* t) { written.emplace_back(IntrusivePtr<TensorImpl>(t), t->version()); });
  kernel.function(op, frame);
  for (auto& [tensor, version] : written)
    if (tensor->version() == version) tensor->bump_version();
}

}  // namespace umbra
