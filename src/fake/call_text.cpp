#include "fake/call_text.h"

#include "umbra/core/print.h"
#include "umbra/core/wrapped_number.h"

namespace umbra {

namespace {

std::string size_text(const Tensor& t) {
  std::string out = "size=(";
  for (int64_t d = 0; d < t.dim(); ++d) out += (d ? ", " : "") + to_string(t.sym_size(d));
  return out + (t.dim() == 1 ? ",)" : ")");
}

/// The number of a tensor without dimensions, as it is printed.
std::string number_text(const Tensor& t) {
  std::string whole = to_string(t), head = "tensor(";
  return whole.substr(head.size(), whole.find_first_of(",)") - head.size());
}

/// A tensor with data, of which only a number is shown.
std::string data_text(const Tensor& t) {
  std::string out = "tensor(";
  if (t.is_meta()) out += "..., device='meta'";
  else if (t.dim() == 0 && t.device() == Device()) out += number_text(t);
  else out += "[...]";
  out += ", " + size_text(t);
  DType type = t.dtype();
  if (type != DType::Float32 && type != DType::Int64 && type != DType::Bool) out += ", dtype=" + to_string(type);
  return out + (t.requires_grad() ? ", requires_grad=True)" : ")");
}

std::string tensor_text(const Tensor& t) {
  if (!t.defined()) return "None";
  if (t.impl()->is_wrapped_number()) return to_string(wrapped_scalar(t));
  return t.is_fake() ? to_string(t) : data_text(t);
}

std::string value_text(const Value& value) {
  if (value.is_tensor()) return tensor_text(value.tensor_ref());
  if (!value.is_tensor_list()) return to_string(value);
  std::string out = "[";
  for (const Tensor& t : value.tensor_list()) out += (out.size() > 1 ? ", " : "") + tensor_text(t);
  return out + "]";
}

bool is_default(const SchemaArgument& argument, const Value& value) {
  return argument.default_value && argument.default_value->equals(value);
}

}  // namespace

std::string call_text(const Operator& op, const Value* frame) {
  const Schema& schema = op.schema();
  size_t shown = 0;  // what stands behind the last argument that is no default is left out
  for (size_t i = 0; i < schema.arguments.size(); ++i)
    if (!schema.arguments[i].keyword_only && !is_default(schema.arguments[i], frame[i])) shown = i + 1;
  std::string arguments;
  auto add = [&](const std::string& text) { arguments += (arguments.empty() ? "" : ", ") + text; };
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const SchemaArgument& argument = schema.arguments[i];
    if (!argument.keyword_only && i < shown) add(value_text(frame[i]));
    else if (argument.keyword_only && !is_default(argument, frame[i])) add(argument.name + "=" + value_text(frame[i]));
  }
  return schema.space + "." + schema.name + "." + (schema.overload.empty() ? "default" : schema.overload) + "(" +
         arguments + ")";
}

}  // namespace umbra
