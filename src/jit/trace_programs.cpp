// Calls of programs in a trace: functions and methods of TorchScript, and what only Python can repeat.
#include "umbra/jit/interpreter.h"
#include "umbra/jit/objects.h"
#include "umbra/jit/trace.h"

namespace umbra::jit {

/// What a call gave: its tensors are known by the parts of `v`.
void Trace::give(const Value& value, Variable* v) {
  if (value.is_tensor()) v->set_type(tensor_type_of(value.tensor_ref()));
  if (value.is_tensor() || value.is_list() || value.is_object()) take_apart(value, v);
}

Value Trace::call_function(const FunctionPtr& function, std::vector<Value> arguments) {
  for (size_t i = arguments.size(); i < function->parameters.size(); ++i)
    arguments.push_back(function->parameters[i].default_value.value());
  Variable* callee = insert("prim::Constant", {}, simple_type(TypeKind::Function))->output();
  callee->node()->callee = function;
  callee->node()->set_attribute("name", Value(function->name.substr(function->name.rfind('.') + 1)));
  Variables inputs{callee};
  for (const Value& v : arguments) inputs.push_back(structure(v));
  Value result;
  {
    TracePause pause;
    result = run(*function, std::move(arguments));
  }
  function->ensure();
  give(result, insert("prim::CallFunction", std::move(inputs), function->result)->output());
  return result;
}

Value Trace::call_method(const Value& self, const std::string& method, std::vector<Value> arguments) {
  auto& instance = expect_object<Instance>(self, "an object");
  FunctionPtr function = instance.cls->method(method);
  check(function != nullptr, "'", instance.cls->name, "' has no method '", method, "'");
  Variables inputs{structure(self)};
  for (const Value& v : arguments) inputs.push_back(structure(v));
  for (size_t i = arguments.size() + 1; i < function->parameters.size(); ++i) {
    arguments.push_back(function->parameters[i].default_value.value());
    inputs.push_back(structure(arguments.back()));
  }
  arguments.insert(arguments.begin(), self);
  Value result;
  {
    TracePause pause;
    result = run(*function, std::move(arguments));
  }
  Node* node = insert("prim::CallMethod", std::move(inputs), function->result);
  node->set_attribute("name", Value(method));
  give(result, node->output());
  return result;
}

void Trace::record_python(const std::string& name, const Value& function, const std::vector<Value>& arguments,
                          const Value& result, bool inplace) {
  Variables inputs;
  for (const Value& v : arguments)
    if (v.is_tensor()) inputs.push_back(tensor_variable(v.tensor_ref()));
  Node* node = insert("prim::PythonOp", std::move(inputs));
  node->set_attribute("name", Value(name));
  node->set_attribute("inplace", Value(static_cast<int64_t>(inplace)));
  node->set_attribute("function", function);
  if (result.is_tensor()) give(result, node->add_output(tensor_type()));
  else if (result.is_list())
    for (const Value& v : result.list()) give(v, node->add_output(traced_type(v)));
}

}  // namespace umbra::jit
