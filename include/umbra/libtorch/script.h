// Programs of TorchScript: `torch::jit::load("model.pt").forward({x}).toTensor()`.
#pragma once

#include "umbra/core/ivalue.h"
#include "umbra/io/torchscript.h"
#include "umbra/jit/interpreter.h"
#include "umbra/libtorch/tensor.h"

namespace torch {

namespace ivalue {
struct Tuple {
  static IValue::Elements create(std::vector<IValue> values) { return {std::move(values)}; }
};
}  // namespace ivalue

namespace jit {
using namespace umbra::jit;
using umbra::IValue;

struct NamedTensor {
  std::string name;
  Tensor value;
};

/// A method, or a function, that is called with a list of values.
class Method {
 public:
  Method(umbra::Value self, umbra::jit::FunctionPtr function)
      : self_(std::move(self)), function_(std::move(function)) {}
  IValue operator()(const std::vector<IValue>& inputs) const {
    std::vector<umbra::Value> arguments{self_};
    arguments.insert(arguments.end(), inputs.begin(), inputs.end());
    return umbra::jit::run(*function_, std::move(arguments));
  }

 private:
  umbra::Value self_;
  umbra::jit::FunctionPtr function_;
};

/// A module with its program. Copies share it.
class Module {
 public:
  Module() = default;
  explicit Module(umbra::Value module) : module_(std::move(module)) {}

  IValue forward(const std::vector<IValue>& inputs) const { return get_method("forward")(inputs); }
  IValue operator()(const std::vector<IValue>& inputs) const { return forward(inputs); }
  Method get_method(const std::string& name) const {
    umbra::jit::FunctionPtr found = instance().cls->method(name);
    if (!found) throw AttributeError("Method '" + name + "' is not defined.");
    return {module_, found};
  }
  template <class... Inputs> IValue run_method(const std::string& name, const Inputs&... inputs) const {
    return get_method(name)({IValue(inputs)...});
  }
  bool hasattr(const std::string& name) const { return instance().cls->find(name) >= 0; }
  IValue attr(const std::string& name) const {
    if (!hasattr(name)) throw AttributeError("the module has no attribute '" + name + "'");
    return instance().attribute(name);
  }
  void train(bool on = true) {
    if (hasattr("training")) instance().attribute("training") = umbra::Value(on);
    for (const auto& [name, child] : named_children()) Module(child).train(on);
  }
  void eval() { train(false); }
  bool is_training() const { return !hasattr("training") || attr("training").toBool(); }
  std::vector<NamedTensor> named_parameters() const { return tensors("", true); }
  std::vector<NamedTensor> named_buffers() const { return tensors("", false); }
  std::vector<Tensor> parameters() const { return values(named_parameters()); }
  std::vector<Tensor> buffers() const { return values(named_buffers()); }
  /// To the processor, where all of it is; other devices are refused.
  void to(umbra::Device device) const {
    if (device.type != DeviceType::CPU) throw NotImplementedError("programs of TorchScript run on the CPU");
  }
  void save(const std::string& path) const { umbra::io::save_torchscript(path, module_); }
  const umbra::Value& value() const { return module_; }

 private:
  umbra::jit::Instance& instance() const {
    return umbra::jit::expect_object<umbra::jit::Instance>(module_, "a module");
  }
  std::vector<std::pair<std::string, umbra::Value>> named_children() const {
    std::vector<std::pair<std::string, umbra::Value>> out;
    for (size_t i = 0; i < instance().cls->attributes.size(); ++i) {
      const auto* child = umbra::jit::object_as<umbra::jit::Instance>(instance().slots[i]);
      if (child && child->cls->is_module) out.emplace_back(instance().cls->attributes[i].name, instance().slots[i]);
    }
    return out;
  }
  std::vector<NamedTensor> tensors(const std::string& prefix, bool parameters) const {
    std::vector<NamedTensor> out;
    const umbra::jit::ClassType& cls = *instance().cls;
    for (size_t i = 0; i < cls.attributes.size(); ++i)
      if ((parameters ? cls.attributes[i].is_parameter : cls.attributes[i].is_buffer) &&
          instance().slots[i].is_tensor())
        out.push_back({prefix + cls.attributes[i].name, instance().slots[i].tensor()});
    for (const auto& [name, child] : named_children())
      for (NamedTensor& t : Module(child).tensors(prefix + name + ".", parameters)) out.push_back(std::move(t));
    return out;
  }
  static std::vector<Tensor> values(const std::vector<NamedTensor>& named) {
    std::vector<Tensor> out;
    for (const NamedTensor& t : named) out.push_back(t.value);
    return out;
  }
  umbra::Value module_;
};
namespace script {
using jit::Module;
}

inline Module load(const std::string& path, umbra::Device = DeviceType::CPU) {
  return Module(umbra::io::load_torchscript(path));
}

}  // namespace jit
}  // namespace torch
