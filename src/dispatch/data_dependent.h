// What a fake run has in the place of what only data could tell. The `.fake` functions of definitions ask here; the
// layer of fake tensors answers.
//
//     UMBRA_OPERATOR("nonzero(Tensor self) -> Tensor")
//         .real(...)
//         .fake([](const Tensor& self) { return empty({unknown_size("aten::nonzero", self.sym_numel()), self.dim()},
//         {.dtype = DType::Int64}); })
#pragma once

#include "umbra/core/scalar.h"
#include "umbra/core/tensor.h"

namespace umbra {

/// What is known of a length whose bound is an expression: nothing, or that it is no more than the expression can be.
/// (PyTorch asks for the latter in `nonzero` and `masked_select` alone, and programs print their ranges.)
enum class MostIs { Unknown, ItsLargest };
/// The length of an output, which is `most` or less: an unbacked symbol, or DynamicOutputShapeException with the
/// operator's name where the mode has none to give.
SymInt unknown_size(const char* op, SymInt most, MostIs known = MostIs::Unknown);
/// How many elements of a tensor are not zero: the same symbol each time, as long as the tensor is not written.
SymInt unknown_count(const char* op, const Tensor& self);
/// The one element of a tensor: its value where the mode knows it, an unbacked symbol (the same each time, as long as
/// the tensor is not written), or DataDependentOutputException.
Scalar unknown_element(const char* op, const Tensor& self);

/// The layer state of a tensor that may be known to be zero everywhere.
class ZeroMark {
 public:
  /// True until the tensor's memory is written.
  virtual bool is_zero() const = 0;

 protected:
  ~ZeroMark() = default;
};
/// Lets a tensor that was just filled with zeros say so (torch's ZeroTensor); works in real and fake runs.
void mark_zero(const Tensor& zeros);
/// Whether a tensor was marked and not written since.
bool is_marked_zero(const Tensor& tensor);

/// For the layer that answers.
struct DataDependentAnswers {
  SymInt (*size)(const char* op, SymInt most, MostIs known);
  SymInt (*count)(const char* op, const Tensor& self);
  Scalar (*element)(const char* op, const Tensor& self);
  void (*mark_zero)(const Tensor& fake);
};
void set_data_dependent_answers(DataDependentAnswers answers);

}  // namespace umbra
