// What a test asks of errors: their text.
#pragma once

#include <functional>
#include <string>

#include "umbra/core/error.h"

namespace umbra {

/// The message of the error that `action` throws, or "no error".
template <class ErrorType = Error> std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const ErrorType& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another kind of error: ") + error.what();
  }
  return "no error";
}

}  // namespace umbra
