// Parameters of the typed operators, made of whatever a caller has at hand:
//
//     x.sum(1), x.sum({0, 1}), x.sum(std::nullopt, true)
//     zeros({2, 3}), zeros(y.sizes()), zeros(std::vector<int64_t>{2, 3})
//     max_pool2d(x, 2), gelu(x, "tanh")
//
// Lists are borrowed: these are for parameters, never for variables.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "umbra/core/scalar.h"

namespace UMBRA_API umbra {
namespace argument {

/// A list of int64_t or SymInt; plain integers may stand where symbols may.
template <class T> class List {
 public:
  using Element = T;
  List() = default;
  List(std::initializer_list<T> list) : list_(list.begin(), list.size()) {}
  template <std::convertible_to<ArrayRef<T>> C> List(const C& list) : list_(list) {}
  template <std::convertible_to<IntArrayRef> C>
  requires(std::same_as<T, SymInt> && !std::convertible_to<C, SymIntArrayRef>) List(const C& list)
      : list_(as_sym(list)) {}
  List(const List&) = delete;

  ArrayRef<T> get() const { return list_; }
  operator ArrayRef<T>() const { return list_; }

 protected:
  ArrayRef<T> list_;
};

/// The same, or one number.
template <class T> class NumberOrList : public List<T> {
 public:
  static constexpr size_t kMost = 3;
  using List<T>::List;
  NumberOrList() = default;
  template <class N>
  requires((std::integral<N> && !std::same_as<N, bool>) || std::same_as<N, T>) NumberOrList(N number)
      : copies_{number, number, number}, single_(true) {
    this->list_ = {copies_, 1};
  }

  /// The list; one number counts as `count` equal ones, for operators that want so many.
  ArrayRef<T> times(size_t count) const { return single_ ? ArrayRef<T>(copies_, count) : this->list_; }

 private:
  T copies_[kMost];
  bool single_ = false;
};

/// A list, or a number, that may be left out.
template <class Argument> class Optional : public Argument {
 public:
  using Argument::Argument;
  Optional(std::nullopt_t) : present_(false) {}
  template <class C>
  requires std::constructible_from < List<typename Argument::Element>,
  const C& > Optional(const std::optional<C>& list) : present_(list.has_value()) {
    if (list) this->list_ = List<typename Argument::Element>(*list);
  }

  bool present() const { return present_; }

 private:
  bool present_ = true;
};

using IntList = List<int64_t>;
using Ints = NumberOrList<int64_t>;
using SymIntList = List<SymInt>;
using SymInts = NumberOrList<SymInt>;

/// A truth value, and nothing that only converts to one: where another overload takes a list or a number.
struct Flag {
  template <std::same_as<bool> B> Flag(B value) : value(value) {}
  bool value;
};

/// A number that may be left out, and no truth value: where another overload takes a Flag.
struct Number {
  Number(std::nullopt_t) {}
  Number(const std::optional<Scalar>& value) : value(value) {}
  template <std::convertible_to<Scalar> N>
  requires(!std::same_as<N, bool>) Number(const N& number) : value(number) {}
  std::optional<Scalar> value;
};

/// Made of anything that is text already, and of nothing else: a braced list such as {1, 1} is no text, so that
/// `conv2d(x, w, {}, {1, 1}, {1, 1})` is not mistaken for the overload whose padding is a word.
struct Text {
  template <std::convertible_to<std::string_view> T> Text(const T& text) : string(std::string_view(text)) {}
  std::string string;
};

}  // namespace argument
}  // namespace umbra
