// The walk along frame pointers. Only addresses are taken here; core/symbolize.cpp makes text of them.
#include "umbra/core/call_site.h"

#include <pthread.h>

#include <algorithm>

#include "core/symbolize.h"

namespace umbra {

namespace {

/// What a function with a frame pointer leaves on the stack.
struct StackFrame {
  const StackFrame* caller;
  const void* return_address;
};

/// The library's own code; empty where it is linked into the program, whose code cannot be told from it.
const TextRange& library_text() {
  static const TextRange text = [] {
    TextRange own = find_text(reinterpret_cast<const void*>(&find_text));
    return own.in_program ? TextRange{} : own;
  }();
  return text;
}

TextRange g_front_end;

struct Stack {
  uintptr_t low = 0, high = 0;
  const void* boundary = nullptr;
  bool contains(const StackFrame* frame) const {
    auto address = reinterpret_cast<uintptr_t>(frame);
    // Any number may stand where a pointer is looked for: it is not added to.
    return address >= low && address <= high - sizeof(StackFrame) && address % alignof(StackFrame) == 0;
  }
};
constinit thread_local Stack t_stack;

void find_stack(Stack& stack) {
  stack.low = stack.high = UINTPTR_MAX;  // asked once, even where there is no answer
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* low = nullptr;
  size_t size = 0;
  if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
    stack.low = reinterpret_cast<uintptr_t>(low);
    stack.high = stack.low + size;
  }
  pthread_attr_destroy(&attributes);
}

}  // namespace

CallSite CallSite::here() noexcept {
  CallSite site;
  const TextRange& library = library_text();
  Stack& stack = t_stack;
  if (library.low == library.high) return site;
  if (stack.high == 0) find_stack(stack);
  auto* frame = static_cast<const StackFrame*>(__builtin_frame_address(0));
  // Frames of the library are sound. Once the user's code has been passed a frame can be anything: each is checked
  // before it is read, and what it holds before it becomes text.
  for (int found = 0; found < kDeepest && stack.contains(frame);) {
    if (stack.boundary && frame >= stack.boundary) break;
    const void* address = frame->return_address;
    if (!library.contains(address)) {
      if (!address || g_front_end.contains(address)) break;
      site.addresses_[found++] = address;
    }
    if (frame->caller <= frame) break;
    frame = frame->caller;
  }
  return site;
}

// Functions of our headers that were not inlined stand in the user's program, and are not the user's.
SourceFrame CallSite::first_of_user() const {
  for (const void* address : addresses_) {
    if (!address) break;
    SourceFrame frame = describe_address(address);
    if (!frame.function.starts_with("umbra::") && !frame.function.starts_with("std::")) return frame;
  }
  return describe_address(addresses_[0]);
}

std::vector<SourceFrame> CallSite::frames() const {
  std::vector<SourceFrame> frames;
  for (const void* address : addresses_) {
    if (!address) break;
    for (SourceFrame& frame : symbolize(address)) frames.push_back(std::move(frame));
  }
  if (frames.empty() && known()) frames.push_back(first_of_user());
  std::reverse(frames.begin(), frames.end());
  return frames;
}

bool is_user_code(const void* address) {
  const TextRange& library = library_text();
  return library.low != library.high && address && !library.contains(address) && !g_front_end.contains(address);
}

CallBoundary::CallBoundary() : before_(t_stack.boundary) {
  t_stack.boundary = static_cast<const StackFrame*>(__builtin_frame_address(0))->caller;
}

CallBoundary::~CallBoundary() { t_stack.boundary = before_; }

void set_front_end(const void* address) { g_front_end = find_text(address); }

std::string to_string(const std::vector<SourceFrame>& frames) {
  std::string out;
  for (const SourceFrame& frame : frames) {
    bool known = frame.line > 0;
    out += "  File \"" + frame.file + "\", " + (known ? "line " + std::to_string(frame.line) + ", " : "") + "in " +
           frame.function + (known ? "\n" : " (build with -g for the line)\n");
    if (!frame.code.empty()) out += "    " + frame.code + "\n";
  }
  return out;
}

}  // namespace umbra
