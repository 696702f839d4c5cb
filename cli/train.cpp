// `umbra train`: some steps of an optimiser on a program, as an example of what can be done with one.
#include <cmath>
#include <cstdio>
#include <memory>

#include "commands.h"
#include "files.h"

namespace umbra::cli {

namespace {

/// The program's parameters, ready to be trained.
std::vector<Tensor> parameters_of(const ExportedProgram& program) {
  std::vector<Tensor> parameters;
  for (const InputSpec& spec : program.signature.inputs)
    if (spec.kind == InputKind::Parameter) {
      Tensor parameter = program.find(spec.target);
      if (!parameter.is_floating_point()) continue;
      parameter.requires_grad_();
      parameters.push_back(parameter);
    }
  check<ValueError>(!parameters.empty(), "the program has no parameters to train");
  return parameters;
}

Tensor loss_of(const Tensor& output, const Tensor& target, const std::string& kind) {
  if (kind == "mse") return mse_loss(output, target);
  if (kind == "l1") return l1_loss(output, target);
  return cross_entropy_loss(output, target);
}

/// C prints the sign of what is no number.
std::string loss_text(double loss) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", loss);
  return std::isnan(loss) ? "nan" : text;
}

std::unique_ptr<optim::Optimizer> make_optimizer(const TrainOptions& options, const std::vector<Tensor>& parameters) {
  if (options.optimizer == "sgd")
    return std::make_unique<optim::SGD>(parameters, optim::SGDOptions{.lr = options.rate});
  return std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions{.lr = options.rate});
}

}  // namespace

int train(const TrainOptions& options) {
  if (!options.output.empty()) check_program_place(options.output);
  ExportedProgram program = load_program(options.path);
  std::vector<Tensor> parameters = parameters_of(program);
  ExportedModule module = program.module();
  std::vector<Value> inputs = options.example ? example_inputs(program) : read_inputs(program, options.inputs);
  NamedTensors targets = load_tensors(options.target);
  check<ValueError>(targets.size() == 1, options.target, ": one tensor is expected, and there are ", targets.size());
  std::unique_ptr<optim::Optimizer> optimizer = make_optimizer(options, parameters);
  int every = std::max(1, options.steps / 10);
  for (int step = 0; step < options.steps; ++step) {
    optimizer->zero_grad();
    std::vector<Value> outputs = module.run(inputs);
    check<ValueError>(!outputs.empty() && outputs[0].is_tensor(), "the program's first result is no tensor");
    Tensor loss = loss_of(outputs[0].tensor(), targets[0].second, options.loss);
    check<ValueError>(loss.requires_grad(), "the program's first result does not depend on its parameters");
    loss.backward();
    optimizer->step();
    if (step % every == 0 || step + 1 == options.steps)
      std::printf("step %-6d loss %s\n", step + 1, loss_text(loss.detach().item<double>()).c_str());
  }
  if (!options.output.empty()) save_program(program, options.output);
  return 0;
}

}  // namespace umbra::cli
