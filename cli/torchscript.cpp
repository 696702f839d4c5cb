// TorchScript archives as exported programs.
#include "umbra/io/torchscript.h"

#include <cstdio>

#include "commands.h"
#include "files.h"
#include "umbra/io/zip.h"
#include "umbra/jit/convert.h"

namespace umbra::cli {
namespace {

/// An example of an input by its looks: "float32[batch=2,3,64]". A size with a name may be another when the program
/// runs.
Value made_input(const std::string& text, const std::string& argument, DynamicShapes& dynamic) {
  size_t open = text.find('[');
  check<ValueError>(open != std::string::npos && text.ends_with("]"), text,
                    ": an input is a file of tensors, or looks like float32[batch=2,3,224,224]");
  std::vector<int64_t> sizes;
  std::string rest = text.substr(open + 1, text.size() - open - 2);
  while (!rest.empty()) {
    size_t comma = std::min(rest.find(','), rest.size());
    std::string size = rest.substr(0, comma);
    rest = comma < rest.size() ? rest.substr(comma + 1) : "";
    if (size_t equals = size.find('='); equals != std::string::npos) {
      dynamic[argument].emplace(static_cast<int64_t>(sizes.size()), Dim(size.substr(0, equals)));
      size = size.substr(equals + 1);
    }
    char* end = nullptr;
    sizes.push_back(std::strtoll(size.c_str(), &end, 10));
    check<ValueError>(!size.empty() && *end == 0 && sizes.back() >= 0, text, ": '", size, "' is no size");
  }
  DType dtype = dtype_from_name(text.substr(0, open));
  check<ValueError>(dtype != DType::Undefined, text, ": '", text.substr(0, open), "' is no type of elements");
  if (is_floating(dtype) || is_complex(dtype)) return Value(randn(sizes, {.dtype = dtype}));
  return Value(zeros(sizes, {.dtype = dtype}));
}

void add_tensors(const jit::Instance& module, const std::string& prefix, NamedTensors& tensors) {
  const std::vector<jit::Attribute>& attributes = module.cls->attributes;
  for (bool parameters : {true, false})
    for (size_t i = 0; i < attributes.size(); ++i)
      if ((parameters ? attributes[i].is_parameter : attributes[i].is_buffer) && module.slots[i].is_tensor())
        tensors.emplace_back(prefix + attributes[i].name, module.slots[i].tensor());
  for (size_t i = 0; i < attributes.size(); ++i)
    if (const auto* child = jit::object_as<jit::Instance>(module.slots[i]); child && child->cls->is_module)
      add_tensors(*child, prefix + attributes[i].name + ".", tensors);
}

}  // namespace

bool is_torchscript(const std::string& path) {
  try {
    io::ZipReader zip = io::ZipReader::open(path);
    return zip.find(zip.root() + "constants.pkl");
  } catch (const Error&) {
    return false;  // something else, or damaged: who reads it as something else says so
  }
}

NamedTensors load_torchscript_tensors(const std::string& path) {
  Value module = io::load_torchscript(path);
  NamedTensors tensors;
  add_tensors(jit::expect_object<jit::Instance>(module, "a module"), "", tensors);
  return tensors;
}

int convert_torchscript(const std::string& from, const std::string& to, const std::vector<std::string>& inputs) {
  check_place(to);
  Value module = io::load_torchscript(from);
  auto& instance = jit::expect_object<jit::Instance>(module, "a module");
  jit::FunctionPtr forward = instance.cls->method("forward");
  check<ValueError>(forward != nullptr, from, ": the module has no method 'forward'");
  check<ValueError>(
      !inputs.empty() || forward->parameters.size() == 1, from,
      ": a TorchScript file does not say what its inputs look like; give an example of each with --input, a "
      "file of tensors or its looks, such as float32[batch=2,3,224,224]. It takes: ",
      forward->schema());
  ExportOptions options;
  std::vector<Value> arguments;
  for (const std::string& text : inputs) {
    size_t place = arguments.size() + 1;
    std::string name = place < forward->parameters.size() ? forward->parameters[place].name : "";
    name = name.substr(0, name.find('.'));  // a trace may put a number behind it
    if (text.find('[') != std::string::npos) {
      arguments.push_back(made_input(text, name, options.dynamic_shapes));
    } else {
      for (const auto& [key, tensor] : load_tensors(text)) arguments.emplace_back(tensor);
    }
  }
  ExportedProgram program = jit::to_exported_program(module, arguments, {}, options);
  save_program(program, to);
  std::printf("%s: %zu nodes\n", to.c_str(), program.graph().size());
  return 0;
}

}  // namespace umbra::cli
