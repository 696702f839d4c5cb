// Forward mode: derivatives along a direction, carried with the values.
//
//     autograd::DualLevel level;
//     Tensor x = autograd::make_dual(randn({3}), ones({3}));
//     Tensor dy = autograd::unpack_dual(x.sin()).tangent;      // cos(x)
#pragma once

#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {
namespace autograd {

/// Opens a level for a scope; tangents set at it end with it. Levels nest: an inner one differentiates what the outer
/// one does.
class DualLevel {
 public:
  DualLevel();
  ~DualLevel();
  DualLevel(const DualLevel&) = delete;
  int level() const { return level_; }

 private:
  int level_;
};
/// For callers without scopes (Python). Levels count from 0; -1 is the innermost.
int enter_dual_level();
void exit_dual_level(int level = -1);

/// Whether operators follow tangents. Switched off, the levels that are open are as if they were not; one that is
/// opened after that is followed until it ends.
bool forward_mode_enabled();
void set_forward_mode_enabled(bool enabled);

struct Dual {
  Tensor primal, tangent;  // the tangent is undefined where there is none
};
/// A view of the primal that carries the tangent at the innermost level.
Tensor make_dual(const Tensor& primal, const Tensor& tangent, int level = -1);
/// A view of the tensor that has no tangent at the level, and the tangent.
Dual unpack_dual(const Tensor& tensor, int level = -1);

}  // namespace autograd
}  // namespace umbra
