// Transformers compute as PyTorch 2.15's with the weights that the same seed gives.
#include "autograd/testing.h"

namespace umbra {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;

void expect_head(const Tensor& t, const std::vector<double>& expected) {
  std::vector<double> all = values(t);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_THAT(all[i], DoubleNear(expected[i], 1e-5)) << "element " << i;
}

Tensor waves() { return linspace(-1, 1, 48).reshape({2, 3, 8}).sin(); }

nn::TransformerEncoder small_encoder() {
  manual_seed(0);
  return nn::TransformerEncoder(
      nn::TransformerEncoderLayer(8, 2, {.dim_feedforward = 16, .dropout = 0, .batch_first = true}), 2,
      nn::LayerNorm(8));
}

TEST(Transformer, AnEncoderIsCopiesOfItsLayer) {
  nn::TransformerEncoder encoder = small_encoder();
  expect_head(encoder.layers[1].linear1.weight, {0.128242, -0.118073, -0.0988});
  expect_head(encoder(waves()), {-1.408807, -0.114635, 0.009916, 0.041858, -0.50175, 1.228186});
  EXPECT_EQ(encoder.parameters().size(), 26u);
  encoder.layers[0].linear1.weight.detach().zero_();
  EXPECT_NE(values(encoder.layers[1].linear1.weight)[0], 0);
}

TEST(Transformer, MasksLeaveOutPlacesAndKeys) {
  nn::TransformerEncoder encoder = small_encoder();
  Tensor mask = nn::Transformer::generate_square_subsequent_mask(3);
  std::vector<double> masked = {-1.210814, -0.069362, 0.10474, -0.179615};
  expect_head(encoder(waves(), {.mask = mask}), masked);
  expect_head(encoder(waves(), {.mask = mask, .is_causal = false}), masked);
  Tensor padding = zeros({2, 3}, {.dtype = DType::Bool});
  padding.data<bool>()[2] = true;
  expect_head(encoder(waves(), {.key_padding_mask = padding}), {-1.296663, -0.083111, 0.064856, -0.069431});
}

TEST(Transformer, ADecoderLayerLooksAtBothSequences) {
  manual_seed(1);
  nn::TransformerDecoderLayer layer(8, 2,
                                    {.dim_feedforward = 16, .dropout = 0, .activation = "gelu", .norm_first = true});
  Tensor x = waves().transpose(0, 1);
  expect_head(layer(x, x * 2), {0.068585, -1.520952, -1.143158, -0.625441});
  EXPECT_THAT(to_string(layer), HasSubstr("(norm3): LayerNorm((8,), eps=1e-05, elementwise_affine=True, bias=True)"));
}

TEST(Transformer, EncoderAndDecoderTogether) {
  manual_seed(2);
  nn::Transformer model(
      8, 2, {.num_encoder_layers = 1, .num_decoder_layers = 1, .layer = {.dim_feedforward = 16, .dropout = 0}});
  expect_head(model.decoder.layers[0].linear1.weight, {-0.446045, 0.414286, -0.193994});
  expect_head(model(waves(), waves() * 2), {-1.812863, 0.941813, -1.125372, 0.731039});
  expect_head(rand({1}), {0.528176});  // as many numbers were drawn
  EXPECT_EQ(model.named_parameters()[0].first, "encoder.layers.0.self_attn.in_proj_weight");
  EXPECT_THAT(error_of<Error>([&] { model(waves(), zeros({2, 3, 4})); }), HasSubstr("must be equal to d_model"));
  EXPECT_THAT(error_of<Error>([] { nn::TransformerEncoderLayer(8, 2, {.activation = "tanh"}); }),
              HasSubstr("activation should be relu/gelu, not tanh"));
}

TEST(Transformer, ItIsTrainedAndExported) {
  nn::TransformerEncoder encoder = small_encoder();
  encoder(waves()).sum().backward();
  for (const auto& [name, parameter] : encoder.named_parameters()) EXPECT_TRUE(parameter.grad().defined()) << name;
  encoder.eval();
  ExportedModule program = export_program(encoder, {waves()}).module();
  Tensor difference = program(waves()) - encoder(waves());
  EXPECT_LT(difference.abs().max().item<double>(), 1e-6);
}

}  // namespace
}  // namespace umbra
