#include "umbra/nn/export.h"

namespace umbra {

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
  return export_program(source, Tree::tuple(std::move(arguments)), Tree::dict({}), named);
}

}  // namespace umbra
