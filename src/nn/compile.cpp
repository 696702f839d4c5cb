#include "umbra/nn/compile.h"

namespace umbra::nn {

aot::CompiledFunction compile(std::shared_ptr<const Module> module, aot::CompileOptions options) {
  options.state = [module, more = std::move(options.state)] {
    std::vector<Tensor> state = more ? more() : std::vector<Tensor>();
    for (const auto& [name, tensor] : module->named_parameters()) state.push_back(tensor);
    for (const auto& [name, tensor] : module->named_buffers()) state.push_back(tensor);
    return state;
  };
  options.context = [module, more = std::move(options.context)] {
    std::string context = more ? more() : "";
    for (const NamedModule& m : module->named_modules()) context += m.module->is_training() ? 't' : 'e';
    return context;
  };
  auto forward = [module](const std::vector<Value>& inputs) -> std::vector<Value> {
    std::vector<Tensor> tensors;
    for (const Value& v : inputs) tensors.push_back(v.tensor());
    std::vector<Tensor> results = module->call(std::move(tensors));
    return {results.begin(), results.end()};
  };
  return aot::CompiledFunction(std::move(forward), std::move(options));
}

}  // namespace umbra::nn
