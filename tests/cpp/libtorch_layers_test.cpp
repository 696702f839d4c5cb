// Layers, functions and their options as programs of libtorch write them: each block is lines of a program for
// <torch/torch.h>.
#include <gtest/gtest.h>
#include <umbra/torch.h>

namespace F = torch::nn::functional;
namespace nn = torch::nn;

namespace {

torch::IntArrayRef sizes(std::initializer_list<int64_t> list) { return {list.begin(), list.size()}; }

TEST(Layers, OptionsAreSetAndAsked) {
  auto options = nn::Conv2dOptions(1, 8, {3, 5}).stride({2, 1}).padding(1).dilation(1).groups(1).bias(false);
  EXPECT_EQ(options.in_channels(), 1);
  EXPECT_EQ(options.kernel_size()[1], 5);
  EXPECT_EQ(options.stride()[0], 2);
  options.out_channels(4);
  nn::Conv2d conv(options);
  EXPECT_EQ(conv->weight.sizes(), sizes({4, 1, 3, 5}));
  EXPECT_EQ(conv->options.padding()[1], 1);
  EXPECT_FALSE(conv->bias.defined());
  EXPECT_EQ(nn::MaxPool2dOptions(3).stride({2, 1}).stride()->at(1), 1);
  EXPECT_EQ(nn::FlattenOptions().end_dim(2).start_dim(), 1);
}
TEST(Layers, OfOneLineEach) {
  auto image = torch::randn({1, 4, 6, 6});
  EXPECT_EQ(nn::Unfold(nn::UnfoldOptions({2, 2}).stride(2))(image).sizes(), sizes({1, 16, 9}));
  EXPECT_EQ(nn::Fold(nn::FoldOptions({6, 6}, {2, 2}).stride(2))(torch::ones({1, 16, 9})).sizes(), image.sizes());
  EXPECT_EQ(nn::ReflectionPad2d(nn::ReflectionPad2dOptions({1, 1, 2, 0}))(image).sizes(), sizes({1, 4, 8, 8}));
  EXPECT_EQ(nn::ConstantPad2d(nn::ConstantPad2dOptions(1, 3.5))(image)[0][0][0][0].item<float>(), 3.5f);
  EXPECT_EQ(nn::ZeroPad2d(1)(image).sizes(), sizes({1, 4, 8, 8}));
  EXPECT_EQ(nn::PixelUnshuffle(nn::PixelUnshuffleOptions(2))(image).sizes(), sizes({1, 16, 3, 3}));
  EXPECT_EQ(nn::LocalResponseNorm(nn::LocalResponseNormOptions(2).alpha(0.1).k(2))(image).sizes(), image.sizes());
  EXPECT_EQ(nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({1, 2}))(image).sizes(), sizes({1, 4, 1, 2}));
  EXPECT_TRUE(torch::equal(nn::GELU(nn::GELUOptions().approximate("tanh"))(image), torch::gelu(image, "tanh")));
  EXPECT_TRUE(torch::equal(nn::Hardtanh(nn::HardtanhOptions().min_val(-0.1).max_val(0.2))(image),
                           torch::clamp(image, -0.1, 0.2)));
  EXPECT_TRUE(torch::equal(nn::Softplus(nn::SoftplusOptions().beta(2))(image), torch::softplus(image, 2)));
  EXPECT_TRUE(torch::equal(nn::Threshold(nn::ThresholdOptions(0.1, 20))(image), torch::threshold(image, 0.1, 20)));
  EXPECT_EQ(nn::PReLU(nn::PReLUOptions().num_parameters(4).init(0.5))->weight[3].item<float>(), 0.5f);
  EXPECT_EQ(nn::CosineSimilarity(nn::CosineSimilarityOptions().dim(1))(image, image).sizes(), sizes({1, 6, 6}));
}
TEST(Layers, ThatMayWriteTheirInput) {
  auto written = [](auto layer) {
    torch::Tensor x = torch::tensor({-2.0f, 0.5f, 8.0f}), expected = layer->forward(x.clone());
    layer->options.inplace(true);
    torch::Tensor y = layer->forward(x);
    return y.data_ptr<float>() == x.data_ptr<float>() && torch::equal(x, expected);
  };
  EXPECT_TRUE(written(nn::ReLU()));
  EXPECT_TRUE(written(nn::ReLU6()));
  EXPECT_TRUE(written(nn::SELU()));
  EXPECT_TRUE(written(nn::ELU(nn::ELUOptions(0.3))));
  EXPECT_TRUE(written(nn::CELU(2)));
  EXPECT_TRUE(written(nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2))));
  EXPECT_TRUE(written(nn::Hardtanh()));
  EXPECT_TRUE(written(nn::Threshold(1, 7)));
  auto x = torch::ones({100});
  nn::Dropout dropout(nn::DropoutOptions(0.5).inplace(true));
  dropout(x);
  EXPECT_GT((x == 0).sum().item<int>(), 0);
  auto y = torch::ones({4});
  dropout->eval();
  EXPECT_EQ(dropout(y).sum().item<float>(), 4);
  EXPECT_TRUE(nn::ReLU(nn::ReLUOptions(true))->options.inplace());
}
TEST(Layers, RecurrentOnesOfRelu) {
  torch::manual_seed(3);
  nn::RNN rnn(nn::RNNOptions(2, 3).nonlinearity(torch::kReLU));
  auto [output, hidden] = rnn(torch::randn({4, 1, 2}));
  EXPECT_GE(output.min().item<float>(), 0);
  rnn->flatten_parameters();
  nn::RNNCell cell(nn::RNNCellOptions(2, 3).nonlinearity(torch::kReLU).bias(false));
  EXPECT_GE(cell(torch::randn({5, 2})).min().item<float>(), 0);
  EXPECT_EQ(nn::GRUCell(nn::GRUCellOptions(2, 3))(torch::randn({5, 2})).sizes(), sizes({5, 3}));
  EXPECT_THROW(nn::RNN(nn::RNNOptions(2, 3).nonlinearity("gelu")), c10::ValueError);
}
TEST(Layers, PackedSequences) {
  nn::LSTM lstm(nn::LSTMOptions(2, 3));
  auto x = torch::randn({4, 2, 2});
  auto packed = nn::utils::rnn::pack_padded_sequence(x, torch::tensor({2, 4}), /*batch_first=*/false,
                                                     /*enforce_sorted=*/false);
  auto [output, state] = lstm->forward_with_packed_input(packed);
  EXPECT_EQ(output.data().sizes(), sizes({6, 3}));
  auto [padded, lengths] = nn::utils::rnn::pad_packed_sequence(output);
  EXPECT_EQ(lengths[0].item<int>(), 2);
  auto [alone, last] = lstm(x.slice(0, 0, 2).slice(1, 0, 1));
  EXPECT_TRUE(torch::allclose(padded.slice(0, 0, 2).slice(1, 0, 1), alone, 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(std::get<0>(state).slice(1, 0, 1), std::get<0>(last), 1e-5, 1e-6));
  nn::GRU gru(2, 3);
  EXPECT_EQ(std::get<1>(gru->forward_with_packed_input(packed)).sizes(), sizes({1, 2, 3}));
}
TEST(Layers, Transformers) {
  auto x = torch::randn({3, 1, 8}), y = torch::randn({2, 1, 8});
  auto layer_options = nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16).dropout(0);
  nn::TransformerEncoder encoder(
      nn::TransformerEncoderOptions(layer_options, 2).norm(nn::LayerNorm(nn::LayerNormOptions({8}))));
  EXPECT_EQ(encoder(x).sizes(), x.sizes());
  EXPECT_EQ(encoder->forward(x, nn::TransformerImpl::generate_square_subsequent_mask(3)).sizes(), x.sizes());
  nn::TransformerDecoder decoder(
      nn::TransformerDecoderOptions(nn::TransformerDecoderLayerOptions(8, 2).dim_feedforward(16), 1));
  EXPECT_EQ(decoder(y, x).sizes(), y.sizes());
  nn::Transformer both(nn::TransformerOptions(8, 2, 1, 1).dim_feedforward(16));
  EXPECT_EQ(both(x, y).sizes(), y.sizes());
  EXPECT_EQ(both->forward(x, y, {}, nn::TransformerImpl::generate_square_subsequent_mask(2)).sizes(), y.sizes());
}
TEST(Layers, Embeddings) {
  auto table = torch::arange(6, torch::kFloat).view({3, 2});
  nn::Embedding embedding = nn::EmbeddingImpl::from_pretrained(table);
  EXPECT_FALSE(embedding->weight.requires_grad());
  EXPECT_TRUE(torch::equal(embedding(torch::tensor({2})), table.slice(0, 2)));
  nn::EmbeddingBag bag(nn::EmbeddingBagOptions(3, 2).mode(torch::kSum));
  EXPECT_EQ(bag(torch::tensor({{0, 1}})).sizes(), sizes({1, 2}));
}
TEST(Layers, ListsOfParameters) {
  struct WeightsImpl : nn::Module {
    WeightsImpl() {
      list = register_module("list", nn::ParameterList());
      list->append(torch::randn({3}));
      list->append(torch::randn({2}));
    }
    nn::ParameterList list{nullptr};
  };
  WeightsImpl weights;
  EXPECT_EQ(weights.parameters().size(), 2u);
  EXPECT_EQ(weights.list[1].numel(), 2);
}

TEST(Functions, WithOptionsOfTheirLayers) {
  auto x = torch::randn({1, 2, 4, 4});
  EXPECT_EQ(F::adaptive_avg_pool2d(x, F::AdaptiveAvgPool2dFuncOptions(1)).sizes(), sizes({1, 2, 1, 1}));
  EXPECT_EQ(F::unfold(x, F::UnfoldFuncOptions({2, 2})).sizes(), sizes({1, 8, 9}));
  EXPECT_EQ(F::conv_transpose2d(x, torch::ones({2, 1, 2, 2}), F::ConvTranspose2dFuncOptions().stride(2)).sizes(),
            sizes({1, 1, 8, 8}));
  EXPECT_EQ(F::group_norm(x, F::GroupNormFuncOptions(2)).sizes(), x.sizes());
  EXPECT_TRUE(torch::equal(F::celu(x, F::CELUFuncOptions(0.5)), torch::celu(x, 0.5)));
  auto y = x.clone();
  F::relu(y, F::ReLUFuncOptions().inplace(true));
  EXPECT_TRUE(torch::equal(y, torch::relu(x)));
  F::dropout(y, F::DropoutFuncOptions().p(1).training(true).inplace(true));
  EXPECT_EQ(y.abs().sum().item<float>(), 0);
  EXPECT_TRUE(torch::equal(F::gelu(x), torch::gelu(x)));
}
TEST(Functions, LossesWithOptions) {
  auto a = torch::tensor({{1.0f, 2.0f}}), b = torch::tensor({{3.0f, 2.0f}});
  EXPECT_EQ(F::huber_loss(a, b, F::HuberLossFuncOptions().delta(1).reduction(torch::kSum)).item<float>(), 1.5f);
  EXPECT_EQ(F::margin_ranking_loss(a, b, torch::ones({1, 2}), F::MarginRankingLossFuncOptions().margin(0.5)).dim(), 0);
  EXPECT_EQ(F::cosine_similarity(a, b, F::CosineSimilarityFuncOptions().dim(1)).numel(), 1);
  EXPECT_EQ(F::kl_div(a, b, F::KLDivFuncOptions(torch::kBatchMean)).dim(), 0);
  nn::CTCLoss ctc(nn::CTCLossOptions().blank(0).reduction(torch::kSum).zero_infinity(true));
  auto log_probs = torch::randn({5, 1, 3}).log_softmax(2);
  auto targets = torch::tensor({{1, 2}}), five = torch::tensor({5}), two = torch::tensor({2});
  EXPECT_TRUE(torch::equal(ctc(log_probs, targets, five, two),
                           F::ctc_loss(log_probs, targets, five, two, F::CTCLossFuncOptions().reduction(torch::kSum))));
}

}  // namespace
