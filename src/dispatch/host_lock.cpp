#include "dispatch/host_lock.h"

#include <array>

#include "umbra/dispatch/dispatcher.h"

namespace umbra {

std::atomic<const HostLock*> detail::g_host_lock = nullptr;

void set_host_lock(const HostLock* lock) { detail::g_host_lock = lock; }

bool is_long(const Operator& op, const Value* frame) {
  constexpr int64_t kLong = 20000;  // elements
  int64_t elements = 0;
  for (size_t i = 0; i < op.argument_count(); ++i)
    frame[i].each_tensor([&](TensorImpl* t) {
      SymInt n = t->sym_numel();
      if (!n.is_symbolic()) elements += n.value();
    });
  return elements >= kLong;
}

void RunUnlocked::give_away(const Operator& op, const Value* frame) {
  // Modes are often the host's own, and what is recorded is seldom long.
  if (is_long(op, frame) && mode_stack().empty()) given_ = detail::g_host_lock.load()->give_away();
}

void RunUnlocked::take_back() {
  if (void* given = std::exchange(given_, nullptr)) detail::g_host_lock.load()->take_back(given);
}

HostedGuard::HostedGuard(std::recursive_mutex& mutex) : guard_(mutex, std::try_to_lock) {
  if (guard_) return;
  const HostLock* host = detail::g_host_lock;
  void* given = host ? host->give_away() : nullptr;
  guard_.lock();
  if (given) host->take_back(given);
}

namespace {
std::mutex& mutex_of(const Value* value) {
  static std::array<std::mutex, 16> mutexes;
  return mutexes[(reinterpret_cast<uintptr_t>(value) / sizeof(Value)) % mutexes.size()];
}
}  // namespace

Value load_shared(const Value& from) {
  std::lock_guard lock(mutex_of(&from));
  return from;
}

void store_shared(Value& to, Value value) {
  std::lock_guard lock(mutex_of(&to));
  std::swap(to, value);
}

}  // namespace umbra
