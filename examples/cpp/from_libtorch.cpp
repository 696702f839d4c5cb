// A program of libtorch, brought over: the examples of docs/from_libtorch.md.
#include <umbra/nn/data.h>
#include <umbra/umbra.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace torch = umbra;

namespace {

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::exit(1);
}

struct Net : torch::nn::Module {
  torch::nn::Conv2d conv = add("conv", torch::nn::Conv2d(1, 8, 3, {.padding = 1}));
  torch::nn::Linear fc = add("fc", torch::nn::Linear(8 * 4 * 4, 3));

  torch::Tensor forward(torch::Tensor x) override {
    x = torch::relu(torch::max_pool2d(conv(x), 2));
    x = torch::dropout(x.view({-1, 8 * 4 * 4}), 0.1, is_training());
    return torch::log_softmax(fc(x), 1);
  }
};

void train() {
  torch::manual_seed(1);
  torch::Tensor images = torch::randn({48, 1, 8, 8});
  torch::Tensor labels = images.mean({1, 2, 3}).mul(8).clamp(-1, 1).round().add(1).to(torch::kLong);
  torch::utils::data::TensorDataset dataset(images, labels);
  torch::utils::data::DataLoader loader(dataset, {.batch_size = 16, .shuffle = true, .num_workers = 2});

  Net model;
  torch::optim::SGD optimizer(model.parameters(), {.lr = 0.05, .momentum = 0.9});
  for (int epoch = 0; epoch < 30; ++epoch) {
    for (auto& [data, target] : loader) {
      optimizer.zero_grad();
      torch::Tensor loss = torch::nn::functional::nll_loss(model(data), target);
      expect(!std::isnan(loss.item<float>()), "the loss is a number");
      loss.backward();
      torch::nn::utils::clip_grad_norm_(model.parameters(), 5.0);
      optimizer.step();
    }
  }

  model.eval();
  torch::NoGradGuard no_grad;
  auto correct = model(images).argmax(1).eq(labels).sum().item<int64_t>();
  std::printf("%d of 48 right\n", static_cast<int>(correct));
  expect(correct > 40, "the model has learned");
}

struct Squares : torch::utils::data::Dataset<std::pair<torch::Tensor, double>> {
  size_t size() const override { return 100; }
  Sample get(size_t index) const override {  // with workers, from several threads at once
    double x = static_cast<double>(index) / 100;
    return {torch::full({3}, x), x * x};
  }
};

void load_data_of_ones_own() {
  Squares squares;
  torch::utils::data::DataLoader loader(squares, {.batch_size = 32, .num_workers = 2});
  for (auto& [x, target] : loader) expect(x.select(1, 0).square().allclose(target), "samples are stacked");
}

namespace io = torch::io;

void save_training(const Net& model, const torch::optim::Optimizer& optimizer, int64_t epoch) {
  io::save_pickle("training.pt", io::PickleValue::dict({{"model", io::to_pickle(model.state_dict())},
                                                        {"optimizer", io::to_pickle(optimizer.state_dict())},
                                                        {"epoch", epoch}}));
}

int64_t resume_training(Net& model, torch::optim::Optimizer& optimizer) {
  io::PickleValue checkpoint = io::load_pickle("training.pt");  // nothing in the file is run
  model.load_state_dict(io::to_state_dict(checkpoint["model"]));
  optimizer.load_state_dict(io::to_optimizer_state(checkpoint["optimizer"]));
  return checkpoint["epoch"].as_int();
}

void save_and_resume() {
  torch::Tensor x = torch::randn({4, 1, 8, 8});
  Net model, again;
  torch::optim::Adam optimizer(model.parameters()), continued(again.parameters());
  model(x).square().mean().backward();
  optimizer.step();
  save_training(model, optimizer, 7);
  expect(resume_training(again, continued) == 7, "the epoch is in the file");
  expect(torch::equal(again.fc.weight, model.fc.weight), "so are the weights");
  expect(continued.state_dict().state.size() == 4, "so is what Adam keeps");
}

class Clipped : public torch::autograd::Function<Clipped> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, torch::Tensor x) {
    ctx->save_for_backward({x});
    return x.clamp(-1, 1);
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* ctx,
                                               torch::autograd::tensor_list grad_outputs) {
    torch::Tensor x = ctx->get_saved_variables()[0];
    return {grad_outputs[0] * (x.abs() <= 1)};
  }
};

void gradient_of_ones_own() {
  torch::Tensor x = torch::tensor({0.5, 2.0}, torch::requires_grad());
  Clipped::apply(x).sum().backward();
  expect(x.grad()[0].item<float>() == 1 && x.grad()[1].item<float>() == 0, "the gradient is the function's own");
}

}  // namespace

int main() {
  train();
  load_data_of_ones_own();
  save_and_resume();
  gradient_of_ones_own();
}
