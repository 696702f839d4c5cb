// The terms of losses that compare two tensors, and their slopes.
#pragma once

#include "kernels/functors/functor.h"

namespace umbra::functors {

/// c (d - c / 2) times `scale`, where d is |a - b| and c no more than `limit`: a parabola that goes on as a line.
struct SmoothDistance : Binary {
  static constexpr const char* name = "smooth_l1_cpu";
  static constexpr bool full_width_only = true;
  using types = Floating;
  double limit = 1, scale = 1;
  template <class T> auto bind() const {
    return [limit = static_cast<T>(limit), scale = static_cast<T>(scale)](auto a, auto b) {
      using V = decltype(a);
      V distance = abs(a - b), part = minimum(distance, V(limit));
      return part * (distance - part * V(T(0.5))) * V(scale);
    };
  }
};

/// The gradient times a - b, which goes no further than `limit`, times `scale`.
struct ClippedSlope : Ternary {
  static constexpr const char* name = "smooth_l1_backward_cpu_out";
  static constexpr bool full_width_only = true;
  using types = Floating;
  double limit = 1, scale = 1;
  template <class T> auto bind() const {
    return [limit = static_cast<T>(limit), scale = static_cast<T>(scale)](auto grad, auto a, auto b) {
      using V = decltype(a);
      V slope = maximum(minimum(a - b, V(limit)), V(-limit));
      return slope * V(scale) * grad;
    };
  }
};

}  // namespace umbra::functors
