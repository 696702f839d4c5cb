// Operators that have no C++ function of their own, those of libraries above all, called as functions:
//
//     auto scale = typed<Tensor(const Tensor&, double)>("mylib::scale");
//     Tensor y = scale(x, 2.0);
//
// The types are compared with the schema once, when the function is made. Arguments at the end that have defaults may
// be left out of the type.
#pragma once

#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "umbra/dispatch/boxing.h"

namespace UMBRA_API umbra {

namespace detail {
/// The operator of that name; a TypeError that names the argument where it does not take or give these types.
const Operator& typed_operator(std::string_view name, std::span<const CppType> arguments,
                               std::span<const CppType> results);
/// Fills in the defaults of the arguments from `given` on.
void fill_defaults(const Operator& op, Value* frame, size_t given);

template <class T> Value argument_value(const T& argument) {
  if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, std::string> || std::is_same_v<T, SymIntArrayRef> ||
                std::is_same_v<T, ArrayRef<double>> || std::is_same_v<T, TensorList>)
    return Value::borrow(argument);
  else if constexpr (std::is_same_v<T, IntArrayRef>) return Value::borrow(as_sym(argument));
  else return Value(argument);
}

template <class R> struct FrameResult {
  static R take(Value* frame) { return boxing::Unbox<R>::from(frame[0]); }
};
template <> struct FrameResult<void> {
  static void take(Value*) {}
};
template <class... Ts> struct FrameResult<std::tuple<Ts...>> {
  static std::tuple<Ts...> take(Value* frame) { return take(frame, std::index_sequence_for<Ts...>()); }
  template <size_t... I> static std::tuple<Ts...> take(Value* frame, std::index_sequence<I...>) {
    return {boxing::Unbox<Ts>::from(frame[I])...};
  }
};
}  // namespace detail

template <class F> class TypedOperator;

/// A function that calls an operator; as cheap as the generated ones.
template <class R, class... A> class TypedOperator<R(A...)> {
 public:
  explicit TypedOperator(std::string_view name)
      : op_(&detail::typed_operator(name, boxing::TypeList<std::decay_t<A>...>::kTypes,
                                    boxing::Results<std::decay_t<R>>::kTypes)) {}

  R operator()(std::type_identity_t<A>... arguments) const {
    Frame frame(*op_);
    size_t given = 0;
    ((frame[given++] = detail::argument_value<std::decay_t<A>>(arguments)), ...);
    if (given < op_->argument_count()) detail::fill_defaults(*op_, frame.data(), given);
    op_->call(frame.data());
    return detail::FrameResult<std::decay_t<R>>::take(frame.data());
  }
  const Operator& op() const { return *op_; }

 private:
  const Operator* op_;
};

template <class F> TypedOperator<F> typed(std::string_view name) { return TypedOperator<F>(name); }

}  // namespace umbra
