// What kernels take for themselves while they run, by operator: the kernels say it.
#include <functional>
#include <unordered_map>

#include "kernels/convolution.h"
#include "umbra/fake/cost.h"

namespace umbra {

namespace {

SmallVector<int64_t> numbers(const Value& value, size_t count) {
  SmallVector<int64_t> out;
  for (SymInt number : value.int_list()) out.push_back(number.hint());
  while (out.size() < count) out.push_back(out.empty() ? 0 : out[0]);  // one number stands for all dimensions
  return out;
}

/// `a`: stride, padding, dilation, transposed, output_padding, groups.
kernels::ConvolutionOptions options_of(const Value* a, const Tensor& weight) {
  size_t count = static_cast<size_t>(weight.dim() - 2);
  return {numbers(a[0], count), numbers(a[1], count), numbers(a[2], count),
          numbers(a[4], count), a[3].to_bool(),       a[5].to_int()};
}

Tensor tensor_or_none(const Value& value) { return value.is_tensor() ? value.tensor() : Tensor(); }

// convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
int64_t convolution(const Value* a, const Value* results) {
  return kernels::convolution_workspace(results[0].tensor_ref(), a[0].tensor_ref(), a[1].tensor_ref(),
                                        tensor_or_none(a[2]), options_of(a + 3, a[1].tensor_ref()));
}

// convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, ..., output_mask)
int64_t convolution_backward(const Value* a, const Value* results) {
  return kernels::convolution_backward_workspace(tensor_or_none(results[0]), tensor_or_none(results[1]),
                                                 a[0].tensor_ref(), a[1].tensor_ref(), a[2].tensor_ref(),
                                                 options_of(a + 4, a[2].tensor_ref()));
}

using Rule = int64_t (*)(const Value* arguments, const Value* results);
const std::unordered_map<std::string_view, Rule>& rules() {
  static const std::unordered_map<std::string_view, Rule> table = {
      {"aten::convolution", convolution}, {"aten::convolution_backward", convolution_backward}};
  return table;
}

/// Kernels are of the CPU, and for sizes that are numbers.
bool has_kernel(const Value& value) {
  bool yes = true;
  value.each_tensor([&](TensorImpl* t) { yes &= t->device().type == DeviceType::CPU && !t->is_symbolic(); });
  return yes;
}

}  // namespace

int64_t count_workspace(const Operator& op, const Value* arguments, const Value* results) {
  auto found = rules().find(op.name());
  if (found == rules().end()) return 0;
  for (size_t i = 0; i < op.argument_count(); ++i)
    if (!has_kernel(arguments[i]) || arguments[i].is_symbolic()) return 0;
  return found->second(arguments, results);
}

}  // namespace umbra
