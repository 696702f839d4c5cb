// Tracing a function of C++.
#include "umbra/jit/trace.h"

namespace umbra::jit {

namespace {

void record(Trace& trace, const Traced& function, const std::vector<Value>& examples) {
  for (size_t i = 0; i < examples.size(); ++i) trace.add_input(i == 0 ? "x" : concat("x", i), examples[i]);
  TraceScope scope(trace);
  trace.set_output(function(examples), true);
}

/// A module of the program while it is put together: tensors and modules under their names.
struct Draft {
  std::vector<std::pair<Attribute, Value>> tensors;
  std::vector<std::pair<std::string, std::unique_ptr<Draft>>> modules;

  Draft& module(const std::string& name) {
    for (auto& [key, draft] : modules)
      if (key == name) return *draft;
    return *modules.emplace_back(name, std::make_unique<Draft>()).second;
  }
  void add(std::string_view path, const Tensor& tensor, bool is_parameter) {
    size_t dot = path.find('.');
    if (dot != std::string_view::npos)
      return module(std::string(path.substr(0, dot))).add(path.substr(dot + 1), tensor, is_parameter);
    tensors.push_back({{std::string(path), tensor_type(), is_parameter, !is_parameter}, Value(tensor)});
  }
  Value finish(const std::string& name) {
    auto cls = std::make_shared<ClassType>();
    cls->name = name;
    cls->is_module = true;
    std::vector<Value> slots;
    for (auto& [attribute, value] : tensors) {
      cls->add_attribute(attribute);
      slots.push_back(value);
    }
    for (auto& [key, draft] : modules) {
      slots.push_back(draft->finish(name + "_" + key));
      cls->add_attribute({key, class_type(object_as<Instance>(slots.back())->cls)});
    }
    auto instance = make_counted<Instance>(cls);
    instance->slots = std::move(slots);
    return Value::object(instance);
  }
};

}  // namespace

FunctionPtr trace(const Traced& function, const std::vector<Value>& examples, const std::string& name) {
  auto trace = make_counted<Trace>();
  record(*trace, function, examples);
  trace->make_methods(name);
  auto made = std::make_shared<Function>();
  made->name = name;
  made->graph = trace->graph();
  for (const auto& v : made->graph->block().inputs())
    made->parameters.push_back({parameter_name(*v), without_details(v->type()), {}, false});
  made->result = without_details(made->graph->block().outputs.at(0)->type());
  return made;
}

Value trace_module(const Traced& function, const std::vector<Value>& examples, const NamedTensors& parameters,
                   const NamedTensors& buffers, const std::string& class_name) {
  Draft root;
  for (const auto& [path, tensor] : parameters) root.add(path, tensor, true);
  for (const auto& [path, tensor] : buffers) root.add(path, tensor, false);
  Value module = root.finish(class_name);
  auto trace = make_counted<Trace>();
  trace->set_self(module);
  record(*trace, function, examples);
  trace->make_methods("forward");
  return module;
}

}  // namespace umbra::jit
