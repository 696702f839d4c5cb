#pragma once

#include <pthread.h>

#include <new>

namespace umbra {

/// One object of the type for each thread, made when the thread first asks for it. Unlike a `thread_local` it takes
/// nothing of the block that the loader has for the thread-local memory of all libraries which are loaded later: that
/// block is small, some variables have to lie in it to be fast, and where it is full other packages' libraries
/// (OpenMP's, which scikit-learn brings along) cannot be loaded any more.
template <class T> class PerThread {
 public:
  PerThread() {
    if (pthread_key_create(&key_, [](void* made) { delete static_cast<T*>(made); })) throw std::bad_alloc();
  }
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;

  T& operator*() {
    if (void* made = pthread_getspecific(key_)) return *static_cast<T*>(made);
    return make();
  }
  T* operator->() { return &**this; }

 private:
  T& make() {
    T* made = new T();
    if (pthread_setspecific(key_, made)) {
      delete made;
      throw std::bad_alloc();
    }
    return *made;
  }
  pthread_key_t key_;
};

}  // namespace umbra
