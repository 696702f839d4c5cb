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

TEST(Recurrent, OfRelu) {
  manual_seed(0);
  nn::RNN network(2, 3, {.num_layers = 2, .bidirectional = true, .nonlinearity = "relu"});
  auto [output, hidden] = network.run_sequence(sequence());
  expect_head(output, {0.75494, 0.39262, 0.11116, 0});
  expect_head(hidden, {0, 0, 0.38572, 0.13675, 0, 0.35998});
  manual_seed(0);
  nn::RNNCell cell(2, 3, {.nonlinearity = "relu"});
  expect_head(cell(sequence()[0]), {0, 0, 0.59483, 0, 0, 0.56106});
  EXPECT_EQ(nn::to_string(cell), "RNNCell(2, 3, nonlinearity=relu)");
}

TEST(Recurrent, OfSequencesWithoutABatch) {
  manual_seed(0);
  nn::LSTM network(2, 3, kTwoBothWays);
  auto [output, hidden, cell] = network.run_sequence(sequence().select(1, 0));
  EXPECT_EQ(output.sizes(), IntArrayRef({2, 6}));
  EXPECT_EQ(hidden.sizes(), IntArrayRef({4, 3}));
  expect_head(output, {-0.18562, 0.02758, 0.11482, -0.19358});
  expect_head(cell, {-0.51605, -0.27924, 0.21934, -0.45806});
  auto [again, h, c] = network.run_sequence(sequence().select(1, 0), zeros({4, 3}), zeros({4, 3}));
  EXPECT_EQ(values(again), values(output));
}

TEST(Recurrent, OfPackedSequences) {
  manual_seed(0);
  nn::LSTM network(2, 3, kTwoBothWays);
  namespace rnn = nn::utils::rnn;
  rnn::PackedSequence packed = rnn::pack_padded_sequence(sequence(), tensor({1, 2}), false, /*enforce_sorted=*/false);
  EXPECT_EQ(values(packed.data()), std::vector<double>({0.5, 0.75, 0, 0.25, 1.5, 1.75}));
  EXPECT_EQ(values(packed.batch_sizes()), std::vector<double>({2, 1}));
  auto [output, hidden, cell] = network.run_packed(packed);
  expect_head(output.data(), {-0.17713, 0.03085, 0.1289, -0.19789});
  expect_head(hidden, {-0.00954, -0.07417, -0.01718, -0.34315, -0.20481, 0.17319});
  auto [padded, lengths] = rnn::pad_packed_sequence(output, /*batch_first=*/true, /*padding_value=*/7);
  EXPECT_EQ(values(lengths), std::vector<double>({1, 2}));
  expect_head(padded.select(2, 0), {-0.18151, 7, -0.17713, -0.24956});
  EXPECT_EQ(values(rnn::pack_sequence({ones({2}), zeros({1})}).data()), std::vector<double>({1, 0, 1}));
  EXPECT_EQ(values(rnn::pad_sequence({ones({2}), zeros({1})}, true, -1)), std::vector<double>({1, 1, 0, -1}));
  EXPECT_THROW(rnn::pad_packed_sequence(packed, false, 0, 1), ValueError);
  EXPECT_THROW(rnn::pack_padded_sequence(sequence(), tensor({1, 2})), Error);  // lengths that do not fall
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
  EXPECT_THAT(error_of<ValueError>([&] { network(ones({2})); }), HasSubstr("Expected input to be 2D or 3D"));
  EXPECT_THAT(error_of<Error>([&] {
                network.run_sequence(ones({2, 2}), ones({1, 1, 3}));
              }),
              HasSubstr("For unbatched 2-D input, hx should also be 2-D but got 3-D tensor"));
  EXPECT_THAT(error_of<Error>([] {
                nn::LSTM(2, 3).run_sequence(ones({2, 1, 2}), ones({1, 3}), ones({1, 3}));
              }),
              HasSubstr("hx and cx should also be 3-D but got (2-D, 2-D) tensors"));
  EXPECT_THAT(error_of<ValueError>([] { nn::RNN(2, 3, {.nonlinearity = "gelu"}); }), HasSubstr("Unknown nonlinearity"));
}

}  // namespace
}  // namespace umbra
