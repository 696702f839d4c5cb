// Exported programs in C++: the examples of docs/run_in_cpp.md, docs/train_in_cpp.md and docs/export_from_cpp.md.
#include <umbra/umbra.h>
#include <umbra/view/page.h>
#include <umbra/view/program_cost.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

using namespace umbra;

namespace {

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::exit(1);
}

// ---- Export from C++ ----

struct Classifier : nn::Module {
  nn::Linear up = add("up", nn::Linear(16, 32)), down = add("down", nn::Linear(32, 4));
  Tensor forward(Tensor x) override { return down(relu(up(x))); }
};

void export_model() {
  manual_seed(0);
  Classifier model;
  Tensor x = randn({8, 16});

  Dim batch("batch", {.max = 1024});
  ExportedProgram program = export_program(model, {x}, {.dynamic_shapes = {{"x", {{0, batch}}}}});
  save(program, "classifier.pt2");  // torch.export.load("classifier.pt2") reads it

  std::printf("%s\n", to_string(program).c_str());
  expect(program.signature.parameters().size() == 4, "the parameters are part of the program");
}

struct Mixer : nn::Module {
  nn::Linear left = add("left", nn::Linear(4, 3)), right = add("right", nn::Linear(2, 3));
  Tensor& calls = buffer("calls", zeros({}, DType::Int64));  // part of the state; a write to it is part of the program
  Tensor forward(Tensor x, Tensor y) override {
    calls.add_(1);
    return (left(x) + right(y)).tanh();
  }
};

void export_two_inputs() {
  Mixer mixer;
  Dim rows("rows", {.min = 2});
  ExportedProgram program =
      export_program(mixer, {randn({5, 4}), randn({5, 2})},
                     {.dynamic_shapes = {{"x", {{0, rows}}}, {"y", {{0, rows}}}}, .argument_names = {"x", "y"}});
  ExportedModule again = program.module();
  again(randn({7, 4}), randn({7, 2}));
  expect(program.find("calls").item().to_int() == 1, "the buffer was written");
}

void capture_function() {
  auto graph =
      make_fx([](const Tensor& x, const Tensor& scale) { return (x - x.mean()) * scale; }, {randn({4, 6}), ones({6})});
  std::printf("%s\n", graph->code().c_str());
}

// ---- Run a PyTorch model in C++ ----

void run_program() {
  ExportedProgram program = load("classifier.pt2");  // weights are mapped from the file, nothing in it is run
  ExportedModule model = program.module();

  Tensor x = randn({3, 16});
  Tensor y = model(x);  // inputs are checked, then the graph runs
  expect(y.size(0) == 3 && y.size(1) == 4, "a batch of another size than the example's");
}

void run_with_errors() {
  ExportedModule model = load("classifier.pt2").module();
  try {
    model(randn({3, 17}));
  } catch (const Error& error) {
    std::printf("%s\n", error.what());  // which input, what was expected, what was given
  }
}

void run_general() {
  ExportedProgram program = load("classifier.pt2");
  for (const std::string& name : program.signature.user_inputs()) std::printf("takes %s\n", name.c_str());

  // Several inputs and outputs, numbers among them: flat lists of values, in the order of the signature.
  std::vector<Value> inputs = {randn({5, 16})};
  std::vector<Value> outputs = program.module().run(inputs);
  expect(outputs[0].tensor().size(0) == 5, "one result for each user output");

  Tensor weight = program.find("up.weight");  // the program's own tensors, by the names of the state dict
  expect(weight.size(0) == 32, "weights are found by name");
}

void look_at_program() {
  ExportedProgram program = load("classifier.pt2");
  ProgramCost cost = cost_of(program, {.sizes = {"64"}});
  std::printf("%lld operations, %lld bytes at the peak\n", static_cast<long long>(cost.report.flops()),
              static_cast<long long>(cost.report.peak));
  std::ofstream("classifier.html") << program_page(program, {.title = "classifier"});
}

// ---- Train it ----

void train_program() {
  ExportedProgram program = load("classifier.pt2");
  ExportedModule model = program.module();  // shares the parameters: what is trained is the program
  optim::AdamW optimizer(model.parameters(), {.lr = 1e-2});
  Tensor x = randn({64, 16}), target = x.slice(1, 0, 4).argmax(1);
  double first = 0, last = 0;
  for (int step = 0; step < 100; ++step) {
    Tensor loss = cross_entropy_loss(model(x), target);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    last = loss.item().to_double();
    if (step == 0) first = last;
  }
  std::printf("loss %.3f, then %.3f\n", first, last);
  expect(last < first / 4, "training makes the loss small");

  save(program, "trained.pt2");
}

void train_ahead_of_time() {
  ExportedModule model = load("classifier.pt2").module();
  Tensor x = randn({64, 16}), target = zeros({64}, {.dtype = DType::Int64});

  // Forward and backward become graphs once, and run as graphs from then on.
  auto loss_of = aot::compile([&](const Tensor& x) { return cross_entropy_loss(model(x), target); });
  loss_of(x).backward();
  expect(model.program().find("up.weight").grad().defined(), "gradients reach the program's parameters");
}

}  // namespace

int main() {
  export_model();
  export_two_inputs();
  capture_function();
  run_program();
  run_with_errors();
  run_general();
  look_at_program();
  train_program();
  train_ahead_of_time();
}
