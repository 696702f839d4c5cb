// What layers compute, as functions: `namespace F = umbra::nn::functional`.
//
//     Tensor y = F::interpolate(F::gelu(x), {.scale_factor = {2}, .mode = "nearest"});
//     Tensor loss = F::cross_entropy(logits, classes, {.label_smoothing = 0.1});
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "umbra/core/tensor.h"
#include "umbra/generated/functions.h"

namespace UMBRA_API umbra {
namespace nn::functional {

using umbra::adaptive_avg_pool1d;
using umbra::adaptive_avg_pool2d;
using umbra::adaptive_avg_pool3d;
using umbra::adaptive_max_pool1d;
using umbra::adaptive_max_pool2d;
using umbra::adaptive_max_pool3d;
using umbra::alpha_dropout;
using umbra::avg_pool1d;
using umbra::avg_pool2d;
using umbra::avg_pool3d;
using umbra::bilinear;
using umbra::celu;
using umbra::channel_shuffle;
using umbra::conv1d;
using umbra::conv2d;
using umbra::conv3d;
using umbra::conv_transpose1d;
using umbra::conv_transpose2d;
using umbra::conv_transpose3d;
using umbra::cosine_similarity;
using umbra::elu;
using umbra::feature_alpha_dropout;
using umbra::gelu;
using umbra::glu;
using umbra::group_norm;
using umbra::hardshrink;
using umbra::hardsigmoid;
using umbra::hardswish;
using umbra::hardtanh;
using umbra::instance_norm;
using umbra::leaky_relu;
using umbra::linear;
using umbra::log_softmax;
using umbra::max_pool1d;
using umbra::max_pool2d;
using umbra::max_pool3d;
using umbra::mish;
using umbra::one_hot;
using umbra::pad;
using umbra::pairwise_distance;
using umbra::pixel_shuffle;
using umbra::pixel_unshuffle;
using umbra::prelu;
using umbra::relu;
using umbra::relu6;
using umbra::rms_norm;
using umbra::rrelu;
using umbra::scaled_dot_product_attention;
using umbra::selu;
using umbra::sigmoid;
using umbra::silu;
using umbra::softmax;
using umbra::softplus;
using umbra::softshrink;
using umbra::tanh;
using umbra::threshold;

enum class Reduction : uint8_t { None, Mean, Sum };

struct CrossEntropyOptions {
  Tensor weight = {};
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::Mean;
  double label_smoothing = 0;
};
/// Of logits [N, C, ...] and class numbers [N, ...] (or probabilities of the logits' shape).
Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& options = {});
Tensor nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight = {}, int64_t ignore_index = -100,
                Reduction reduction = Reduction::Mean);
Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean);
Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean);
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean,
                      double beta = 1);
Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean, double delta = 1);
/// Of probabilities, and of logits. The target has the input's size.
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                            Reduction reduction = Reduction::Mean);
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                                        Reduction reduction = Reduction::Mean, const Tensor& pos_weight = {});
/// The negative log likelihood of numbers under normal distributions with the means `input` and the variances `var`.
Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var, bool full = false,
                         double eps = 1e-6, Reduction reduction = Reduction::Mean);
// The losses of the modules of these names.
Tensor kl_div(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean,
              bool log_target = false);
Tensor soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean);
Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean);
Tensor multi_margin_loss(const Tensor& input, const Tensor& target, int64_t p = 1, double margin = 1,
                         const Tensor& weight = {}, Reduction reduction = Reduction::Mean);
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input = true, bool full = false,
                        double eps = 1e-8, Reduction reduction = Reduction::Mean);
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin = 1,
                            Reduction reduction = Reduction::Mean);
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin = 0,
                           Reduction reduction = Reduction::Mean);
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin = 0,
                             Reduction reduction = Reduction::Mean);
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin = 1,
                           double p = 2, double eps = 1e-6, bool swap = false, Reduction reduction = Reduction::Mean);
Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                                   Reduction reduction = Reduction::Mean);
struct TripletMarginWithDistanceOptions {
  std::function<Tensor(const Tensor&, const Tensor&)> distance_function = {};  // pairwise_distance where it is left out
  double margin = 1;
  bool swap = false;
  Reduction reduction = Reduction::Mean;
};
Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginWithDistanceOptions& options = {});
Tensor logsigmoid(const Tensor& input);
/// x / (1 + |x|).
Tensor softsign(const Tensor& input);
/// x - tanh(x).
Tensor tanhshrink(const Tensor& input);
Tensor softmin(const Tensor& input, int64_t dim);
Tensor dropout(const Tensor& input, double p = 0.5, bool training = true);
/// Whole channels of sequences, images and volumes, with or without a batch dimension in front.
Tensor dropout1d(const Tensor& input, double p = 0.5, bool training = true);
Tensor dropout2d(const Tensor& input, double p = 0.5, bool training = true);
Tensor dropout3d(const Tensor& input, double p = 0.5, bool training = true);
/// Divided by its norm along a dimension.
Tensor normalize(const Tensor& input, double p = 2, int64_t dim = 1, double eps = 1e-12);
Tensor embedding(const Tensor& input, const Tensor& weight, std::optional<int64_t> padding_idx = {});

struct EmbeddingBagOptions {
  std::optional<double> max_norm = {};  // rows that are longer are shortened to it, in the table
  double norm_type = 2;
  bool scale_grad_by_freq = false;
  std::string mode = "mean";  // or "sum", "max"
  bool include_last_offset = false;
  std::optional<int64_t> padding_idx = {};  // a row that counts for nothing
};
/// Rows of `weight`, summed, averaged or compared within bags: the rows of a matrix, or those of a vector that begin at
/// `offsets`.
Tensor embedding_bag(const Tensor& input, const Tensor& weight, const Tensor& offsets = {},
                     const Tensor& per_sample_weights = {}, const EmbeddingBagOptions& options = {});

struct InterpolateOptions {
  std::vector<int64_t> size = {};         // for each dimension of places, or one number for all
  std::vector<double> scale_factor = {};  // instead of the size
  std::string mode = "nearest";           // or "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area"
  std::optional<bool> align_corners = {};
  bool recompute_scale_factor = false, antialias = false;
};
/// The patches of images as columns, and images of such columns; one number stands for both dimensions.
Tensor unfold(const Tensor& input, const argument::Ints& kernel_size, const argument::Ints& dilation = 1,
              const argument::Ints& padding = 0, const argument::Ints& stride = 1);
Tensor fold(const Tensor& input, const argument::SymInts& output_size, const argument::Ints& kernel_size,
            const argument::Ints& dilation = 1, const argument::Ints& padding = 0, const argument::Ints& stride = 1);

struct GridSampleOptions {
  std::string mode = "bilinear";       // or "nearest", "bicubic"
  std::string padding_mode = "zeros";  // or "border", "reflection"
  bool align_corners = false;
};
/// The input's values at the places of a grid, whose numbers go from -1 to 1 across the input.
Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridSampleOptions& options = {});
/// The grid of an affine map: the places of an image of that size.
Tensor affine_grid(const Tensor& theta, const argument::SymInts& size, bool align_corners = false);

/// Signals, images and volumes at another size.
Tensor interpolate(const Tensor& input, const InterpolateOptions& options);
/// Each element over a power of the mean square of its neighbours in other channels.
Tensor local_response_norm(const Tensor& input, int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);
Tensor layer_norm(const Tensor& input, SymIntArrayRef normalized_shape, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);

struct BatchNormArguments {
  Tensor running_mean = {}, running_var = {}, weight = {}, bias = {};
  bool training = false;
  double momentum = 0.1, eps = 1e-5;
};
Tensor batch_norm(const Tensor& input, const BatchNormArguments& arguments);

/// Everything attention needs besides query, key and value ([length, batch, embedding]).
struct MultiheadArguments {
  int64_t heads = 1;
  Tensor in_proj_weight, in_proj_bias, out_proj_weight, out_proj_bias;
  double dropout = 0;
  bool training = false;
  Tensor key_padding_mask = {}, attn_mask = {};
  bool need_weights = true, average_attn_weights = true, is_causal = false;
};
/// The attended values and, where they are asked for, the weights [batch, (heads,) target, source].
std::pair<Tensor, Tensor> multi_head_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                               const MultiheadArguments& arguments);

}  // namespace nn::functional
}  // namespace umbra
