// Before the first phase: the distinct tensors behind a call's arguments.
//
// A graph's inputs must not share memory that it writes. So the same tensor given twice becomes one input of the graph,
// and arguments that are views of one tensor, where one of them is written, become one input too: the tensor that they
// are views of.
#pragma once

#include <vector>

#include "umbra/core/value.h"

namespace UMBRA_API umbra {
namespace aot {

/// How an argument is made of a primal: it is the primal, or the view of it that has this geometry.
struct ArgumentInfo {
  size_t primal = 0;
  size_t same_as = 0;  // the first argument that is this very tensor; its own place where there is no earlier one
  bool is_view = false;
  SymShape sizes, strides;
  SymInt offset = 0;
};

struct ArgumentLayout {
  std::vector<ArgumentInfo> arguments;
  std::vector<std::vector<size_t>> arguments_of;  // by primal: the arguments that are made of it
  size_t primals() const { return arguments_of.size(); }
};

/// The inputs that are tensors, each in its place; an undefined tensor stands where there is another value.
std::vector<Tensor> tensors_among(const std::vector<Value>& inputs);
/// Plans the primals of a call. Inputs of which `merged` is true become views of one primal with all others that share
/// their memory. An input that is no tensor has a primal of its own.
ArgumentLayout lay_out_arguments(const std::vector<Tensor>& inputs, const std::vector<bool>& merged);
/// The primals of a call with such inputs.
std::vector<Tensor> primals_of(const ArgumentLayout& layout, const std::vector<Tensor>& inputs);
/// The arguments, made of primals or of what stands for them.
std::vector<Tensor> arguments_of(const ArgumentLayout& layout, const std::vector<Tensor>& primals);

}  // namespace aot
}  // namespace umbra
