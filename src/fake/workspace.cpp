// What kernels take for themselves while they run, by operator: the kernels say it.
#include <unordered_map>

#include "fake/counted.h"
#include "kernels/convolution.h"
#include "kernels/sort.h"

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

int64_t wrapped(const Value& dim, const Tensor& self) {
  return dim.to_int() < 0 ? dim.to_int() + self.dim() : dim.to_int();
}

// sort(self, dim, ...), sort.stable(self, *, stable, dim, ...): values are the first result
template <int dim> int64_t sorted(const Value* a, const Value* results) {
  const Tensor &self = a[0].tensor_ref(), &values = results[0].tensor_ref();
  if (self.dim() == 0) return 0;
  int64_t along = wrapped(a[dim], self);
  return kernels::sort_workspace(self, along, values.size(along));
}

// topk(self, k, dim, largest, sorted)
int64_t topk(const Value* a, const Value* results) {
  const Tensor &self = a[0].tensor_ref(), &values = results[0].tensor_ref();
  if (self.dim() == 0) return 0;
  int64_t along = wrapped(a[2], self);
  return kernels::topk_workspace(self, along, values.size(along), a[4].to_bool());
}

// linalg_inv_ex(A): the factors of A and exchanges of rows, both twice, a status, and the unit matrix that is solved
// for
int64_t inverse(const Value* a, const Value*) {
  const Tensor& self = a[0].tensor_ref();
  int64_t n = self.size(-1), matrices = n == 0 ? 0 : self.numel() / (n * n);
  return (2 * self.numel() + n * n) * self.item_size() + (2 * n + 1) * matrices * item_size(DType::Int32);
}

// linalg_lu_solve(LU, pivots, B): the factors and exchanges of rows once more, for each matrix of the result
int64_t lu_solution(const Value* a, const Value* results) {
  const Tensor &factors = a[0].tensor_ref(), &out = results[0].tensor_ref();
  int64_t n = factors.size(-1), solution = out.size(-1) * out.size(-2);
  int64_t matrices = solution == 0 ? 0 : out.numel() / solution;
  return matrices * n * (n * factors.item_size() + item_size(DType::Int32));
}

using Rule = int64_t (*)(const Value* arguments, const Value* results);
Rule rule_of(const Operator& op) {
  static const std::unordered_map<std::string_view, Rule> rules = {{"aten::convolution", convolution},
                                                                   {"aten::convolution_backward", convolution_backward},
                                                                   {"aten::sort", sorted<1>},
                                                                   {"aten::sort.stable", sorted<2>},
                                                                   {"aten::topk", topk},
                                                                   {"aten::linalg_inv_ex", inverse},
                                                                   {"aten::linalg_lu_solve", lu_solution}};
  static const std::unordered_map<const Operator*, Rule> table = [] {
    std::unordered_map<const Operator*, Rule> out;
    for (const auto& [name, rule] : rules) out.emplace(&get_operator(name), rule);
    return out;
  }();
  auto found = table.find(&op);
  return found == table.end() ? nullptr : found->second;
}

/// Kernels are of the CPU, and for sizes that are numbers.
bool has_kernel(const Value& value) {
  bool yes = true;
  value.each_tensor([&](TensorImpl* t) { yes &= t->device().type == DeviceType::CPU && !t->is_symbolic(); });
  return yes;
}

}  // namespace

int64_t resolved_bytes(const Operator& op, const Value* arguments) {
  int64_t bytes = 0;
  if (!op.definition().meta || op.is_view()) return 0;
  for (size_t i = 0; i < op.argument_count(); ++i)
    arguments[i].each_tensor([&](TensorImpl* t) {
      if ((t->is_conj() || t->is_neg()) && !t->is_symbolic())
        bytes += Tensor(IntrusivePtr<TensorImpl>(t)).numel() * item_size(t->dtype());
    });
  return bytes;
}

bool has_workspace(const Operator& op) { return rule_of(op); }

int64_t count_workspace(const Operator& op, const Value* arguments, const Value* results) {
  int64_t bytes = resolved_bytes(op, arguments);
  Rule rule = rule_of(op);
  if (!rule) return bytes;
  for (size_t i = 0; i < op.argument_count(); ++i)
    if (!has_kernel(arguments[i]) || arguments[i].is_symbolic()) return bytes;
  return bytes + rule(arguments, results);
}

}  // namespace umbra
