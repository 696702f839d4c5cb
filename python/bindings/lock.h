// Python's lock, taken and given away for a scope.
//
// A thread that asks for the lock while the interpreter ends is ended by it (before Python 3.14), by an unwinding that
// destructors cannot be left with. Such a thread waits here for the end of the process instead.
#pragma once

#include "python.h"

namespace umbra::python {

/// Holds the lock, whether the thread had it or not.
class WithLock {
 public:
  WithLock();
  ~WithLock() { PyGILState_Release(state_); }
  WithLock(const WithLock&) = delete;

 private:
  PyGILState_STATE state_;
};

/// Gives away the lock, which the thread has.
class WithoutLock {
 public:
  WithoutLock() : thread_(PyEval_SaveThread()) {}
  ~WithoutLock();
  WithoutLock(const WithoutLock&) = delete;

 private:
  PyThreadState* thread_;
};

/// Has what C++ runs give the lock away.
void lend_lock();

}  // namespace umbra::python
