// Options that are set one after the other, `Conv2dOptions(1, 8, 3).stride(2).bias(false)`, over the plain ones that
// layers take. A line names what has to be given, and what may be set:
//
//     UMBRA_OPTIONS_OF(LinearOptions, native::LinearOptions, ((int64_t, in_features), (int64_t, out_features)),
//     (bias));
//
// Macros rather than templates over tuples: what a program does not use costs it next to nothing.
#pragma once

#include <tuple>
#include <utility>

#include "umbra/libtorch/words.h"

namespace torch {

/// Where a layer has no plain options.
struct NoPlainOptions {};

/// Two numbers, from a tuple too.
struct PairOfNumbers : std::pair<double, double> {
  PairOfNumbers(double a, double b) : std::pair<double, double>(a, b) {}
  PairOfNumbers(const std::tuple<double, double>& both) : PairOfNumbers(std::get<0>(both), std::get<1>(both)) {}
  PairOfNumbers(const std::pair<double, double>& both) : std::pair<double, double>(both) {}
};

/// What a setting takes: of sizes that may be left out, the sizes, so that `stride({2, 1})` can be written.
template <class T> struct SettingOf { using Type = T; };
template <size_t N> struct SettingOf<std::optional<umbra::nn::Sizes<N>>> { using Type = umbra::nn::Sizes<N>; };
template <> struct SettingOf<std::pair<double, double>> { using Type = PairOfNumbers; };

}  // namespace torch

// ---- `macro(Self, item)` for each item of a list ----

#define UMBRA_PARENTHESES ()
#define UMBRA_ONCE_MORE(...) __VA_ARGS__
#define UMBRA_3_TIMES(...) UMBRA_ONCE_MORE(UMBRA_ONCE_MORE(UMBRA_ONCE_MORE(__VA_ARGS__)))
#define UMBRA_EXPAND(...) UMBRA_3_TIMES(UMBRA_3_TIMES(UMBRA_3_TIMES(__VA_ARGS__)))
#define UMBRA_NEXT_OF_EACH(macro, Self, item, ...) \
  macro(Self, item) __VA_OPT__(UMBRA_AGAIN_OF_EACH UMBRA_PARENTHESES(macro, Self, __VA_ARGS__))
#define UMBRA_AGAIN_OF_EACH() UMBRA_NEXT_OF_EACH
#define UMBRA_FOR_EACH(macro, Self, ...) __VA_OPT__(UMBRA_EXPAND(UMBRA_NEXT_OF_EACH(macro, Self, __VA_ARGS__)))
#define UMBRA_WITHOUT_PARENTHESES(...) __VA_ARGS__
#define UMBRA_ALL_BUT_FIRST_(first, ...) __VA_ARGS__
#define UMBRA_ALL_BUT_FIRST(...) UMBRA_ALL_BUT_FIRST_(__VA_ARGS__)
#define UMBRA_TYPE_OF_PAIR(Type, name) Type
#define UMBRA_NAME_OF_PAIR(Type, name) name
#define UMBRA_JOIN_(a, b) a##b
#define UMBRA_JOIN(a, b) UMBRA_JOIN_(a, b)

// ---- one setting and its value: of the plain options, and of the class itself ----

#define UMBRA_SETTING(Self, name)                                                                    \
  Self& name(typename ::torch::SettingOf<std::remove_cvref_t<decltype(Native::name)>>::Type value) { \
    Native::name = std::move(value);                                                                 \
    return *this;                                                                                    \
  }                                                                                                  \
  const std::remove_cvref_t<decltype(Native::name)>& name() const { return Native::name; }
#define UMBRA_OWN_SETTING(Self, Type, name) \
  Self& name(Type value) {                  \
    name##_ = std::move(value);             \
    return *this;                           \
  }                                         \
  const Type& name() const { return name##_; }
/// Those of the plain options that the names say.
#define UMBRA_SETTINGS(Self, ...) UMBRA_FOR_EACH(UMBRA_SETTING, Self, __VA_ARGS__)

// ---- what has to be given: (Type, name) ----

#define UMBRA_PARAMETER(Self, pair) , UMBRA_TYPE_OF_PAIR pair UMBRA_NAME_OF_PAIR pair
#define UMBRA_INITIALIZER(Self, pair) , UMBRA_JOIN(UMBRA_NAME_OF_PAIR pair, _)(std::move(UMBRA_NAME_OF_PAIR pair))
#define UMBRA_MEMBER(Self, pair) UMBRA_TYPE_OF_PAIR pair UMBRA_JOIN(UMBRA_NAME_OF_PAIR pair, _);
#define UMBRA_ARGUMENT(Self, pair) , UMBRA_JOIN(UMBRA_NAME_OF_PAIR pair, _)
#define UMBRA_GIVEN(Self, pair) UMBRA_GIVEN_(Self, UMBRA_TYPE_OF_PAIR pair, UMBRA_NAME_OF_PAIR pair)
#define UMBRA_GIVEN_(Self, Type, name) UMBRA_OWN_SETTING(Self, Type, name)

/// What stands in a class over plain options: the constructor, what has to be given and what may be set.
#define UMBRA_GIVEN_AND_SETTINGS(Self, Plain, given, settings)                                                       \
  using Native = Plain;                                                                                              \
  Self(UMBRA_ALL_BUT_FIRST(UMBRA_FOR_EACH(UMBRA_PARAMETER, Self, UMBRA_WITHOUT_PARENTHESES given)))                  \
      : UMBRA_ALL_BUT_FIRST(UMBRA_FOR_EACH(UMBRA_INITIALIZER, Self, UMBRA_WITHOUT_PARENTHESES given)) {}             \
  UMBRA_FOR_EACH(UMBRA_GIVEN, Self, UMBRA_WITHOUT_PARENTHESES given)                                                 \
  UMBRA_SETTINGS(Self, UMBRA_WITHOUT_PARENTHESES settings)                                                           \
  template <class Layer> Layer make_of(const Native& plain) const {                                                  \
    return Layer(UMBRA_ALL_BUT_FIRST(UMBRA_FOR_EACH(UMBRA_ARGUMENT, Self, UMBRA_WITHOUT_PARENTHESES given)), plain); \
  }                                                                                                                  \
                                                                                                                     \
 private:                                                                                                            \
  UMBRA_FOR_EACH(UMBRA_MEMBER, Self, UMBRA_WITHOUT_PARENTHESES given)                                                \
                                                                                                                     \
 public:

/// A class over plain options; one without anything that has to be given; and one of given things alone.
#define UMBRA_OPTIONS_OF(Self, Plain, given, settings)                                         \
  struct Self : Plain {                                                                        \
    UMBRA_GIVEN_AND_SETTINGS(Self, Plain, given, settings)                                     \
    template <class Layer> Layer make() const { return this->template make_of<Layer>(*this); } \
  }
#define UMBRA_OPTIONS(Self, Plain, ...)                                        \
  struct Self : Plain {                                                        \
    using Native = Plain;                                                      \
    UMBRA_SETTINGS(Self, __VA_ARGS__)                                          \
    template <class Layer> Layer make() const { return Layer(Native(*this)); } \
  }
#define UMBRA_ARGUMENTS(Self, ...)                                                          \
  struct Self {                                                                             \
    Self(UMBRA_ALL_BUT_FIRST(UMBRA_FOR_EACH(UMBRA_PARAMETER, Self, __VA_ARGS__)))           \
        : UMBRA_ALL_BUT_FIRST(UMBRA_FOR_EACH(UMBRA_INITIALIZER, Self, __VA_ARGS__)) {}      \
    UMBRA_FOR_EACH(UMBRA_GIVEN, Self, __VA_ARGS__)                                          \
    template <class Layer> Layer make() const {                                             \
      return Layer(UMBRA_ALL_BUT_FIRST(UMBRA_FOR_EACH(UMBRA_ARGUMENT, Self, __VA_ARGS__))); \
    }                                                                                       \
                                                                                            \
   private:                                                                                 \
    UMBRA_FOR_EACH(UMBRA_MEMBER, Self, __VA_ARGS__)                                         \
  }
