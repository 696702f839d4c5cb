#include "umbra/core/error.h"

#include <charconv>
#include <cmath>
#include <mutex>

#include "umbra/core/source.h"

namespace umbra {

Error::Error(const std::string& message) : std::runtime_error(message), site_(CallSite::here()) {}
Error::~Error() = default;

struct ProgramError::Text {
  std::string message, advice;
  IntrusivePtr<SourceLocation> place;
  std::once_flag once;
  std::string whole;
};

ProgramError::ProgramError(const std::string& message, const std::string& advice)
    : Error(message), text_(std::make_shared<Text>()) {
  text_->message = message;
  text_->advice = advice;
  text_->place = current_location();
}
ProgramError::~ProgramError() = default;

const char* ProgramError::what() const noexcept {
  if (!text_) return Error::what();
  try {
    std::call_once(text_->once, [text = text_.get()] {
      std::string place = text->place ? text->place->text() : "";
      text->whole = text->message + "\n";
      if (!place.empty()) text->whole += "\nThe following call raised this error:\n" + place;
      text->whole += "\n" + text->advice;
    });
    return text_->whole.c_str();
  } catch (...) {  // no memory left for the text
    return Error::what();
  }
}

}  // namespace umbra

namespace umbra::detail {

// Floats as Python's repr writes them: the shortest text that reads back the same, with ".0" where nothing shows a
// float.
void append(std::string& out, double value) {
  if (std::isnan(value)) return void(out += "nan");
  if (std::isinf(value)) return void(out += value > 0 ? "inf" : "-inf");
  char buffer[40];
  double size = std::fabs(value);
  bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), value,
                           plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer, end.ptr);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  out += text;
}

}  // namespace umbra::detail
