// Contiguity as a condition, for programs that go by the answer. The library itself decides layouts without asking.
#pragma once

#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {
namespace ops {

/// Whether the elements lie one after the other in memory: there are none, or each stride is the product of the sizes
/// behind it where there is more than one step to take.
SymBool contiguity(const Tensor& t);

/// The same as an answer: a data-dependent error where a size that only the run tells decides it.
bool decide_contiguity(const Tensor& t);

/// The program goes by how a tensor lies in memory: its strides, its offset, whether it shares memory with another one.
/// Where sizes are 0 or 1 all of these may be others, so inputs that have them are refused.
void rely_on_layout(const Tensor& t);
/// The same where it asks what a tensor is a view of. Gives that, undefined where it is none.
Tensor asked_view_base(const Tensor& t);
/// The same where it asks whether a tensor is contiguous, or follows another format; `contiguous`: the former, and it
/// is.
void rely_on_contiguity(const Tensor& t, bool contiguous);

}  // namespace ops
}  // namespace umbra
