#include "sym/store.h"

#include <atomic>
#include <deque>
#include <mutex>
#include <new>

#include "umbra/core/sym_int.h"

namespace umbra::sym {
namespace {

/// Blocks rest for a while before they are used again: the longer they do, the surer a stale number is told of its end.
constexpr size_t kResting = 64;

struct Store {
  std::mutex mutex;
  std::deque<std::byte*> resting;  // oldest first
};

Store& store() {
  static auto* one = new Store();  // outlives every static that may hold a ShapeEnv
  return *one;
}

}  // namespace

std::byte* take_expression_block(size_t size) {
  Store& blocks = store();
  {
    std::lock_guard lock(blocks.mutex);
    if (blocks.resting.size() > kResting) {
      std::byte* oldest = blocks.resting.front();
      blocks.resting.pop_front();
      return oldest;
    }
  }
  return static_cast<std::byte*>(::operator new (size* kExpressionsInBlock, std::align_val_t{16}));
}

void give_back_expression_block(std::byte* block) {
  Store& blocks = store();
  std::lock_guard lock(blocks.mutex);
  blocks.resting.push_back(block);
}

uint16_t next_generation() {
  static std::atomic<uint32_t> count{0};
  return static_cast<uint16_t>(1 + count.fetch_add(1, std::memory_order_relaxed) % SymNode::kGenerations);
}

}  // namespace umbra::sym
