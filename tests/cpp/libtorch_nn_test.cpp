// Modules as programs of libtorch have them: each namespace is a program of its own, written for <torch/torch.h>.
#include <gtest/gtest.h>
#include <umbra/torch.h>

#include <sstream>

namespace front_page_program {
struct Net : torch::nn::Module {
  Net() {
    fc1 = register_module("fc1", torch::nn::Linear(784, 64));
    fc2 = register_module("fc2", torch::nn::Linear(64, 32));
    fc3 = register_module("fc3", torch::nn::Linear(32, 10));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(fc1->forward(x.reshape({x.size(0), 784})));
    x = torch::dropout(x, /*p=*/0.5, /*train=*/is_training());
    x = torch::relu(fc2->forward(x));
    x = torch::log_softmax(fc3->forward(x), /*dim=*/1);
    return x;
  }
  torch::nn::Linear fc1{nullptr}, fc2{nullptr}, fc3{nullptr};
};
TEST(Nn, FrontPage) {
  auto net = std::make_shared<Net>();
  torch::optim::SGD optimizer(net->parameters(), /*lr=*/0.01);
  auto data = torch::randn({8, 1, 28, 28});
  auto target = torch::randint(10, {8}, torch::kLong);
  float first = 0, last = 0;
  for (int i = 0; i < 20; ++i) {
    optimizer.zero_grad();
    torch::Tensor prediction = net->forward(data);
    torch::Tensor loss = torch::nll_loss(prediction, target);
    loss.backward();
    optimizer.step();
    (i ? last : first) = loss.item<float>();
  }
  EXPECT_LT(last, first + 0.5);
  EXPECT_EQ(net->parameters().size(), 6u);
}
}  // namespace front_page_program

namespace mnist_program {
struct MnistNet : torch::nn::Module {
  MnistNet()
      : conv1(torch::nn::Conv2dOptions(1, 10, /*kernel_size=*/5)),
        conv2(torch::nn::Conv2dOptions(10, 20, /*kernel_size=*/5)),
        fc1(320, 50),
        fc2(50, 10) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("conv2_drop", conv2_drop);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv1->forward(x), 2));
    x = torch::relu(torch::max_pool2d(conv2_drop->forward(conv2->forward(x)), 2));
    x = x.view({-1, 320});
    x = torch::relu(fc1->forward(x));
    x = torch::dropout(x, /*p=*/0.5, /*training=*/is_training());
    x = fc2->forward(x);
    return torch::log_softmax(x, /*dim=*/1);
  }
  torch::nn::Conv2d conv1;
  torch::nn::Conv2d conv2;
  torch::nn::Dropout2d conv2_drop;
  torch::nn::Linear fc1;
  torch::nn::Linear fc2;
};
TEST(Nn, Mnist) {
  torch::manual_seed(1);
  torch::Device device(torch::kCPU);
  MnistNet model;
  model.to(device);
  model.train();
  auto data = torch::randn({4, 1, 28, 28}).to(device), targets = torch::tensor({1, 2, 3, 4}).to(device);
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.01).momentum(0.5));
  optimizer.zero_grad();
  auto output = model.forward(data);
  auto loss = torch::nll_loss(output, targets);
  EXPECT_FALSE(std::isnan(loss.template item<float>()));
  loss.backward();
  optimizer.step();
  model.eval();
  torch::NoGradGuard no_grad;
  double test_loss = torch::nll_loss(model.forward(data), targets, /*weight=*/{}, torch::Reduction::Sum).item<float>();
  auto pred = model.forward(data).argmax(1);
  EXPECT_TRUE(pred.eq(targets).sum().template item<int64_t>() >= 0 && test_loss > 0);
  EXPECT_EQ(model.named_parameters()[0].key(), "conv1.weight");
}
}  // namespace mnist_program

namespace dcgan_program {
struct DCGANGeneratorImpl : torch::nn::Module {
  DCGANGeneratorImpl(int kNoiseSize)
      : conv1(torch::nn::ConvTranspose2dOptions(kNoiseSize, 256, 4).bias(false)),
        batch_norm1(256),
        conv2(torch::nn::ConvTranspose2dOptions(256, 128, 3).stride(2).padding(1).bias(false)),
        batch_norm2(128),
        conv3(torch::nn::ConvTranspose2dOptions(128, 1, 4).stride(2).padding(1).bias(false)) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("conv3", conv3);
    register_module("batch_norm1", batch_norm1);
    register_module("batch_norm2", batch_norm2);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(batch_norm1(conv1(x)));
    x = torch::relu(batch_norm2(conv2(x)));
    return torch::tanh(conv3(x));
  }
  torch::nn::ConvTranspose2d conv1, conv2, conv3;
  torch::nn::BatchNorm2d batch_norm1, batch_norm2;
};
TORCH_MODULE(DCGANGenerator);
TEST(Nn, Dcgan) {
  const int64_t kNoiseSize = 20, kBatchSize = 4;
  DCGANGenerator generator(kNoiseSize);
  generator->to(torch::kCPU);
  torch::nn::Sequential discriminator(
      torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 64, 4).stride(2).padding(1).bias(false)),
      torch::nn::LeakyReLU(torch::nn::LeakyReLUOptions().negative_slope(0.2)),
      torch::nn::Conv2d(torch::nn::Conv2dOptions(64, 1, 3).stride(1).padding(0).bias(false)), torch::nn::Flatten(),
      torch::nn::Sigmoid());
  torch::optim::Adam generator_optimizer(generator->parameters(),
                                         torch::optim::AdamOptions(2e-4).betas(std::make_tuple(0.5, 0.5)));
  torch::optim::Adam discriminator_optimizer(discriminator->parameters(),
                                             torch::optim::AdamOptions(5e-4).betas(std::make_tuple(0.5, 0.5)));
  torch::Tensor noise = torch::randn({kBatchSize, kNoiseSize, 1, 1});
  torch::Tensor fake_images = generator->forward(noise);
  discriminator->zero_grad();
  torch::Tensor output = discriminator->forward(fake_images.detach());
  torch::Tensor labels = torch::empty_like(output).uniform_(0.8, 1.0);
  torch::Tensor d_loss = torch::binary_cross_entropy(output, labels);
  d_loss.backward();
  discriminator_optimizer.step();
  generator->zero_grad();
  output = discriminator->forward(fake_images);
  torch::Tensor g_loss = torch::binary_cross_entropy(output, torch::ones_like(output));
  g_loss.backward();
  generator_optimizer.step();
  EXPECT_GT(g_loss.item<float>(), 0);
  EXPECT_EQ(generator->named_parameters().size(), 7u);
}
}  // namespace dcgan_program

namespace sequential_named_program {
TEST(Nn, SequentialNamed) {
  torch::nn::Sequential sequential(
      {{"linear1", torch::nn::Linear(3, 4)}, {"act", torch::nn::ReLU()}, {"linear2", torch::nn::Linear(4, 2)}});
  auto output = sequential->forward(torch::randn({5, 3}));
  EXPECT_EQ(output.size(1), 2);
  EXPECT_EQ(sequential->size(), 3u);
  EXPECT_EQ(sequential->named_parameters()[0].key(), "linear1.weight");
  auto linear = sequential->ptr(0)->as<torch::nn::Linear>();
  EXPECT_EQ(linear->weight.size(0), 4);
  sequential->push_back("last", torch::nn::Tanh());
  EXPECT_EQ(sequential->named_children().keys().back(), "last");
}
}  // namespace sequential_named_program

namespace sequential_push_back_program {
TEST(Nn, SequentialPushBack) {
  torch::nn::Sequential seq;
  seq->push_back(torch::nn::Linear(3, 4));
  seq->push_back(torch::nn::Functional(torch::relu));
  seq->push_back(torch::nn::Linear(torch::nn::LinearOptions(4, 2).bias(false)));
  EXPECT_EQ(seq->forward(torch::ones({1, 3})).size(1), 2);
  EXPECT_EQ(seq->parameters().size(), 3u);
  for (auto& module : *seq) EXPECT_TRUE(module.ptr() != nullptr);
  EXPECT_EQ(seq->at<torch::nn::LinearImpl>(2).options.out_features(), 2);
}
}  // namespace sequential_push_back_program

namespace module_list_program {
struct ListNet : torch::nn::Module {
  ListNet() {
    for (int i = 0; i < 3; ++i) layers->push_back(torch::nn::Linear(4, 4));
    register_module("layers", layers);
  }
  torch::Tensor forward(torch::Tensor x) {
    for (const auto& module : *layers) x = torch::relu(module->as<torch::nn::Linear>()->forward(x));
    return x;
  }
  torch::nn::ModuleList layers;
};
TEST(Nn, ModuleList) {
  ListNet net;
  EXPECT_EQ(net.forward(torch::ones({2, 4})).size(1), 4);
  EXPECT_EQ(net.layers->size(), 3u);
  EXPECT_EQ(net.parameters().size(), 6u);
  EXPECT_EQ(net.layers[1]->as<torch::nn::LinearImpl>()->weight.size(0), 4);
  EXPECT_TRUE(net.named_parameters().contains("layers.2.bias"));
  EXPECT_TRUE(net.named_parameters().at("layers.2.bias").requires_grad());
  EXPECT_EQ(net.named_parameters().at(0).key(), "layers.0.weight");
  EXPECT_THROW(net.named_parameters().at("layers.3.bias"), std::exception);
}
}  // namespace module_list_program

namespace module_dict_program {
TEST(Nn, ModuleDict) {
  torch::OrderedDict<std::string, std::shared_ptr<torch::nn::Module>> ordereddict = {
      {"linear", torch::nn::Linear(10, 3).ptr()},
      {"conv", torch::nn::Conv2d(1, 2, 3).ptr()},
      {"dropout", torch::nn::Dropout(0.5).ptr()},
  };
  torch::nn::ModuleDict dict(ordereddict);
  for (const auto& module : *dict) EXPECT_FALSE(module.key().empty());
  EXPECT_EQ(dict->size(), 3u);
  EXPECT_TRUE(dict->contains("conv"));
  dict->update({{"relu", torch::nn::ReLU().ptr()}});
  EXPECT_TRUE(dict->contains("relu"));
  auto linear = dict["linear"]->as<torch::nn::Linear>();
  EXPECT_EQ(linear->forward(torch::ones({1, 10})).size(1), 3);
}
}  // namespace module_dict_program

namespace parameters_and_buffers_program {
struct WithState : torch::nn::Module {
  WithState(int64_t n) {
    w = register_parameter("w", torch::randn(n));
    frozen = register_parameter("frozen", torch::ones(n), /*requires_grad=*/false);
    running = register_buffer("running", torch::zeros(n));
  }
  torch::Tensor forward(torch::Tensor x) {
    running += 1;
    return x * w + frozen;
  }
  torch::Tensor w, frozen, running;
};
TEST(Nn, ParametersAndBuffers) {
  WithState m(3);
  m.forward(torch::ones({3}));
  EXPECT_EQ(m.named_buffers()["running"].sum().item<float>(), 3);
  for (const auto& pair : m.named_parameters()) EXPECT_TRUE(pair.key() == "w" || pair.key() == "frozen");
  for (auto& p : m.parameters()) EXPECT_EQ(p.size(0), 3);
  EXPECT_TRUE(m.named_parameters()["w"].requires_grad());
  EXPECT_FALSE(m.named_parameters()["frozen"].requires_grad());
  EXPECT_EQ(m.buffers().size(), 1u);
  EXPECT_TRUE(m.named_parameters().find("none") == nullptr);
}
}  // namespace parameters_and_buffers_program

namespace conv_options_program {
TEST(Nn, ConvOptions) {
  torch::nn::Conv2d conv(
      torch::nn::Conv2dOptions(1, 10, 5).stride(2).padding(1).dilation(1).groups(1).bias(true).padding_mode(
          torch::kZeros));
  EXPECT_EQ(conv->forward(torch::ones({1, 1, 28, 28})).sizes(), torch::IntArrayRef({1, 10, 13, 13}));
  torch::nn::Conv2d rect(torch::nn::Conv2dOptions(3, 8, {3, 5}).stride({2, 1}).padding({1, 2}));
  EXPECT_EQ(rect(torch::ones({1, 3, 8, 8})).sizes(), torch::IntArrayRef({1, 8, 4, 8}));
  torch::nn::Conv1d one(torch::nn::Conv1dOptions(2, 4, 3).padding(1));
  EXPECT_EQ(one(torch::ones({1, 2, 7})).size(2), 7);
  torch::nn::Conv2d same(torch::nn::Conv2dOptions(1, 1, 3).padding(torch::kSame));
  EXPECT_EQ(same(torch::ones({1, 1, 7, 7})).size(2), 7);
  EXPECT_EQ(conv->options.out_channels(), 10);
  EXPECT_TRUE(conv->weight.defined() && conv->bias.defined());
}
}  // namespace conv_options_program

namespace pools_program {
TEST(Nn, Pools) {
  torch::nn::MaxPool2d max(torch::nn::MaxPool2dOptions(3).stride(2).padding(1));
  torch::nn::AvgPool2d avg(torch::nn::AvgPool2dOptions({2, 2}).stride({2, 2}).count_include_pad(false));
  torch::nn::AdaptiveAvgPool2d adaptive(torch::nn::AdaptiveAvgPool2dOptions({1, 1}));
  auto x = torch::rand({1, 2, 8, 8});
  EXPECT_EQ(max(x).size(2), 4);
  EXPECT_EQ(avg->forward(x).size(3), 4);
  EXPECT_EQ(adaptive(x).size(3), 1);
  EXPECT_EQ(torch::nn::MaxPool2d(2)->forward(x).size(2), 4);
}
}  // namespace pools_program

namespace norms_program {
TEST(Nn, Norms) {
  torch::nn::BatchNorm2d bn(
      torch::nn::BatchNorm2dOptions(4).eps(0.5).momentum(0.1).affine(false).track_running_stats(true));
  torch::nn::LayerNorm ln(torch::nn::LayerNormOptions({2, 2}).elementwise_affine(false).eps(2e-5));
  torch::nn::GroupNorm gn(torch::nn::GroupNormOptions(2, 4).eps(2e-5).affine(false));
  auto x = torch::randn({3, 4, 2, 2});
  EXPECT_EQ(bn(x).sizes(), x.sizes());
  EXPECT_EQ(ln(x).sizes(), x.sizes());
  EXPECT_EQ(gn(x).sizes(), x.sizes());
  EXPECT_EQ(bn->running_mean.size(0), 4);
  bn->eval();
  EXPECT_FALSE(bn->is_training());
}
}  // namespace norms_program

namespace lstm_program {
struct TextNetImpl : torch::nn::Module {
  TextNetImpl(int64_t vocab, int64_t dim, int64_t hidden)
      : embed(torch::nn::EmbeddingOptions(vocab, dim).padding_idx(0)),
        lstm(torch::nn::LSTMOptions(dim, hidden).num_layers(2).batch_first(true).bidirectional(true).dropout(0.1)),
        out(2 * hidden, 2) {
    register_module("embed", embed);
    register_module("lstm", lstm);
    register_module("out", out);
  }
  torch::Tensor forward(torch::Tensor x) {
    auto [output, state] = lstm->forward(embed(x));
    auto h = std::get<0>(state);
    EXPECT_EQ(h.size(0), 4);
    return out(output.mean(1));
  }
  torch::nn::Embedding embed;
  torch::nn::LSTM lstm;
  torch::nn::Linear out;
};
TORCH_MODULE(TextNet);
TEST(Nn, Lstm) {
  TextNet net(11, 6, 5);
  EXPECT_EQ(net(torch::randint(11, {3, 7})).sizes(), torch::IntArrayRef({3, 2}));
}
}  // namespace lstm_program

namespace gru_program {
TEST(Nn, Gru) {
  torch::nn::GRU gru(torch::nn::GRUOptions(3, 4).num_layers(1));
  auto [out, h] = gru->forward(torch::randn({5, 2, 3}), torch::zeros({1, 2, 4}));
  EXPECT_EQ(out.sizes(), torch::IntArrayRef({5, 2, 4}));
  torch::nn::RNN rnn(torch::nn::RNNOptions(3, 4));
  EXPECT_EQ(std::get<0>(rnn(torch::randn({5, 2, 3}))).size(2), 4);
  torch::nn::LSTMCell cell(3, 4);
  auto [h1, c1] = cell(torch::randn({2, 3}));
  EXPECT_EQ(c1.size(1), 4);
}
}  // namespace gru_program

namespace transformer_program {
TEST(Nn, Transformer) {
  torch::nn::TransformerEncoderLayer layer(
      torch::nn::TransformerEncoderLayerOptions(16, 4).dim_feedforward(32).dropout(0.0));
  torch::nn::TransformerEncoder encoder(torch::nn::TransformerEncoderOptions(layer, 2));
  EXPECT_EQ(encoder(torch::randn({5, 2, 16})).sizes(), torch::IntArrayRef({5, 2, 16}));
  torch::nn::MultiheadAttention attention(torch::nn::MultiheadAttentionOptions(16, 4).dropout(0.0));
  auto q = torch::randn({5, 2, 16});
  auto [out, weights] = attention->forward(q, q, q);
  EXPECT_EQ(out.size(2), 16);
  EXPECT_EQ(weights.sizes(), torch::IntArrayRef({2, 5, 5}));
}
}  // namespace transformer_program

namespace losses_program {
TEST(Nn, Losses) {
  auto x = torch::randn({4, 3}, torch::requires_grad());
  auto y = torch::tensor({0, 1, 2, 0});
  torch::nn::CrossEntropyLoss ce(torch::nn::CrossEntropyLossOptions().reduction(torch::kSum).label_smoothing(0.1));
  torch::nn::NLLLoss nll(torch::nn::NLLLossOptions().ignore_index(-100).reduction(torch::kMean));
  torch::nn::MSELoss mse(torch::nn::MSELossOptions().reduction(torch::kNone));
  torch::nn::BCEWithLogitsLoss bce(
      torch::nn::BCEWithLogitsLossOptions().reduction(torch::kMean).pos_weight(torch::ones({3})));
  torch::nn::SmoothL1Loss smooth(torch::nn::SmoothL1LossOptions().reduction(torch::kMean).beta(0.5));
  torch::nn::KLDivLoss kl(torch::nn::KLDivLossOptions().reduction(torch::kBatchMean).log_target(false));
  EXPECT_GT(ce(x, y).item<float>(), 0);
  EXPECT_GT(nll(torch::log_softmax(x, 1), y).item<float>(), 0);
  EXPECT_EQ(mse(x, torch::zeros_like(x)).dim(), 2);
  EXPECT_GT(bce(x, torch::ones_like(x)).item<float>(), 0);
  EXPECT_GT(smooth(x, torch::zeros_like(x)).item<float>(), 0);
  EXPECT_EQ(kl(torch::log_softmax(x, 1), torch::full({4, 3}, 1.0 / 3)).dim(), 0);
}
}  // namespace losses_program

namespace functional_options_program {
namespace F = torch::nn::functional;
TEST(Nn, FunctionalOptions) {
  auto x = torch::randn({1, 3, 8, 8});
  EXPECT_EQ(F::max_pool2d(x, F::MaxPool2dFuncOptions(2).stride(2)).size(2), 4);
  EXPECT_EQ(F::avg_pool2d(x, F::AvgPool2dFuncOptions(2)).size(2), 4);
  EXPECT_EQ(
      F::interpolate(
          x, F::InterpolateFuncOptions().size(std::vector<int64_t>{16, 16}).mode(torch::kBilinear).align_corners(false))
          .size(2),
      16);
  EXPECT_EQ(F::interpolate(x, F::InterpolateFuncOptions().scale_factor(std::vector<double>{2, 2}).mode(torch::kNearest))
                .size(2),
            16);
  EXPECT_EQ(F::pad(x, F::PadFuncOptions({1, 1, 2, 2}).mode(torch::kReflect)).size(2), 12);
  EXPECT_EQ(F::conv2d(x, torch::randn({4, 3, 3, 3}), F::Conv2dFuncOptions().stride(1).padding(1)).size(1), 4);
  EXPECT_NEAR(F::softmax(x, F::SoftmaxFuncOptions(1)).sum().item<float>(), 64, 1e-3);
  EXPECT_EQ(F::dropout(x, F::DropoutFuncOptions().p(0.5).training(false)).sum().item<float>(), x.sum().item<float>());
  EXPECT_EQ(F::normalize(x, F::NormalizeFuncOptions().p(2).dim(1)).sizes(), x.sizes());
  EXPECT_GT(
      F::cross_entropy(torch::randn({2, 3}), torch::tensor({0, 1}), F::CrossEntropyFuncOptions().reduction(torch::kSum))
          .item<float>(),
      0);
  EXPECT_EQ(F::leaky_relu(x, F::LeakyReLUFuncOptions().negative_slope(0.2)).dim(), 4);
  EXPECT_EQ(F::mse_loss(x, x, F::MSELossFuncOptions(torch::kSum)).item<float>(), 0);
  EXPECT_EQ(F::layer_norm(x, F::LayerNormFuncOptions({8, 8})).dim(), 4);
  EXPECT_EQ(F::gelu(x).dim(), 4);
  EXPECT_EQ(F::one_hot(torch::tensor({0, 2}), 3).size(1), 3);
}
}  // namespace functional_options_program

namespace functional_plain_program {
TEST(Nn, FunctionalPlain) {
  namespace F = torch::nn::functional;
  auto x = torch::randn({2, 4});
  EXPECT_EQ(F::relu(x).dim(), 2);
  EXPECT_EQ(F::log_softmax(x, 1).dim(), 2);
  EXPECT_EQ(F::linear(x, torch::ones({3, 4}), torch::zeros({3})).size(1), 3);
  EXPECT_EQ(F::embedding(torch::tensor({1, 2}), torch::ones({5, 3})).size(1), 3);
  EXPECT_EQ(F::cosine_similarity(x, x).size(0), 2);
  EXPECT_EQ(F::l1_loss(x, x).item<float>(), 0);
  EXPECT_GT(F::binary_cross_entropy_with_logits(x, torch::ones_like(x)).item<float>(), 0);
  EXPECT_EQ(
      F::scaled_dot_product_attention(torch::ones({1, 2, 3, 4}), torch::ones({1, 2, 3, 4}), torch::ones({1, 2, 3, 4}))
          .size(3),
      4);
}
}  // namespace functional_plain_program

namespace init_program {
TEST(Nn, Init) {
  torch::nn::Linear linear(20, 10);
  torch::nn::init::xavier_uniform_(linear->weight);
  torch::nn::init::constant_(linear->bias, 0.5);
  EXPECT_EQ(linear->bias.sum().item<float>(), 5);
  torch::nn::init::kaiming_normal_(linear->weight, 0, torch::kFanOut, torch::kReLU);
  torch::nn::init::normal_(linear->weight, 0.0, 0.02);
  torch::nn::init::orthogonal_(linear->weight);
  EXPECT_TRUE(torch::allclose(linear->weight.mm(linear->weight.t()), torch::eye(10), 1e-4, 1e-5));
  torch::nn::init::uniform_(linear->weight, -1, 1);
  torch::nn::init::zeros_(linear->bias);
  torch::NoGradGuard guard;
  linear->weight.fill_(1.0);
  EXPECT_EQ(linear(torch::ones({1, 20})).sum().item<float>(), 200);
}
}  // namespace init_program

namespace apply_program {
void init_weights(torch::nn::Module& module) {
  torch::NoGradGuard no_grad;
  if (auto* linear = module.as<torch::nn::Linear>()) linear->weight.fill_(0.5);
}
TEST(Nn, Apply) {
  torch::nn::Sequential net(torch::nn::Linear(2, 3), torch::nn::ReLU(), torch::nn::Linear(3, 1));
  net->apply(init_weights);
  EXPECT_EQ(net->parameters()[0].sum().item<float>(), 3);
  int modules = 0;
  net->apply([&](torch::nn::Module& module) { ++modules; });
  net->apply([&](const std::string& name, torch::nn::Module& module) { EXPECT_TRUE(name.size() < 2); });
  EXPECT_EQ(modules, 4);
  EXPECT_EQ(net->modules(/*include_self=*/false).size(), 3u);
  EXPECT_EQ(net->children().size(), 3u);
}
}  // namespace apply_program

namespace clip_and_vector_program {
TEST(Nn, ClipAndVector) {
  torch::nn::Linear linear(4, 3);
  (linear(torch::ones({2, 4})) * 100).sum().backward();
  double norm = torch::nn::utils::clip_grad_norm_(linear->parameters(), 1.0);
  EXPECT_GT(norm, 1.0);
  EXPECT_NEAR(torch::cat({linear->weight.grad().flatten(), linear->bias.grad()}).norm().item<float>(), 1.0, 1e-3);
  torch::nn::utils::clip_grad_value_(linear->parameters(), 0.01);
  auto flat = torch::nn::utils::parameters_to_vector(linear->parameters());
  EXPECT_EQ(flat.numel(), 15);
  torch::nn::utils::vector_to_parameters(torch::zeros(15), linear->parameters());
  EXPECT_EQ(linear->weight.abs().sum().item<float>(), 0);
}
}  // namespace clip_and_vector_program

namespace clone_program {
struct CloneNetImpl : torch::nn::Cloneable<CloneNetImpl> {
  CloneNetImpl() { reset(); }
  void reset() override {
    fc = register_module("fc", torch::nn::Linear(2, 2));
    register_buffer("b", torch::zeros(2));
  }
  torch::Tensor forward(torch::Tensor x) { return fc(x); }
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(CloneNet);
TEST(Nn, Clone) {
  CloneNet net;
  auto copy = std::dynamic_pointer_cast<CloneNetImpl>(net->clone());
  torch::NoGradGuard guard;
  net->fc->weight.zero_();
  EXPECT_GT(copy->fc->weight.abs().sum().item<float>(), 0);
}
}  // namespace clone_program

namespace two_inputs_program {
struct TwoInputsImpl : torch::nn::Module {
  TwoInputsImpl()
      : a(register_module("a", torch::nn::Linear(2, 3))), b(register_module("b", torch::nn::Bilinear(3, 3, 4))) {}
  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& x, const torch::Tensor& y) {
    auto p = a(x), q = a(y);
    return {b(p, q), p};
  }
  torch::nn::Linear a;
  torch::nn::Bilinear b;
};
TORCH_MODULE(TwoInputs);
TEST(Nn, TwoInputs) {
  TwoInputs net;
  auto [out, p] = net(torch::ones({1, 2}), torch::ones({1, 2}));
  EXPECT_EQ(out.size(1), 4);
  EXPECT_EQ(net->named_modules().size(), 3u);
  net->zero_grad();
  std::stringstream s;
  s << *net << net;
  EXPECT_TRUE(s.str().find("Linear(in_features=2, out_features=3, bias=true)") != std::string::npos ||
              s.str().find("Linear(in_features=2, out_features=3, bias=True)") != std::string::npos);
}
}  // namespace two_inputs_program

namespace freeze_and_replace_program {
TEST(Nn, FreezeAndReplace) {
  torch::nn::Sequential net(torch::nn::Linear(2, 3), torch::nn::ReLU());
  for (auto& p : net->parameters()) p.requires_grad_(false);
  for (auto& item : net->named_parameters()) item.value().set_requires_grad(false);
  EXPECT_FALSE(net->forward(torch::ones({1, 2})).requires_grad());
  net->to(torch::kDouble);
  EXPECT_EQ(net->parameters()[0].dtype(), torch::kDouble);
  net->to(torch::kCPU, torch::kFloat);
  net->train(false);
  EXPECT_EQ(net->name().empty(), false);
  int64_t count = 0;
  for (const auto& p : net->parameters()) count += p.numel();
  EXPECT_EQ(count, 9);
}
}  // namespace freeze_and_replace_program

namespace res_net_block_program {
struct BasicBlockImpl : torch::nn::Module {
  explicit BasicBlockImpl(int64_t in, int64_t out, int64_t stride = 1,
                          torch::nn::Sequential down = torch::nn::Sequential())
      : conv1(torch::nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false)),
        bn1(out),
        conv2(torch::nn::Conv2dOptions(out, out, 3).padding(1).bias(false)),
        bn2(out),
        downsampler(down) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    register_module("conv2", conv2);
    register_module("bn2", bn2);
    register_module("relu", relu);
    if (!downsampler->is_empty()) register_module("downsampler", downsampler);
  }
  torch::Tensor forward(torch::Tensor x) {
    auto residual = downsampler->is_empty() ? x : downsampler->forward(x);
    return relu(bn2(conv2(relu(bn1(conv1(x))))) + residual);
  }
  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d bn1;
  torch::nn::Conv2d conv2;
  torch::nn::BatchNorm2d bn2;
  torch::nn::ReLU relu;
  torch::nn::Sequential downsampler;
};
TORCH_MODULE(BasicBlock);
TEST(Nn, ResNetBlock) {
  torch::nn::Sequential layers;
  layers->push_back(
      BasicBlock(4, 8, 2, torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 8, 1).stride(2)))));
  layers->push_back(BasicBlock(8, 8));
  EXPECT_EQ(layers->forward(torch::randn({2, 4, 8, 8})).sizes(), torch::IntArrayRef({2, 8, 4, 4}));
  EXPECT_TRUE(layers->named_parameters().contains("0.downsampler.0.weight"));
}
}  // namespace res_net_block_program
