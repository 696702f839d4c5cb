// Calling an operator by name from the bindings: `call<"aten::select.int">(x, dim, index)`.
#pragma once

#include <algorithm>

#include "umbra/dispatch/operator.h"

namespace umbra::python {

template <size_t N> struct OperatorName {
  char text[N];
  constexpr OperatorName(const char (&from)[N]) { std::copy_n(from, N, text); }
};

inline Value as_argument(const Tensor& v) { return Value::borrow(v); }
template <class T> Value as_argument(const T& v) { return Value(v); }

/// Arguments that are left out at the end take their defaults. Gives the first result.
template <OperatorName kName, class... Arguments> Value call_value(const Arguments&... arguments) {
  static const Operator& op = get_operator(kName.text);
  Frame frame(op);
  size_t i = 0;
  ((frame[i++] = as_argument(arguments)), ...);
  for (; i < op.argument_count(); ++i) frame[i] = Value::borrow(op.schema().arguments[i].default_value.value());
  op.call(frame.data());
  return std::move(frame[0]);
}
template <OperatorName kName, class... Arguments> Tensor call(const Arguments&... arguments) {
  return call_value<kName>(arguments...).take_tensor();
}

}  // namespace umbra::python
