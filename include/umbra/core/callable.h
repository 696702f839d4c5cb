// Functions as values: what an operator that takes functions is given. A function while eager code runs, a graph once
// it is recorded.
#pragma once

#include <functional>
#include <vector>

#include "umbra/core/value.h"

namespace UMBRA_API umbra {

/// A function of any values, the form in which captured programs are known.
using ValueFunction = std::function<std::vector<Value>(const std::vector<Value>& inputs)>;

/// Anything that can be called with values; lives in Values as an object.
class Callable : public RefCounted {
 public:
  /// The result as one value: a list where it is a tuple.
  virtual Value call(std::vector<Value> inputs) const = 0;
};

/// The callable that a Value holds, or a TypeError.
const Callable& to_callable(const Value& value);
/// A function as a Value. A closed one uses no tensors but those it is given.
Value function_value(ValueFunction function, bool closed = false);
bool is_closed(const Value& function);
/// Calls what a Value holds; results one by one.
std::vector<Value> call_function(const Value& function, std::vector<Value> inputs);

namespace detail {
/// The elements of a list of any kind; a single value is a list of one.
std::vector<Value> elements(const Value& list);
}  // namespace detail
#ifdef UMBRA_INTERNAL
using detail::elements;
#endif

}  // namespace umbra
