// The lock of the language that a program is written in (Python's), as far as what C++ runs by itself has to do with
// it: a run that takes long gives the lock away, so that the program's other threads go on meanwhile.
#pragma once

#include <atomic>
#include <mutex>

#include "umbra/dispatch/operator.h"

namespace UMBRA_API umbra {

/// Both are called by any thread. `give_away` says null where the thread has no lock to give, else what `take_back`
/// gets.
struct HostLock {
  void* (*give_away)();
  void (*take_back)(void* given);
};

/// Null for none, as at the start. It is used from then on.
void set_host_lock(const HostLock* lock);

namespace detail {
extern std::atomic<const HostLock*> g_host_lock;
}

/// Whether a call is worth giving the lock away for: below some size of its arguments that costs more than it brings.
bool is_long(const Operator& op, const Value* frame);

/// One run in steps: from the first long call on it goes without the lock, to its end. A lock that every call took back
/// would have to be waited for each time, milliseconds long where another thread computes under it.
class RunUnlocked {
 public:
  RunUnlocked() = default;
  ~RunUnlocked() { take_back(); }
  RunUnlocked(const RunUnlocked&) = delete;

  /// Before each call of an operator.
  void before(const Operator& op, const Value* frame) {
    if (!given_ && detail::g_host_lock.load(std::memory_order_acquire)) give_away(op, frame);
  }
  /// Before a step that only the lock guards.
  void take_back();

 private:
  void give_away(const Operator& op, const Value* frame);
  void* given_ = nullptr;
};

/// Holds a mutex under which the host's code may run: who waits for it waits without the lock.
class HostedGuard {
 public:
  explicit HostedGuard(std::recursive_mutex& mutex);

 private:
  std::unique_lock<std::recursive_mutex> guard_;
};

/// A value that other threads may write meanwhile, if they do so by `store_shared`.
Value load_shared(const Value& from);
void store_shared(Value& to, Value value);

}  // namespace umbra
