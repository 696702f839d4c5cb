// Where in the user's program the library was called: return addresses, taken in a few nanoseconds and turned into text
// when asked.
//
//     CallSite site = CallSite::here();
//     print(site.text());              //   File "model.cpp", line 12, in Mlp::forward
//                                      //     return down(gelu(up(x)));
//
// The library is compiled with frame pointers: from any of its functions, the chain of frames leads to the first return
// address outside it, which is the user's call. That needs nothing of the user's code; with debug information (-g) the
// address is a line.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "umbra/core/export.h"

namespace UMBRA_API umbra {

/// One line of a stack trace.
struct SourceFrame {
  std::string file;
  int line = 0;
  std::string function;
  std::string code;  // the text of the line, where it could be read
};

/// The frames as Python prints a stack trace.
std::string to_string(const std::vector<SourceFrame>& frames);

class CallSite {
 public:
  CallSite() = default;
  /// Where this thread's call of the library comes from. Unknown where there is no user's code in C++ (calls from
  /// Python), where the library is part of the program's own file, and on stacks that are not the thread's own.
  static CallSite here() noexcept;

  bool known() const { return addresses_[0] != nullptr; }
  /// The user's frames, outermost first; frames inside headers of the library or the standard library are left out. The
  /// innermost is exact. Outer ones are there as far as the user's code keeps frame pointers, or was inlined. Without
  /// debug information there is one frame, of line 0 and a function such as `Mlp::forward+0x1f`.
  std::vector<SourceFrame> frames() const;
  /// The frames as text; empty where the place is not known.
  std::string text() const { return to_string(frames()); }

 private:
  /// The innermost frame of the user's own, without debug information.
  SourceFrame first_of_user() const;

  static constexpr int kDeepest = 8;
  std::array<const void*, kDeepest> addresses_{};  // innermost first, null after the last
};

/// Whether a return address lies in the user's code in C++: neither in the library nor in its Python module. False
/// where the library is part of the program's own file.
bool is_user_code(const void* address);

/// While it lives, call sites end here: callers of the function that holds it are not the captured program's business.
class CallBoundary {
 public:
  CallBoundary();
  ~CallBoundary();
  CallBoundary(const CallBoundary&) = delete;

 private:
  const void* before_;
};

/// Code that passes another language's calls on (the Python binding): the walk ends at the object that holds `address`.
void set_front_end(const void* address);

}  // namespace umbra
