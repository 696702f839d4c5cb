#include "io/onnx/formula.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace umbra::io::onnx {

namespace {

class Reader {
 public:
  Reader(const Call& call, std::string_view text, Bindings& names) : c_(call), text_(text), names_(names) {}

  Name run() {
    for (;;) {
      size_t start = at_;
      std::string_view name = word();
      if (name.empty() || !takes('=')) {
        at_ = start;
        return expression();
      }
      names_.emplace_back(name, expression());
      expect(';');
    }
  }

 private:
  Name expression() {
    skip();
    if (takes('[')) return c_.model.list(whole_numbers(']'));
    if (takes('#')) return c_.model.scalar(static_cast<int64_t>(number()), DType::Int64);
    if (takes('@')) return c_[word()];
    char next = at_ < text_.size() ? text_[at_] : '\0';
    if (next == '-' || std::isdigit(static_cast<unsigned char>(next)))
      return c_.model.scalar(number(), c_.result_type());
    std::string_view name = word();
    check(!name.empty(), "ONNX: a formula goes on with ", std::string(text_.substr(at_)));
    if (std::isupper(static_cast<unsigned char>(name[0]))) return node(std::string(name));
    auto found = std::ranges::find(names_, name, &Bindings::value_type::first);
    return found == names_.end() ? c_.as(name, c_.result_type()) : found->second;
  }

  Name node(const std::string& type) {
    Attributes attributes;
    if (takes('{')) {
      do {
        std::string key(word());
        expect('=');
        if (takes('[')) attributes.set(key.c_str(), whole_numbers(']'));
        else attributes.set(key.c_str(), static_cast<int64_t>(number()));
      } while (takes(','));
      expect('}');
    }
    Names inputs;
    expect('(');
    do inputs.push_back(expression());
    while (takes(','));
    expect(')');
    return c_.emit(type.c_str(), inputs, attributes);
  }

  std::vector<int64_t> whole_numbers(char end) {
    std::vector<int64_t> out;
    if (takes(end)) return out;
    do out.push_back(static_cast<int64_t>(number()));
    while (takes(','));
    expect(end);
    return out;
  }

  double number() {
    skip();
    char* end = nullptr;
    double value = std::strtod(text_.data() + at_, &end);
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  std::string_view word() {
    skip();
    size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    return text_.substr(start, at_ - start);
  }

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool takes(char wanted) {
    skip();
    bool there = at_ < text_.size() && text_[at_] == wanted;
    at_ += there;
    return there;
  }
  void expect(char wanted) {
    check(takes(wanted), "ONNX: a formula has no ", std::string(1, wanted), " before ", std::string(text_.substr(at_)));
  }

  const Call& c_;
  std::string_view text_;
  Bindings& names_;
  size_t at_ = 0;
};

}  // namespace

Name evaluate(const Call& c, std::string_view formula, Bindings bindings) { return Reader(c, formula, bindings).run(); }

}  // namespace umbra::io::onnx
