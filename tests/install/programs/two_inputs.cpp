// A module of two inputs, trained, exported with the names that its program gives them, and run again.
#include <umbra/umbra.h>

#include <cstdio>

using namespace umbra;

struct Mixer : nn::Module {
  nn::Linear left = add("left", nn::Linear(4, 3)), right = add("right", nn::Linear(2, 3));
  Tensor& calls = buffer("calls", zeros({}, DType::Int64));

  Tensor forward(Tensor x, Tensor y) override {
    if (is_training()) calls = calls + 1;
    return (left(x) + right(y)).tanh();
  }
};

int main() {
  Mixer mixer;
  Tensor x = randn({5, 4}), y = randn({5, 2});
  optim::SGD optimizer(mixer.parameters(), {.lr = 0.1});
  float first = 0, last = 0;
  for (int step = 0; step < 20; ++step) {
    Tensor loss = mixer(x, y).square().mean();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    last = loss.item<float>();
    if (step == 0) first = last;
  }
  bool counted = mixer.state_dict().front().first == "calls" && mixer.state_dict().front().second.item<int>() == 20;

  mixer.eval();
  save(export_program(mixer, {x, y}), "mixer.pt2");
  ExportedModule loaded = load("mixer.pt2").module();
  std::remove("mixer.pt2");
  float difference = (loaded(x, y) - mixer(x, y)).abs().max().item<float>();
  return last < first && counted && difference < 1e-6 ? 0 : 1;
}
