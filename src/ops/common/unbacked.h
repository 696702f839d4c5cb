// Questions about sizes that only the run may be able to tell. For plain numbers they are comparisons, for sizes of
// inputs they leave guards as comparisons do.
#pragma once

#include "umbra/core/sym_int.h"

namespace umbra::ops {

inline bool both_plain(SymInt a, SymInt b) { return !a.is_symbolic() && !b.is_symbolic(); }

/// a == b, or `fallback` where only the run can tell.
inline bool equal_or(SymInt a, SymInt b, bool fallback) {
  return both_plain(a, b) ? a.value() == b.value() : a.same(b) || sym_eq(a, b).guard_or(fallback);
}
/// a < b, or `fallback` where only the run can tell.
inline bool less_or(SymInt a, SymInt b, bool fallback) {
  return both_plain(a, b) ? a.value() < b.value() : sym_lt(a, b).guard_or(fallback);
}
/// Whether a == b; where only the run can tell it is checked then, and taken for granted from here on.
inline bool expect_equal(SymInt a, SymInt b) {
  return both_plain(a, b) ? a.value() == b.value() : a.same(b) || sym_eq(a, b).expect_true();
}
/// The same of a <= b and a < b.
inline bool expect_at_most(SymInt a, SymInt b) {
  return both_plain(a, b) ? a.value() <= b.value() : sym_le(a, b).expect_true();
}
inline bool expect_less(SymInt a, SymInt b) {
  return both_plain(a, b) ? a.value() < b.value() : sym_lt(a, b).expect_true();
}
/// Whether it may be the size of a dimension: where only the run can tell, it is checked then.
inline bool expect_size(SymInt size) {
  return !size.is_symbolic() ? size.value() >= 0 : size.node()->has_hint() || sym_ge(size, 0).expect_true();
}
/// Whether a size is one, for what changes the number of dimensions: the program is another for other answers. Where it
/// is only taken not to be one, inputs are checked for that, or, where only the run can tell, the size is.
bool is_one(SymInt size);
/// Whether a < b is something that only the run can tell.
inline bool is_open(SymInt a, SymInt b) {
  if (a.has_hint() && b.has_hint()) return false;
  SymBool less = sym_lt(a, b);
  return !less.known_true() && !less.known_false();
}

}  // namespace umbra::ops
