// Errors: a hierarchy that maps one to one to Python's exceptions, and the macro that checks and words them.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "umbra/core/call_site.h"

namespace UMBRA_API umbra {

/// Base of all of Umbra's errors; Python's RuntimeError.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message);
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;
  ~Error() override;
  /// The line of the user's program whose call failed, as a stack trace; empty where it is not known:
  /// `catch (const Error& e) { std::cerr << e.what() << "\n" << e.location(); }`
  std::string location() const { return site_.text(); }

 private:
  CallSite site_;
};

/// An error about the program rather than a call: what() names the user's line, once someone reads it.
class ProgramError : public Error {
 public:
  explicit ProgramError(const std::string& message) : Error(message) {}
  /// What was met, the place, and what to do about it.
  ProgramError(const std::string& message, const std::string& advice);
  ProgramError(const ProgramError&) = default;
  ProgramError& operator=(const ProgramError&) = default;
  ~ProgramError() override;
  const char* what() const noexcept override;

 private:
  struct Text;
  std::shared_ptr<Text> text_;  // shared by copies; null where the message is all
};

#define UMBRA_DEFINE_ERROR(name, base) \
  class name : public base {           \
   public:                             \
    using base::base;                  \
  }
UMBRA_DEFINE_ERROR(IndexError, Error);
UMBRA_DEFINE_ERROR(ValueError, Error);
UMBRA_DEFINE_ERROR(TypeError, Error);
UMBRA_DEFINE_ERROR(KeyError, Error);
UMBRA_DEFINE_ERROR(AttributeError, Error);
UMBRA_DEFINE_ERROR(AssertionError, Error);
UMBRA_DEFINE_ERROR(FileNotFoundError, Error);
UMBRA_DEFINE_ERROR(NotImplementedError, Error);
UMBRA_DEFINE_ERROR(OutOfMemoryError, Error);
UMBRA_DEFINE_ERROR(OverflowError, Error);
UMBRA_DEFINE_ERROR(ZeroDivisionError, Error);
/// A fake run met an operator whose result is a number read from data (item).
UMBRA_DEFINE_ERROR(DataDependentOutputException, ProgramError);
/// A fake run met an operator whose output shape depends on data (nonzero).
UMBRA_DEFINE_ERROR(DynamicOutputShapeException, ProgramError);
/// A fake run met an operator that has no way to run without data.
UMBRA_DEFINE_ERROR(UnsupportedOperatorException, ProgramError);
/// A branch asked for the value of a size that is known only at run time.
UMBRA_DEFINE_ERROR(GuardOnDataDependentSymNode, ProgramError);
/// The program needs something of a dynamic dimension that its Dim does not promise.
UMBRA_DEFINE_ERROR(ConstraintViolationError, Error);
/// torch._dynamo.exc.UserError's place: the captured code cannot be captured as it stands.
UMBRA_DEFINE_ERROR(UserError, Error);
#undef UMBRA_DEFINE_ERROR

namespace detail {
inline void append(std::string& out, std::string_view text) { out += text; }
inline void append(std::string& out, const char* text) { out += text; }
inline void append(std::string& out, const std::string& text) { out += text; }
inline void append(std::string& out, char c) { out += c; }
inline void append(std::string& out, bool value) { out += value ? "True" : "False"; }
void append(std::string& out, double value);
template <class T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char>) void append(std::string& out,
                                                                                                    T value) {
  out += std::to_string(value);
}
template <class T>
requires requires(const T& value) {
  { to_string(value) } -> std::convertible_to<std::string>;
}
void append(std::string& out, const T& value) { out += to_string(value); }

/// Joins the pieces of a message: `concat("expected ", 3, " got ", tensor.sizes())`. Anything with a to_string works.
template <class... Args> std::string concat(const Args&... args) {
  std::string out;
  (append(out, args), ...);
  return out;
}

/// `check<IndexError>(i < n, "index ", i, " is out of range")`: throws unless the condition holds.
/// The message is put together only on failure.
template <class ErrorType = Error, class... Args> inline void check(bool condition, const Args&... args) {
  if (__builtin_expect(!condition, 0)) throw ErrorType(concat(args...));
}

/// Throws an error worded by the pieces.
template <class ErrorType = Error, class... Args> [[noreturn]] void fail(const Args&... args) {
  throw ErrorType(concat(args...));
}
}  // namespace detail

// The library's own sources write these short; users have the names for themselves.
#ifdef UMBRA_INTERNAL
using detail::check;
using detail::concat;
using detail::fail;
#endif

}  // namespace umbra
