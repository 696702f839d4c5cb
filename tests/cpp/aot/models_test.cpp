// Whole models ahead of time: outputs and all gradients are those of the eager run, and the cut keeps no more than it
// has to.
#include "../../../examples/cpp/models.h"

#include "autograd/testing.h"

namespace umbra {
namespace {

struct Run {
  Tensor loss;
  std::vector<Tensor> gradients;
};

template <class F> Run run_once(nn::Module& model, F loss_of) {
  model.zero_grad();
  Run run{loss_of(), {}};
  run.loss.backward();
  for (const Tensor& p : model.parameters()) run.gradients.push_back(p.grad());
  return run;
}

double difference(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined() ? 0 : 1;
  NoGrad no_grad;
  return (a - b).abs().max().item().to_double() / (1 + b.abs().max().item().to_double());
}

/// Eager against compiled with both partitioners.
template <class F> void check_model(nn::Module& model, F loss_of, const Tensor& x) {
  nn::StateDict before;
  for (auto& [name, tensor] : model.state_dict()) before.emplace_back(name, tensor.clone());
  Run eager = run_once(model, [&] { return loss_of(x); });
  nn::StateDict after;
  for (auto& [name, tensor] : model.state_dict()) after.emplace_back(name, tensor.clone());
  int64_t bytes[2] = {};
  for (bool min_cut : {false, true}) {
    model.load_state_dict(before);
    auto compiled = aot::compile(loss_of, {.partitioner = min_cut ? aot::min_cut_partition : aot::default_partition});
    Run run = run_once(model, [&] { return compiled(x); });
    EXPECT_LT(difference(run.loss, eager.loss), 1e-6);
    NamedTensors names = model.named_parameters();
    for (size_t i = 0; i < names.size(); ++i)
      EXPECT_LT(difference(run.gradients[i], eager.gradients[i]), 1e-5) << names[i].first;
    nn::StateDict state = model.state_dict();  // buffers were written alike
    for (size_t i = 0; i < state.size(); ++i)
      EXPECT_LT(difference(state[i].second, after[i].second), 1e-6) << state[i].first;
    bytes[min_cut] = compiled.graphs({x}).partition.saved_bytes;
  }
  EXPECT_LE(bytes[1], bytes[0]);
}

TEST(AotModels, Mlp) {
  manual_seed(0);
  examples::Mlp model;
  check_model(
      model, [&](const Tensor& x) { return model(x).square().mean(); }, randn({8, 64}));
}

TEST(AotModels, CnnWithBatchNormInTraining) {
  manual_seed(0);
  examples::Cnn model;
  check_model(
      model, [&](const Tensor& x) { return model(x).square().mean(); }, randn({4, 3, 16, 16}));
}

TEST(AotModels, SmallTransformer) {
  manual_seed(0);
  examples::Gpt model({.vocabulary = 32, .context = 16, .width = 32, .heads = 4, .layers = 2});
  check_model(
      model, [&](const Tensor& x) { return nn::functional::cross_entropy(model(x).flatten(0, 1), x.flatten()); },
      randint(32, {2, 8}));
}

TEST(AotModels, TransformerOfGpt2Size) {
  manual_seed(0);
  examples::Gpt model({.vocabulary = 64, .context = 16, .width = 768, .heads = 12, .layers = 12});
  check_model(
      model, [&](const Tensor& x) { return nn::functional::cross_entropy(model(x).flatten(0, 1), x.flatten()); },
      randint(64, {1, 8}));
}

TEST(AotModels, AModelWithoutDataHasParametersAndSavesWhatTheOtherSaves) {
  auto saved = [] {
    nn::Linear linear(4, 8);
    auto compiled = aot::compile([&](const Tensor& x) { return linear(x).relu().square().mean(); },
                                 {.partitioner = aot::default_partition});
    aot::CompiledGraphs graphs = compiled.graphs({randn({2, 4})});
    EXPECT_EQ(graphs.info.primals.size(), 3u);
    EXPECT_EQ(graphs.info.differentiable_primals().size(), 2u);
    Tensor loss = compiled(randn({2, 4}));
    EXPECT_TRUE(loss.requires_grad());
    loss.backward();
    EXPECT_EQ(linear.named_parameters()[0].second.grad().sizes(), linear.named_parameters()[0].second.sizes());
    return graphs.partition.saved_bytes;
  };
  int64_t with_data = saved();
  FakeMode fake;
  auto scope = fake.enter();
  EXPECT_EQ(saved(), with_data);
  EXPECT_GT(with_data, 0);
}

}  // namespace
}  // namespace umbra
