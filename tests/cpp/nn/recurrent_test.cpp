// Recurrent networks: weights and results as PyTorch 2.15 gives them for the same seed.
#include "autograd/testing.h"

namespace umbra {
namespace {

void expect_head(const Tensor& t, const std::vector<double>& expected) {
  std::vector<double> all = values(t);
  ASSERT_GE(all.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(all[i], expected[i], 2e-5) << "element " << i;
}

Tensor sequence() { return arange(8).to(DType::Float32).view({2, 2, 2}) / 4; }
const nn::RecurrentOptions kTwoBothWays = {.num_layers = 2, .bidirectional = true};

TEST(Recurrent, Rnn) {
  manual_seed(0);
  nn::RNN network(2, 3, kTwoBothWays);
  auto [output, hidden] = network.run_sequence(sequence());
  expect_head(output, {0.64333, 0.08858, 0.43076, -0.04397});
  expect_head(hidden, {-0.07006, -0.80442, 0.54164});
}

TEST(Recurrent, Gru) {
  manual_seed(0);
  nn::GRU network(2, 3, kTwoBothWays);
  auto [output, hidden] = network.run_sequence(sequence());
  expect_head(output, {-0.13375, -0.32165, -0.17167, 0.30895});
  expect_head(hidden, {-0.04453, 0.15436, 0.26761});
}

TEST(Recurrent, Lstm) {
  manual_seed(0);
  nn::LSTM network(2, 3, kTwoBothWays);
  auto [output, hidden, cell] = network.run_sequence(sequence());
  expect_head(output, {-0.18562, 0.02758, 0.11482, -0.19358});
  expect_head(hidden, {-0.27704, -0.18913, 0.09044});
  EXPECT_EQ(values(network(sequence())), values(output));
  EXPECT_EQ(network.named_parameters()[4].first, "weight_ih_l0_reverse");
}

TEST(Recurrent, IsPrintedAsInPython) {
  nn::LSTM network(2, 3, {.num_layers = 2, .batch_first = true, .bidirectional = true});
  EXPECT_EQ(nn::to_string(network), "LSTM(2, 3, num_layers=2, batch_first=True, bidirectional=True)");
}

TEST(Recurrent, LearnsThroughItsWeights) {
  nn::GRU network(2, 3);
  network(sequence()).sum().backward();
  for (const auto& [name, weight] : network.named_parameters()) EXPECT_TRUE(weight.grad().defined()) << name;
}

TEST(Recurrent, BadArgumentsAreRefused) {
  EXPECT_EQ(error_of<ValueError>([] { nn::LSTM(2, 0); }), "hidden_size must be greater than zero");
  EXPECT_THAT(error_of<ValueError>([] { nn::LSTM(2, 3, {.dropout = 2}); }), HasSubstr("dropout should be a number"));
  nn::GRU network(2, 3);
  EXPECT_THAT(error_of<ValueError>([&] { network(ones({2, 2})); }), HasSubstr("expected input to be 3D"));
}

}  // namespace
}  // namespace umbra
