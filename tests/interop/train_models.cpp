// interop_train MODELS OUT NAME...: loads programs, trains each for five steps on its example inputs, prints the losses
// and saves the trained program, for real PyTorch to do the same and compare (tools/interop).
#include <cstdio>
#include <string>

#include "umbra/io/safetensors.h"
#include "umbra/optim/optim.h"
#include "umbra/umbra.h"

namespace umbra {
namespace {

std::vector<Value> read_inputs(const std::string& path) {
  NamedTensors tensors = io::load_safetensors(path);
  std::vector<Value> inputs;
  for (size_t i = 0; i < tensors.size(); ++i)
    for (const auto& [name, tensor] : tensors)
      if (name == "i" + std::to_string(i)) inputs.push_back(Value(tensor));
  return inputs;
}

Tensor loss_of(const std::vector<Value>& results) {
  for (const Value& result : results)
    if (result.is_tensor() && result.tensor_ref().is_floating_point()) return result.tensor().square().mean();
  fail<ValueError>("the program gives no floating tensor");
}

void train(const std::string& folder, const std::string& out, const std::string& name) {
  ExportedProgram program = load(folder + "/" + name + "/program.pt2");
  std::vector<Value> inputs = read_inputs(folder + "/" + name + "/inputs.safetensors");
  std::vector<Tensor> parameters;
  for (const InputSpec& spec : program.signature.inputs)
    if (spec.kind == InputKind::Parameter) parameters.push_back(program.find(spec.target));
  optim::SGD optimizer(parameters, {.lr = 0.01});
  ExportedModule module = program.module();
  std::printf("%s", name.c_str());
  for (int step = 0; step < 5; ++step) {
    Tensor loss = loss_of(module.run(inputs));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    std::printf(" %.9g", loss.item().to_double());
  }
  std::printf("\n");
  save(program, out + "/" + name + ".pt2");
}

}  // namespace
}  // namespace umbra

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: interop_train MODELS OUT NAME...\n");
    return 2;
  }
  int failed = 0;
  for (int i = 3; i < argc; ++i) {
    try {
      umbra::train(argv[1], argv[2], argv[i]);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s: %s\n", argv[i], e.what());
      failed = 1;
    }
  }
  return failed;
}
