// Operators of one's own, registered where a program starts, and found by name.
//
//     TORCH_LIBRARY(my_ops, m) { m.def("scale(Tensor x, float factor) -> Tensor"); }
//     TORCH_LIBRARY_IMPL(my_ops, CPU, m) { m.impl("scale", &scale_cpu); }
#pragma once

#include "umbra/libtorch/tensor.h"

namespace torch {

class Library : public umbra::Library {
 public:
  Library(std::string space, Kind kind, const char* key = nullptr)
      : umbra::Library(std::move(space), kind), key_(key ? std::optional(parse_kernel_key(key)) : std::nullopt) {}

  /// Defines an operator by its schema.
  Library& def(const std::string& schema) {
    define(schema);
    return *this;
  }
  /// The same with what it does, by other operators; a name alone gets the schema that the function's types tell.
  template <class F> Library& def(const std::string& schema, F function) {
    std::string name = schema.substr(0, schema.find('('));
    define(name == schema ? schema + umbra::boxing::schema_text<F>() : schema);
    composite(name, std::move(function));
    return *this;
  }
  /// What the operator does at the library's key; without one, on every device, by other operators.
  template <class F> Library& impl(const std::string& name, F function) {
    implement_ahead(name, std::move(function), key_.value_or(KernelKey::CompositeImplicitAutograd));
    return *this;
  }

 private:
  std::optional<KernelKey> key_;
};

/// An operator that was found by its name.
class OperatorHandle {
 public:
  explicit OperatorHandle(std::string name) : name_(std::move(name)) {}
  template <class F> struct Typed : TypedOperator<F> {
    using TypedOperator<F>::TypedOperator;
    template <class... Arguments> auto call(Arguments&&... arguments) const {
      return (*this)(std::forward<Arguments>(arguments)...);
    }
  };
  template <class F> Typed<F> typed() const { return Typed<F>(name_); }

 private:
  std::string name_;
};
class Dispatcher {
 public:
  static Dispatcher& singleton() {
    static Dispatcher dispatcher;
    return dispatcher;
  }
  OperatorHandle findSchemaOrThrow(const std::string& name, const std::string& overload) const {
    return OperatorHandle(overload.empty() ? name : name + "." + overload);
  }
};

}  // namespace torch

#define UMBRA_TORCH_LIBRARY(name, space, kind, key, m)                   \
  static void UMBRA_LIBRARY_NAME(name)(::torch::Library & m);            \
  static ::torch::Library UMBRA_LIBRARY_NAME(name##_library) = [] {      \
    ::torch::Library library(#space, ::umbra::Library::Kind::kind, key); \
    UMBRA_LIBRARY_NAME(name)(library);                                   \
    return library;                                                      \
  }();                                                                   \
  static void UMBRA_LIBRARY_NAME(name)(::torch::Library & m)
#define TORCH_LIBRARY(space, m) UMBRA_TORCH_LIBRARY(umbra_library_##space##_, space, Define, nullptr, m)
#define TORCH_LIBRARY_FRAGMENT(space, m) UMBRA_TORCH_LIBRARY(umbra_fragment_##space##_, space, Fragment, nullptr, m)
#define TORCH_LIBRARY_IMPL(space, key, m) UMBRA_TORCH_LIBRARY(umbra_##key##_of_##space##_, space, Implement, #key, m)
#define TORCH_FN(function) function
