// What pooling operators share: their windows, the sizes that follow, and how vmap lays out their images.
#pragma once

#include <string>
#include <vector>

#include "kernels/pooling.h"
#include "ops/common/batching.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {

using Ints = std::vector<int64_t>;

/// The window of a pooling operator over two or three dimensions.
struct Window {
  Ints kernel, stride, padding, dilation;
  int64_t dims() const { return static_cast<int64_t>(kernel.size()); }
  kernels::PoolOptions options() const {
    return {.kernel = kernel, .stride = stride, .padding = padding, .dilation = dilation};
  }
};

/// One number for each of `dims` dimensions; one stands for all, none for those of `otherwise`.
Ints per_dimension(const char* operator_name, const char* argument, size_t dims, const Ints& values,
                   const Ints& otherwise = {});
/// The only number of a list for one dimension: "avg_pool1d() argument 'kernel_size' should contain one int (got 2)".
int64_t only(const char* operator_name, const char* argument, const Ints& values);
/// Two or three dimensions are an image of one spatial dimension.
void check_line(const char* operator_name, const Tensor& self);
/// Dimensions but the batch must not be empty. `what` begins the message ("avg_pool3d(): Expected input").
void check_not_empty(const std::string& what, const char* name, const Tensor& t, int64_t first);
/// Sizes of a result must not be negative.
void check_window_sizes(SymIntArrayRef sizes);

/// The sizes of what pooling gives; an error in PyTorch's words where a window does not fit.
SymShape pooled_shape(const char* name, const Tensor& self, const Window& window, bool ceil_mode);
/// A gradient (and what comes with it) has the shape that pooling gives.
void check_pooled(const Tensor& t, SymIntArrayRef shape, const char* name);
/// Gradients are of the input's type.
void check_gradient_type(const Tensor& grad, const Tensor& self, const char* argument = "gradOutput");

/// A result in the format of the image.
TensorSpec pooled_spec(const Tensor& self, SymIntArrayRef shape, DType dtype);

/// The gradient of a backward pass that puts each element at one place: read it there.
Tensor gather_pooled(const Tensor& grad, const Tensor& indices, int64_t dims);

/// Images of a batch of their own take the other one next to it; single ones become a batch. `dims` are the spatial
/// ones.
Tensor batch_images(const Batched& t, int64_t dims);
Batched images_apart(const Tensor& result, const Batched& like, int64_t dims);

}  // namespace umbra::ops
