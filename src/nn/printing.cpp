// How layers print: what Python's repr says of them.
#include "umbra/nn/activation.h"
#include "umbra/nn/convolution.h"
#include "umbra/nn/embedding.h"
#include "umbra/nn/linear.h"
#include "umbra/nn/normalization.h"

namespace umbra::nn {

namespace {

std::string tuple(const Pair& p) { return concat("(", p[0], ", ", p[1], ")"); }
/// One number where both are the same.
std::string number_or_tuple(const Pair& p) { return p[0] == p[1] ? concat(p[0]) : tuple(p); }
bool is_both(const Pair& p, int64_t value) { return p[0] == value && p[1] == value; }

}  // namespace

std::string Linear::extra_repr() const {
  return concat("in_features=", weight.size(1), ", out_features=", weight.size(0), ", bias=", bias.defined());
}

std::string Flatten::extra_repr() const { return concat("start_dim=", start_dim_, ", end_dim=", end_dim_); }

std::string Conv2d::extra_repr() const {
  std::string text =
      concat(weight.size(1) * options_.groups, ", ", weight.size(0),
             ", kernel_size=", tuple({weight.size(2), weight.size(3)}), ", stride=", tuple(options_.stride));
  if (!is_both(options_.padding, 0)) text += ", padding=" + tuple(options_.padding);
  if (!is_both(options_.dilation, 1)) text += ", dilation=" + tuple(options_.dilation);
  if (options_.groups != 1) text += concat(", groups=", options_.groups);
  return bias.defined() ? text : text + ", bias=False";
}

std::string MaxPool2d::extra_repr() const {
  return concat("kernel_size=", number_or_tuple(kernel_size_),
                ", stride=", number_or_tuple(options_.stride.value_or(kernel_size_)),
                ", padding=", number_or_tuple(options_.padding), ", dilation=", number_or_tuple(options_.dilation),
                ", ceil_mode=", options_.ceil_mode);
}

std::string AvgPool2d::extra_repr() const {
  return concat("kernel_size=", number_or_tuple(kernel_size_),
                ", stride=", number_or_tuple(options_.stride.value_or(kernel_size_)),
                ", padding=", number_or_tuple(options_.padding));
}

std::string AdaptiveAvgPool2d::extra_repr() const { return "output_size=" + number_or_tuple(output_size_); }

std::string BatchNorm2d::extra_repr() const {
  return concat(features_, ", eps=", options_.eps,
                ", momentum=", options_.momentum ? concat(*options_.momentum) : std::string("None"),
                ", affine=", options_.affine, ", bias=", options_.affine,
                ", track_running_stats=", options_.track_running_stats);
}

std::string LayerNorm::extra_repr() const {
  std::string sizes;
  for (int64_t size : normalized_shape_) sizes += concat(sizes.empty() ? "" : ", ", size);
  return concat("(", sizes, normalized_shape_.size() == 1 ? ",)" : ")", ", eps=", eps_,
                ", elementwise_affine=", weight.defined(), ", bias=", bias.defined());
}

std::string Embedding::extra_repr() const {
  std::string text = concat(weight.size(0), ", ", weight.size(1));
  return padding_idx_ ? concat(text, ", padding_idx=", *padding_idx_) : text;
}

std::string GELU::extra_repr() const { return "approximate='" + approximate_ + "'"; }
std::string Softmax::extra_repr() const { return concat("dim=", dim_); }
std::string Dropout::extra_repr() const { return concat("p=", p_, ", inplace=False"); }

}  // namespace umbra::nn
