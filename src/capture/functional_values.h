// What functional wrappers stand for: contents, where they lie in memory, and the way from a view back to its base.
#pragma once

#include "umbra/capture/functionalize.h"

namespace umbra::functional {

inline FunctionalState& state_of(const TensorImpl* impl) {
  return *static_cast<FunctionalState*>(impl->layer_state().get());
}

/// The same numbers or expressions; nothing is asked of symbols.
bool identical(SymIntArrayRef a, SymIntArrayRef b);
/// Whether the base's contents lie in memory where its wrapper shows them to be.
bool lies_as_shown(const FunctionalBase& base);
/// Puts them back there.
void lay_as_shown(FunctionalBase& base);
/// Refuses a view of a base that got another size since.
void check_views_last(const FunctionalState& state);
/// A wrapper's contents now, after all writes to its base.
const Tensor& current_value(FunctionalState& state);
/// Whether elements of a wrapper may share memory because it is a view of overlapping windows, or by strides.
bool shows_elements_several_times(const Tensor& wrapper);
/// Whether it is a part of a base whose elements share memory (an input that was expanded), where each is a value of
/// its own.
bool is_part_of_repeated(const Tensor& wrapper);
/// Refuses a write that would reach memory around the base.
void check_write_inside(const Operator& op, const Tensor& wrapper);
/// Carries new contents of a view back into its base.
void write_value(const Tensor& wrapper, Tensor value);

}  // namespace umbra::functional
