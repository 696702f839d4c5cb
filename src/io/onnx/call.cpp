#include "io/onnx/call.h"

#include <algorithm>

#include "umbra/generated/functions.h"

namespace umbra::io::onnx {

namespace {

DType type_of_number(const Value& value) {
  if (value.is_bool() || value.tag() == Value::Tag::SymBool) return DType::Bool;
  return value.is_double() || value.tag() == Value::Tag::SymFloat ? DType::Float64 : DType::Int64;
}

}  // namespace

// ---- arguments ----

size_t Call::place(std::string_view name) const {
  int at = node_.target().op()->schema().find(name);
  check(at >= 0, "ONNX: ", node_.target().text(), " has no argument ", std::string(name));
  return static_cast<size_t>(at);
}

const fx::Argument& Call::argument(std::string_view name) const {
  const fx::Argument* given = node_.argument(place(name));
  static const fx::Argument none;
  return given ? *given : none;
}

bool Call::has(std::string_view name) const { return !argument(name).is_none(); }

Value Call::plain(std::string_view name) const {
  const fx::Argument* given = node_.argument(place(name));
  if (!given) return node_.target().op()->schema().arguments[place(name)].default_value.value_or(Value());
  if (!given->is_value()) refuse(concat("its argument ", std::string(name), " is computed by the program"));
  return given->value();
}

std::vector<int64_t> Call::numbers(std::string_view name) const {
  const fx::Argument* given = node_.argument(place(name));
  std::vector<int64_t> out;
  if (given && given->is_container()) {
    for (const fx::Argument& item : given->items()) {
      if (!item.is_value()) refuse(concat("its argument ", std::string(name), " is computed by the program"));
      out.push_back(item.value().to_int());
    }
    return out;
  }
  Value value = plain(name);
  if (value.is_none()) return out;
  if (value.is_int()) return {value.to_int()};
  for (SymInt item : value.int_list()) out.push_back(item.value());
  return out;
}

std::vector<int64_t> Call::numbers(std::string_view name, size_t count) const {
  std::vector<int64_t> out = numbers(name);
  if (out.size() == 1) out.assign(count, out[0]);
  return out;
}

int64_t Call::dim(std::string_view name, std::string_view of) const {
  int64_t d = number(name);
  return d < 0 ? d + std::max<int64_t>(rank(of), 1) : d;
}

std::vector<int64_t> Call::dims(std::string_view name, std::string_view of) const {
  std::vector<int64_t> out = numbers(name);
  for (int64_t& d : out)
    if (d < 0) d += rank(of);
  if (out.empty())
    for (int64_t d = 0; d < rank(of); ++d) out.push_back(d);
  return out;
}

const Tensor& Call::tensor(std::string_view name) const {
  const fx::Node* node = argument(name).node();
  if (!node || !node->meta.val.is_tensor()) refuse(concat("its argument ", std::string(name), " is no tensor"));
  return node->meta.val.tensor_ref();
}

// ---- values ----

Name Call::value_of(const fx::Node* node) const {
  auto found = values_.find(node);
  check(found != values_.end() && found->second.size() == 1, "ONNX: no value stands for ", node->name());
  return found->second[0];
}

Name Call::operator[](std::string_view name) const {
  const fx::Argument& given = argument(name);
  if (given.is_none()) return "";
  if (!given.node()) refuse(concat("its argument ", std::string(name), " is no tensor"));
  return value_of(given.node());
}

Name Call::as(std::string_view name, DType dtype) const {
  const fx::Argument* given = node_.argument(place(name));
  return value(given ? *given : fx::Argument(plain(name)), dtype);
}

Name Call::value(const fx::Argument& argument, DType dtype) const {
  if (!argument.node()) return model.scalar(argument.value().to_scalar(), dtype);
  const Value& value = argument.node()->meta.val;
  return model.cast(value_of(argument.node()), value.is_tensor() ? value.tensor_ref().dtype() : type_of_number(value),
                    dtype);
}

Name Call::sizes(std::string_view name, int64_t unknown) const {
  const fx::Argument& given = argument(name);
  fx::Arguments items = given.elements();
  if (std::ranges::none_of(items, [](const fx::Argument& item) { return item.is_node(); })) {
    std::vector<int64_t> numbers;
    for (const fx::Argument& item : items)
      numbers.push_back(item.value().to_int() < 0 ? unknown : item.value().to_int());
    return model.list(numbers);
  }
  Name axes = model.list({0});
  Names parts;
  for (const fx::Argument& item : items)
    parts.push_back(item.node() ? model.emit("Unsqueeze", {value_of(item.node()), axes})
                                : model.list({item.value().to_int() < 0 ? unknown : item.value().to_int()}));
  return model.emit("Concat", parts, Attributes().set("axis", 0));
}

Name Call::list_of(std::string_view name) const {
  const fx::Argument& given = argument(name);
  if (given.node()) return model.emit("Unsqueeze", {value(given, DType::Int64), model.list({0})});
  return model.list({plain(name).to_int()});
}

Name Call::size_of(const Name& value, int64_t d) const {
  return model.emit("Shape", {value}, Attributes().set("start", d).set("end", d + 1));
}

// ---- results ----

const Tensor& Call::result(size_t i) const {
  const Value& value = node_.meta.val;
  if (value.is_tensor()) return value.tensor_ref();
  if (value.is_tensor_list()) return value.tensor_list()[i];
  check(value.is_list() && i < value.list().size(), "ONNX: it is not known what ", node_.name(), " gives");
  return value.list()[i].tensor_ref();
}

bool Call::uses(size_t i) const {
  const fx::Function& item = fx::function("operator.getitem");
  return std::ranges::any_of(node_.users(), [&](const fx::Node* user) {
    return !user->calls(item) || (user->arg(1).value().to_int() == static_cast<int64_t>(i) && !user->users().empty());
  });
}

void Call::refuse(const std::string& why) const {
  fail<NotImplementedError>("ONNX: ", node_.target().text(), " (", node_.name(), "): ", why);
}

}  // namespace umbra::io::onnx
