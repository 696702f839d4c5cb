#include "umbra/transform/gradcheck.h"

#include "umbra/autograd/autograd.h"
#include "umbra/core/print.h"
#include "umbra/core/warning.h"
#include "umbra/generated/functions.h"

namespace umbra::transform {

namespace {

/// By result: the derivatives by each element of one input, a row for each.
using Jacobians = std::vector<Tensor>;

std::vector<Tensor> differentiable_results(const TensorFunction& function, const std::vector<Tensor>& inputs) {
  EnableGrad recording;
  std::vector<Tensor> chosen;
  for (const Tensor& result : function(inputs))
    if (result.requires_grad()) chosen.push_back(result);
  check(!std::any_of(chosen.begin(), chosen.end(), [](const Tensor& t) { return t.is_complex(); }),
        "gradcheck: complex results are not looked at in C++");
  return chosen;
}

/// The results where one element of an input is another.
std::vector<Tensor> results_beside(const TensorFunction& function, std::vector<Tensor> inputs, size_t input,
                                   int64_t element, double by) {
  Tensor moved = inputs[input].detach().clone(MemoryFormat::Contiguous);
  moved.view({-1}).select(0, element).add_(by);
  inputs[input] = moved.requires_grad_();
  return differentiable_results(function, inputs);
}

Jacobians numerical(const TensorFunction& function, const std::vector<Tensor>& inputs, size_t input, double eps) {
  std::vector<std::vector<Tensor>> rows;
  for (int64_t k = 0; k < inputs[input].numel(); ++k) {
    std::vector<Tensor> above = results_beside(function, inputs, input, k, eps);
    std::vector<Tensor> below = results_beside(function, inputs, input, k, -eps);
    rows.resize(above.size());
    for (size_t j = 0; j < above.size(); ++j)
      rows[j].push_back(above[j].detach().sub(below.at(j).detach()).div(2 * eps).reshape({-1}));
  }
  Jacobians out;
  for (const auto& of_result : rows) out.push_back(stack(of_result));
  return out;
}

Jacobians analytical(const std::vector<Tensor>& results, const Tensor& input) {
  Jacobians out;
  for (const Tensor& result : results) {
    std::vector<Tensor> columns;
    for (int64_t k = 0; k < result.numel(); ++k) {
      Tensor weight = zeros_like(result.detach()).contiguous();
      weight.view({-1}).select(0, k).fill_(1);
      Tensor gradient = autograd::grad({result}, {input}, {weight}, {.retain_graph = true}, true)[0];
      columns.push_back(gradient.defined() ? gradient.detach().reshape({-1})
                                           : zeros_like(input.detach()).reshape({-1}));
    }
    out.push_back(columns.empty() ? Tensor() : stack(columns, 1));
  }
  return out;
}

void check_input(const Tensor& input, size_t position) {
  check(!input.is_complex(), "gradcheck: input ", position, " is complex, which is not looked at in C++");
  if (input.dtype() != DType::Float64)
    warn("gradcheck: input ", position, " is ", input.dtype(),
         ", in which finite differences are coarse: the check will likely fail unless eps and tolerances are larger");
}

}  // namespace

void gradcheck(const TensorFunction& function, const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  auto wanted = [](const Tensor& t) { return t.requires_grad(); };
  check<ValueError>(
      std::any_of(inputs.begin(), inputs.end(), wanted),
      "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True.");
  for (size_t i = 0; i < inputs.size(); ++i)
    if (wanted(inputs[i])) check_input(inputs[i], i);
  std::vector<Tensor> results = differentiable_results(function, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!wanted(inputs[i]) || inputs[i].numel() == 0) continue;
    Jacobians expected = numerical(function, inputs, i, options.eps), given = analytical(results, inputs[i]);
    for (size_t j = 0; j < results.size(); ++j)
      check(!given[j].defined() || allclose(given[j], expected.at(j), options.rtol, options.atol),
            "Jacobian mismatch for output ", j, " with respect to input ", i, ",\nnumerical:", to_string(expected[j]),
            "\nanalytical:", to_string(given[j]), "\n");
  }
}

}  // namespace umbra::transform
