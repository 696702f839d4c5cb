// Operators that users add at run time, in C++ or Python.
//
//     Library library("mylib");
//     library.define("scale(Tensor x, float factor) -> Tensor");
//     library.implement("scale", [](const Tensor& x, double factor) { return x * factor; });
//     library.fake("scale", [](const Tensor& x, double factor) { return empty_like(x); });
//     library.gradient("scale", "x", {"grad", "factor"}, [](const Tensor& grad, double factor) { return grad * factor;
//     });
#pragma once

#include <functional>
#include <string>

#include "umbra/dispatch/define.h"

namespace umbra {

/// A boxed function for those who have no static types, such as Python: arguments to results.
using GenericFunction = std::function<std::vector<Value>(ArrayRef<Value>)>;

class Library {
 public:
  explicit Library(std::string space) : space_(std::move(space)) {}

  /// Defines an operator in this namespace; an error if it exists already.
  Operator& define(const std::string& schema);
  /// What runs on tensors with data, wherever they are, or on one backend.
  template <class F> void implement(const std::string& name, F f, std::optional<Backend> backend = std::nullopt) {
    OperatorBuilder builder(find(name));
    for (int b = 0; b < static_cast<int>(Backend::Count); ++b)
      if (!backend || *backend == static_cast<Backend>(b)) builder.real(f, static_cast<Backend>(b));
  }
  /// What runs without data, by operators such as empty_like that only make metadata.
  template <class F> void fake(const std::string& name, F f) { OperatorBuilder(find(name)).fake(std::move(f)); }
  template <class F>
  void gradient(const std::string& name, const char* inputs, std::initializer_list<const char*> names, F f) {
    OperatorBuilder(find(name)).gradient(inputs, names, std::move(f));
  }
  /// A composite: no fake function or gradient needed.
  template <class F> void composite(const std::string& name, F f) {
    OperatorBuilder(find(name)).composite(std::move(f));
  }
  // The same for generic functions.
  void implement_generic(const std::string& name, GenericFunction f, std::optional<Backend> backend = std::nullopt);
  void fake_generic(const std::string& name, GenericFunction f);
  void composite_generic(const std::string& name, GenericFunction f);

  Operator& find(const std::string& name);
  const std::string& space() const { return space_; }

 private:
  std::string space_;
};

}  // namespace umbra
