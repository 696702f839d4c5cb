#include "kernels/softmax.h"

#include <vector>

#include "kernels/convert.h"
#include "kernels/loop.h"
#include "kernels/vector/softmax.h"
#include "kernels/visit.h"

namespace umbra::kernels {

namespace {

constexpr int64_t kColumns = 32;  // worked on together where elements of different softmaxes are neighbours

/// One softmax, or a block of them side by side, through buffers of the compute type where an operand needs one.
class Softmax {
 public:
  Softmax(SoftmaxOp op, int64_t n, ArrayRef<const Tensor*> operands, int64_t dim)
      : op_(op), n_(n), operands_(static_cast<int>(operands.size())) {
    for (int k = 0; k < operands_; ++k) {
      stored_[k] = operands[k]->dtype();
      step_[k] = operands[k]->dim() ? operands[k]->strides()[dim] * operands[k]->item_size() : operands[k]->item_size();
    }
    compute_ = stored_[0] == DType::Float64 || stored_[1] == DType::Float64 ? DType::Float64 : DType::Float32;
    item_ = item_size(compute_);
  }

  /// `count` softmaxes whose first elements lie `strides` apart.
  void operator()(char** data, const int64_t* strides, int64_t count) const {
    bool side_by_side = count > 1;
    for (int k = 0; k < operands_; ++k) side_by_side &= strides[k] == item_size(stored_[k]);
    std::vector<char> buffers[3];
    if (!side_by_side) {
      if (direct(0) && direct(1) && UMBRA_VECTOR(softmax_short_rows)(op_, compute_, data, strides, count, n_)) return;
      for (int64_t i = 0; i < count; ++i) {
        char* one[3] = {};
        for (int k = 0; k < operands_; ++k) one[k] = data[k] + i * strides[k];
        row(one, buffers);
      }
      return;
    }
    for (int64_t at = 0; at < count; at += kColumns) {
      char* block[3] = {};
      for (int k = 0; k < operands_; ++k) block[k] = data[k] + at * strides[k];
      columns(block, std::min(kColumns, count - at), buffers);
    }
  }

 private:
  /// Whether an operand's elements lie in a row, in the type that is computed in.
  bool direct(int k) const { return stored_[k] == compute_ && (step_[k] == item_ || n_ == 1); }

  void row(char* const* data, std::vector<char>* buffers) const {
    char* values[3] = {};
    for (int k = 0; k < operands_; ++k) {
      values[k] = direct(k) ? data[k] : room(buffers[k], n_);
      if (!direct(k) && k > 0) convert(values[k], compute_, data[k], stored_[k], step_[k], n_);
    }
    const int64_t together[2] = {};
    if (!UMBRA_VECTOR(softmax_short_rows)(op_, compute_, values, together, 1, n_))
      UMBRA_VECTOR(softmax_row)(op_, compute_, values, n_);
    if (values[0] != data[0]) convert_out(data[0], stored_[0], step_[0], values[0], compute_, n_);
  }

  void columns(char* const* data, int64_t count, std::vector<char>* buffers) const {
    char* values[3] = {};
    int64_t steps[3] = {};
    for (int k = 0; k < operands_; ++k) {
      bool direct = stored_[k] == compute_;
      values[k] = direct ? data[k] : room(buffers[k], n_ * kColumns);
      steps[k] = direct ? step_[k] : kColumns * item_;
      if (direct || k == 0) continue;
      for (int64_t r = 0; r < n_; ++r)
        convert(values[k] + r * steps[k], compute_, data[k] + r * step_[k], stored_[k], item_size(stored_[k]), count);
    }
    UMBRA_VECTOR(softmax_columns)(op_, compute_, values, steps, n_, count);
    if (values[0] == data[0]) return;
    for (int64_t r = 0; r < n_; ++r)
      convert_out(data[0] + r * step_[0], stored_[0], item_size(stored_[0]), values[0] + r * steps[0], compute_, count);
  }

  char* room(std::vector<char>& buffer, int64_t elements) const {
    buffer.resize(elements * item_);
    return buffer.data();
  }

  SoftmaxOp op_;
  int64_t n_;
  int operands_;
  DType compute_, stored_[3];
  int64_t item_, step_[3];  // step: along the softmax, in bytes
};

void run(SoftmaxOp op, const char* name, const Tensor& out, ArrayRef<const Tensor*> inputs, int64_t dim) {
  check_type<FloatingTypes>(inputs[0]->dtype(), name);
  const Tensor* operands[3] = {&out};
  int count = 1;
  for (const Tensor* input : inputs) operands[count++] = input;
  if (out.numel() == 0) return;
  // The loop over all softmaxes: the sizes and strides without the dimension.
  IntArrayRef sizes = out.sizes();
  int rank = static_cast<int>(sizes.size());
  int64_t n = rank ? sizes[dim] : 1;
  int64_t rest[LoopGeometry::kMaxDims], strides[3][LoopGeometry::kMaxDims];
  const int64_t* stride_lists[3] = {strides[0], strides[1], strides[2]};
  char* data[3];
  for (int k = 0; k < count; ++k) {
    data[k] = static_cast<char*>(operands[k]->raw_data());
    for (int d = 0, to = 0; d < rank; ++d) {
      if (d == dim) continue;
      rest[to] = sizes[d];
      strides[k][to++] = operands[k]->strides()[d] * operands[k]->item_size();
    }
  }
  LoopGeometry loop({rest, static_cast<size_t>(std::max(rank - 1, 0))}, count, data, stride_lists);
  loop.for_each_inner(Softmax(op, n, {operands, static_cast<size_t>(count)}, dim), std::max<int64_t>(1, kGrain / n));
}

}  // namespace

void softmax(const Tensor& out, const Tensor& self, int64_t dim) {
  run(SoftmaxOp::Forward, "softmax_lastdim_kernel_impl", out, {&self}, dim);
}
void log_softmax(const Tensor& out, const Tensor& self, int64_t dim) {
  run(SoftmaxOp::LogForward, "log_softmax_lastdim_kernel_impl", out, {&self}, dim);
}
void softmax_backward(const Tensor& grad_input, const Tensor& grad, const Tensor& result, int64_t dim) {
  run(SoftmaxOp::Backward, "softmax_backward_lastdim_kernel_impl", grad_input, {&grad, &result}, dim);
}
void log_softmax_backward(const Tensor& grad_input, const Tensor& grad, const Tensor& result, int64_t dim) {
  run(SoftmaxOp::LogBackward, "log_softmax_backward_lastdim_kernel_impl", grad_input, {&grad, &result}, dim);
}

}  // namespace umbra::kernels
