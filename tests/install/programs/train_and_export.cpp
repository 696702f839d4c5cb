// Trains a small classifier of images, exports it, loads it again and fine-tunes what was loaded.
#include <umbra/umbra.h>

#include <cstdio>
#include <iostream>

using namespace umbra;

struct Cnn : nn::Module {
  nn::Conv2d conv = add("conv", nn::Conv2d(1, 8, 3, {.padding = 1}));
  nn::BatchNorm2d norm = add("norm", nn::BatchNorm2d(8));
  nn::Linear head = add("head", nn::Linear(8 * 4 * 4, 2));

  Tensor forward(Tensor x) override { return head(max_pool2d(relu(norm(conv(x))), 2).flatten(1)); }
};

int main() {
  manual_seed(0);
  Tensor images = randn({16, 1, 8, 8});
  Tensor labels = (images.mean({1, 2, 3}) > 0).to(DType::Int64);

  Cnn model;
  std::cout << model << "\n";
  optim::AdamW optimizer(model.parameters(), {.lr = 1e-2});
  float first = 0, last = 0;
  for (int step = 0; step < 30; ++step) {
    Tensor loss = nn::functional::cross_entropy(model(images), labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    last = loss.item<float>();
    if (step == 0) first = last;
  }
  std::cout << "loss " << first << " -> " << last << "\n";

  model.eval();
  Dim batch("batch", {.max = 64});
  save(export_program(model, {images}, {.dynamic_shapes = {{"x", {{0, batch}}}}}), "cnn.pt2");
  ExportedModule loaded = load("cnn.pt2").module();
  std::remove("cnn.pt2");
  Tensor some = images.slice(0, 0, 5);
  float difference = (loaded(some) - model(some)).abs().max().item<float>();

  std::vector<Tensor> weights;
  for (const auto& [name, tensor] : loaded.program().state)
    if (tensor.requires_grad()) weights.push_back(tensor);
  optim::SGD tuner(weights, {.lr = 1e-2});
  Tensor before = weights[0].detach().clone();
  nn::functional::cross_entropy(loaded(images), labels).backward();
  tuner.step();
  bool moved = !equal(before, weights[0]);
  return last < first / 2 && difference < 1e-5 && moved ? 0 : 1;
}
