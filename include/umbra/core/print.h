// Tensors as text, the way PyTorch prints them.
//
//     std::cout << x << "\n";                 // tensor([[ 0.1000, -2.0000],
//                                             //         [ 3.5000,  1.0000]], dtype=torch.float64)
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {

struct PrintOptions {
  int precision = 4;         // digits after the point
  int64_t threshold = 1000;  // tensors with more elements are shown by their edges
  int64_t edge_items = 3;
  int64_t line_width = 80;
  std::optional<bool> sci_mode;  // exponents always or never; left out: by the size of the numbers
};
PrintOptions& print_options();

/// `tensor([1., 2.], dtype=torch.float64, requires_grad=True)`; Python's repr of a plain tensor is the same.
std::string to_string(const Tensor& tensor);
/// The same with another word at its head and other facts at its end, such as `grad_fn=<MulBackward0>`.
std::string format_tensor(const Tensor& tensor, const std::string& head, const std::vector<std::string>& facts);
/// What autograd has to say of a tensor: `grad_fn=<MulBackward0>`, `requires_grad=True` or nothing (defined in
/// autograd/).
std::string grad_fact(const Tensor& tensor);
/// What is given, as in TensorOptions(dtype=torch.float64); the rest is for who makes the tensor.
std::ostream& operator<<(std::ostream& out, const TensorOptions& options);

}  // namespace umbra
