#include "lock.h"

#include <unistd.h>

#include "dispatch/host_lock.h"

namespace umbra::python {

namespace {

template <class Take> void take_or_stay(const Take& take) {
  try {
    take();
  } catch (...) {  // nothing comes but the end of a thread that Python lets go no further
    for (;;) pause();
  }
}

void* give_away() { return PyGILState_Check() ? PyEval_SaveThread() : nullptr; }
void take_back(void* thread) {
  take_or_stay([&] { PyEval_RestoreThread(static_cast<PyThreadState*>(thread)); });
}

}  // namespace

WithLock::WithLock() {
  take_or_stay([&] { state_ = PyGILState_Ensure(); });
}

WithoutLock::~WithoutLock() { take_back(thread_); }

void lend_lock() {
  static constexpr HostLock lock{give_away, take_back};
  set_host_lock(&lock);
}

}  // namespace umbra::python
