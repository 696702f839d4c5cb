// What an operator asks of the tensors that it writes and of the views that it makes. Backends ask it before a kernel
// runs; functionalisation, under which nothing is written, asks the same.
#pragma once

#include "umbra/dispatch/operator.h"

namespace UMBRA_API umbra {

/// Refuses a call of an in-place variant whose result, which looks like `result`, does not fit into its first argument.
void check_inplace_write(const Operator& op, Value* frame, const TensorSpec& result);
/// Refuses a call of an out variant whose results do not fit into `outs`; an output of another size gets the new one.
void prepare_outputs(const Operator& op, const Value* frame, ArrayRef<Tensor> outs, SpecList& results);
/// Refuses an output whose type or device does not fit a result.
void check_output_type(const Operator& op, const Value* frame, const Tensor& out, const TensorSpec& result);
/// Gives a tensor the size and strides of a result, and its memory the bytes that takes; one of the same size stays.
void resize_output(const Tensor& out, const TensorSpec& result);
/// Warns that a tensor that is not empty gets another size, as PyTorch does.
void warn_of_resize(const Tensor& out, SymIntArrayRef sizes);
/// Whether elements of the tensor share memory (expand).
bool overlaps_itself(const Tensor& tensor);
/// False where two tensors are known to have no byte of memory in common: parts of one tensor side by side.
bool may_share_elements(const Tensor& a, const Tensor& b);
/// Refuses to write such a tensor, save by what writes one value everywhere and the like.
void check_no_overlap(const Operator& op, const Tensor& written);

/// Runs a view operator on every backend: metadata only. Views remember the tensor they were taken of, and pass through
/// autograd from then on: an in-place change of one of them may give all of them a history.
void run_view(const Definition& definition, Value* frame);

}  // namespace umbra
