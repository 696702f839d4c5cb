// Small words in which the rules of built-in functions are written.
#pragma once

#include "jit/builtins.h"

namespace umbra::jit {

using Types = std::vector<TypePtr>;

inline TypePtr int_type() { return simple_type(TypeKind::Int); }
inline TypePtr float_type() { return simple_type(TypeKind::Float); }
inline TypePtr bool_type() { return simple_type(TypeKind::Bool); }
inline TypePtr string_type() { return simple_type(TypeKind::String); }
inline TypePtr none_type() { return simple_type(TypeKind::None); }

inline bool is_int(const TypePtr& t) { return t->is(TypeKind::Int); }
inline bool is_float(const TypePtr& t) { return t->is(TypeKind::Float); }
inline bool is_real(const TypePtr& t) { return is_int(t) || is_float(t); }
inline bool is_number(const TypePtr& t) { return is_real(t) || t->is(TypeKind::Number) || t->is(TypeKind::Complex); }
inline bool is_string(const TypePtr& t) { return t->is(TypeKind::String); }
inline bool is_list(const TypePtr& t) { return t->is(TypeKind::List); }
inline bool is_dict(const TypePtr& t) { return t->is(TypeKind::Dict); }
inline bool is_tensor(const TypePtr& t) { return t->is(TypeKind::Tensor); }
inline bool is_bool(const TypePtr& t) { return t->is(TypeKind::Bool); }

/// The type of arithmetic with two numbers.
inline TypePtr promoted(const TypePtr& a, const TypePtr& b) {
  if (!is_number(a) || !is_number(b)) return nullptr;
  if (a->is(TypeKind::Complex) || b->is(TypeKind::Complex)) return simple_type(TypeKind::Complex);
  if (a->is(TypeKind::Number) || b->is(TypeKind::Number)) return simple_type(TypeKind::Number);
  return is_float(a) || is_float(b) ? float_type() : int_type();
}

inline std::vector<Value>& items_of(const Value& value) { return expect_object<ListObject>(value, "a list").items; }
inline DictObject& dict_of(const Value& value) { return expect_object<DictObject>(value, "a dict"); }

inline int64_t wrapped_index(int64_t index, size_t size, const char* what = "list index out of range") {
  auto n = static_cast<int64_t>(size);
  if (index < 0) index += n;
  check<IndexError>(index >= 0 && index < n, what);
  return index;
}

/// start, stop and step of a slice, brought into the range of a sequence.
struct SliceRange {
  int64_t start, stop, step;
  template <class F> void each(F&& visit) const {
    for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) visit(static_cast<size_t>(i));
  }
};
SliceRange slice_range(const Value& start, const Value& stop, const Value& step, size_t size);

extern const std::vector<Builtin> kNumberBuiltins, kContainerBuiltins, kStringBuiltins, kTensorBuiltins;

}  // namespace umbra::jit
