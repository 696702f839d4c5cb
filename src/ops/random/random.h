// What operators that draw random numbers share.
#pragma once

#include "kernels/random.h"
#include "ops/common/batching.h"
#include "ops/common/factory_arguments.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {

using GeneratorPointer = IntrusivePtr<Generator>;

/// The one given, or the default one.
Generator& generator_or_default(const GeneratorPointer& given);

/// Integers to draw: from `from` up to and without `to`, or any of 64 bits.
struct IntegerRange {
  int64_t from = 0, to = 0;
  bool all_bits = false;
};
/// The range as the type can hold it, in PyTorch's words where it cannot. Without `to`, up to the largest integer that
/// the type has exactly.
IntegerRange integer_range(int64_t from, std::optional<int64_t> to, DType dtype);
void draw_integers(const Tensor& out, const IntegerRange& range, Generator& generator);

/// An output may be resized to sizes that make nothing though some be negative, save on the meta device. Then nothing
/// is drawn: no new tensor could be drawn in its place where the call is captured.
bool any_negative(const Tensor& out, SymIntArrayRef sizes);

}  // namespace umbra::ops
