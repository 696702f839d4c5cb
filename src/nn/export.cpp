#include "umbra/nn/export.h"

#include "umbra/core/warning.h"

namespace umbra {

namespace {

constexpr const char* kOpenSizes =
    "In C++ size(d) and sizes() give plain numbers: a dimension that the program asks for that way is fixed. "
    "sym_size(d) and sym_sizes() keep it open, as -1 does in view() and reshape().\n";

/// A layer that was not registered is a constant of the program. Nobody wants that, and nothing else would tell.
void warn_of_constants_that_train(const ExportedProgram& program) {
  for (const auto& [name, tensor] : program.constants)
    if (tensor.requires_grad())
      warn("export: '", name, "' of size ", tensor.sym_sizes(),
           " requires gradients and is no parameter of the module, ",
           "so that the program has it as a constant. Register layers with add() and tensors with parameter().");
}

}  // namespace

ExportedProgram export_program(const nn::Module& module, const std::vector<Tensor>& inputs,
                               const ExportOptions& options) {
  ExportSource source;
  source.forward = [&module](const Tree& arguments, const Tree&) {
    std::vector<Tensor> tensors;
    for (const Tree& argument : arguments.children) tensors.push_back(argument.value.tensor());
    std::vector<Tensor> results = module.call(std::move(tensors));
    if (results.size() == 1) return Tree(Value(results[0]));
    std::vector<Tree> items;
    for (const Tensor& t : results) items.push_back(t.defined() ? Tree(Value(t)) : Tree(Value()));
    return Tree::tuple(std::move(items));
  };
  source.parameters = module.named_parameters();
  for (const auto& [name, tensor] : module.named_buffers())
    source.buffers.push_back({name, tensor, module.is_persistent(name)});
  for (const nn::NamedModule& m : module.named_modules()) source.modules.push_back({m.name});
  ExportOptions named = options;
  if (named.argument_names.empty()) {
    named.argument_names = module.argument_names();
    if (inputs.size() < named.argument_names.size()) named.argument_names.resize(inputs.size());
  }
  std::vector<Tree> arguments(inputs.begin(), inputs.end());
  nn::ExportRoot root(module);
  source.assignments = [&root] { return root.replaced_buffers(); };
  try {
    ExportedProgram program = export_program(source, Tree::tuple(std::move(arguments)), Tree::dict({}), named);
    warn_of_constants_that_train(program);
    return program;
  } catch (const ConstraintViolationError& error) {
    std::string text = error.what();
    if (text.find("specialized") == std::string::npos) throw;
    throw ConstraintViolationError(concat(text, "\n", kOpenSizes));
  }
}

}  // namespace umbra
