#include "umbra/jit/recycled.h"

namespace umbra::jit {

constinit thread_local Recycled::Lists Recycled::lists;

struct Recycled::Cleaner {
  ~Cleaner() {
    lists.closed = true;
    for (Slot*& list : lists.first)
      while (list) ::operator delete(std::exchange(list, list->next));
  }
};

void* Recycled::fresh(size_t bytes) {
  thread_local Cleaner cleaner;  // what is given back later is freed at the end of the thread
  return ::operator new(bytes);
}

}  // namespace umbra::jit
