// Classes and files.
#include <algorithm>
#include <cmath>

#include "jit/function_printer.h"

namespace umbra::jit {

std::string SourcePrinter::constant(const Tensor& tensor) {
  for (size_t i = 0; i < constants_.size(); ++i)
    if (constants_[i].is_same(tensor)) return "CONSTANTS.c" + std::to_string(i);
  constants_.push_back(tensor);
  return "CONSTANTS.c" + std::to_string(constants_.size() - 1);
}

namespace {
constexpr char kMarkBegin = '\1', kMarkEnd = '\2';  // texts in programs have them escaped
}

std::string SourcePrinter::mark(const Node& node) {
  SourceRange range = with_origins_ ? node.source.range() : SourceRange{};
  if (SourceRange first = range.origin(); first.source) range = first;
  if (!range.source) return "";
  marked_.push_back(range);
  return concat(kMarkBegin, marked_.size() - 1, kMarkEnd);
}

namespace {
/// Whether source can say what a constant is.
bool is_literal(const Value& v) {
  if (v.is_list()) return std::ranges::all_of(v.list(), is_literal);
  return v.is_none() || v.is_bool() || v.is_int() || v.is_string() || (v.is_double() && std::isfinite(v.to_double()));
}
}  // namespace

size_t shown_size(std::string_view text) {
  size_t size = 0;
  bool inside = false;
  for (char c : text) {
    inside |= c == kMarkBegin;
    size += !inside;
    if (c == kMarkEnd) inside = false;
  }
  return size;
}

void SourcePrinter::use(const TypePtr& type) {
  if (type->cls) add_class(type->cls);
  if (!type->name.empty() && !seen_[type->name]) {
    seen_[type->name] = true;
    std::string text = "class " + type->name.substr(type->name.rfind('.') + 1) + "(NamedTuple):\n";
    for (size_t i = 0; i < type->fields.size(); ++i)
      text += "  " + type->fields[i] + " : " + type->elements[i]->annotation() + "\n";
    texts_.emplace_back(type->name, text);
  }
  for (const TypePtr& t : type->elements) use(t);
}

std::string SourcePrinter::function(Function& function, const std::string& name, bool as_method) {
  return FunctionPrinter(*this, function, as_method).run(name);
}

namespace {
std::string indented(const std::string& text) {
  std::string out = "  ";
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] == '\n' && i + 1 < text.size()) out += "  ";
  }
  return out;
}
}  // namespace

std::string SourcePrinter::interface_text(const ClassType& cls, const std::string& name) {
  std::string out = "class " + name + (cls.is_module ? "(ModuleInterface):\n" : "(Interface):\n");
  for (const std::string& method : cls.method_order) {
    const Function& f = *cls.method(method);
    out += "  def " + method + "(self";
    for (size_t i = 1; i < f.parameters.size(); ++i) {
      use(f.parameters[i].type);
      out += ", " + f.parameters[i].name + ": " + f.parameters[i].type->annotation();
    }
    use(f.result);
    out += ") -> " + f.result->annotation() + ":\n    pass\n";
  }
  return out;
}

std::string SourcePrinter::class_text(ClassType& cls) {
  std::string name = cls.name.substr(cls.name.rfind('.') + 1);
  if (cls.is_enum) {
    std::string out = "class " + name + "(Enum):\n";
    for (const auto& [key, value] : cls.constants) out += "  " + key + " = " + to_source(value) + "\n";
    return out;
  }
  if (cls.is_interface) return interface_text(cls, name);
  std::string out = "class " + name + (cls.is_module ? "(Module):\n" : ":\n");
  if (cls.is_module) {
    std::string parameters, buffers;
    for (const Attribute& a : cls.attributes) {
      if (a.is_parameter) parameters += quoted(a.name) + ", ";
      if (a.is_buffer) buffers += quoted(a.name) + ", ";
    }
    out += "  __parameters__ = [" + parameters + "]\n  __buffers__ = [" + buffers + "]\n";
    auto listed = [&](const char* key, const std::vector<std::string>& hooks) {
      if (hooks.empty()) return;
      out += std::string("  ") + key + " = [";
      for (const std::string& hook : hooks) out += quoted(hook) + ", ";
      out += "]\n";
    };
    listed("__forward_pre_hooks__", cls.pre_hooks);
    listed("__forward_hooks__", cls.hooks);
  }
  for (const Attribute& a : cls.attributes) {
    use(a.type);
    if (is_identifier(a.name) && !is_reserved(a.name)) out += "  " + a.name + " : " + a.type->annotation() + "\n";
    else out += "  __annotations__[" + quoted(a.name) + "] = " + a.type->annotation() + "\n";
  }
  for (const auto& [key, value] : cls.constants)
    if (is_identifier(key) && !is_reserved(key) && is_literal(value))
      out += "  " + key + " : Final[" + type_of(value)->annotation() + "] = " + to_source(value) + "\n";
  for (const std::string& method : cls.method_order) {
    FunctionPtr f = cls.methods[method];
    if (f->ignored) continue;
    out += indented(function(*f, method, true));
  }
  if (cls.attributes.empty() && cls.method_order.empty() && !cls.is_module) out += "  pass\n";
  return out;
}

void SourcePrinter::add_class(const ClassPtr& cls) {
  if (seen_[cls->name]) return;
  seen_[cls->name] = true;
  std::string text = class_text(*cls);
  texts_.emplace_back(cls->name, text);
}

std::string SourcePrinter::function_name(const FunctionPtr& function) {
  add_function(function);
  return function_names_.at(function.get());
}

void SourcePrinter::add_function(const FunctionPtr& function) {
  if (function_names_.contains(function.get())) return;
  std::string name = function->name.starts_with("__torch__.") ? function->name : "__torch__." + function->name;
  size_t last = name.rfind('.') + 1;
  for (int i = 0; seen_.contains(name); ++i)
    name = name.substr(0, last) + "___torch_mangle_" + std::to_string(i) + "." +
           function->name.substr(function->name.rfind('.') + 1);
  seen_[name] = true;
  function_names_[function.get()] = name;
  texts_.emplace_back(name, this->function(*function, name.substr(name.rfind('.') + 1), false));
}

std::map<std::string, SourceFile> SourcePrinter::files() const {
  std::map<std::string, SourceFile> out;
  for (const auto& [name, text] : texts_) {
    std::string path = "code/" + name.substr(0, name.rfind('.'));
    for (char& c : path)
      if (c == '.') c = '/';
    SourceFile& file = out[path + ".py"];
    for (size_t at = 0; at < text.size(); ++at) {
      if (text[at] != kMarkBegin) {
        file.text += text[at];
        continue;
      }
      size_t number = std::strtoull(text.c_str() + at + 1, nullptr, 10);
      file.origins.emplace_back(file.text.size(), marked_[number]);
      at = text.find(kMarkEnd, at);
    }
    file.text += "\n";
  }
  return out;
}

}  // namespace umbra::jit
