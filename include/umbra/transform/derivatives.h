// The steps that grad, vjp and jvp are made of, for callers that keep the results in forms of their own (Python's
// trees).
#pragma once

#include "umbra/autograd/autograd.h"
#include "umbra/transform/tracked.h"

namespace UMBRA_API umbra {
namespace transform {

/// A wrapper that requires gradients at the level.
Tensor differentiable(const TrackedLevel& level, const Tensor& value);

/// The gradients of outputs with respect to inputs (both wrappers of the level, which has ended), weighted by
/// cotangents; zeros where an input took no part. They belong to the next level out.
std::vector<Tensor> pull(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& cotangents, const Level& level, autograd::BackwardOptions options);

/// A wrapper that carries a tangent at the level.
Tensor make_dual(const TrackedLevel& level, const Tensor& primal, const Tensor& tangent);
/// The tangent of a result, without the level; undefined where there is none.
Tensor tangent(const TrackedLevel& level, const Tensor& result);

}  // namespace transform
}  // namespace umbra
