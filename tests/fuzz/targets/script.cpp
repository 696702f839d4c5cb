// TorchScript source: classes and functions, read and compiled.
#include "target.h"
#include "umbra/jit/source.h"

namespace {

/// The names behind every "class ".
std::vector<std::string> classes(std::string_view text) {
  std::vector<std::string> names;
  for (size_t at = 0; (at = text.find("class ", at)) != std::string_view::npos && names.size() < 20;) {
    at += 6;
    names.emplace_back(text.substr(at, text.find_first_of("(:\n ", at) - at));
  }
  return names;
}

}  // namespace

void umbra::fuzz::run(std::string_view input) {
  auto load = [&](const std::string& file) -> jit::SourcePtr {
    if (file != "code/__torch__.py") return nullptr;
    return std::make_shared<jit::SourceText>(jit::SourceText{.text = std::string(input), .file = file});
  };
  jit::SourceReader reader(load, {});
  for (const std::string& name : classes(input)) {
    jit::TypePtr type = reader.type("__torch__." + name);
    if (!type || !type->cls) continue;
    for (const std::string& method : type->cls->method_order) {
      try {
        type->cls->method(method)->ensure();
      } catch (const Error&) {  // the other methods may be sound
      }
    }
  }
}
