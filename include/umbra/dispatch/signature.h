// What a function takes and gives, in terms that can be compared with a schema: a definition whose function does not
// fit its operator is refused when it is made.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "umbra/core/generator.h"
#include "umbra/dispatch/schema.h"

namespace UMBRA_API umbra {

struct TensorSpec;

/// The C++ type of a parameter or result, as far as schemas tell types apart.
struct CppType {
  enum class Base : uint8_t {
    Tensor,
    Spec,
    Int,
    SymInt,
    Double,
    Bool,
    Scalar,
    String,
    DType,
    Device,
    Layout,
    MemoryFormat,
    Generator,
    Any,
  };
  Base base = Base::Any;
  bool optional = false;
  bool list = false;
  uint8_t list_size = 0;  // of a std::array
};

/// A function's parameters and results; results of a tuple count one by one.
struct FunctionSignature {
  std::span<const CppType> parameters, results;
};

namespace boxing {

template <class F> struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... A> struct Signature<R (*)(A...)> {
  using Return = R;
  using Arguments = std::tuple<std::decay_t<A>...>;
  static constexpr size_t kCount = sizeof...(A);
};
template <class C, class R, class... A> struct Signature<R (C::*)(A...) const> : Signature<R (*)(A...)> {};
template <class C, class R, class... A> struct Signature<R (C::*)(A...)> : Signature<R (*)(A...)> {};

/// Types that no schema has stand for anything.
template <class T> inline constexpr CppType kCppType{};
template <> inline constexpr CppType kCppType<Tensor>{CppType::Base::Tensor};
template <> inline constexpr CppType kCppType<TensorSpec>{CppType::Base::Spec};
template <> inline constexpr CppType kCppType<int64_t>{CppType::Base::Int};
template <> inline constexpr CppType kCppType<SymInt>{CppType::Base::SymInt};
template <> inline constexpr CppType kCppType<double>{CppType::Base::Double};
template <> inline constexpr CppType kCppType<bool>{CppType::Base::Bool};
template <> inline constexpr CppType kCppType<Scalar>{CppType::Base::Scalar};
template <> inline constexpr CppType kCppType<std::string>{CppType::Base::String};
template <> inline constexpr CppType kCppType<DType>{CppType::Base::DType};
template <> inline constexpr CppType kCppType<Device>{CppType::Base::Device};
template <> inline constexpr CppType kCppType<Layout>{CppType::Base::Layout};
template <> inline constexpr CppType kCppType<MemoryFormat>{CppType::Base::MemoryFormat};
template <> inline constexpr CppType kCppType<IntrusivePtr<Generator>>{CppType::Base::Generator};
template <class T> inline constexpr CppType kCppType<ArrayRef<T>>{kCppType<T>.base, false, true};
template <class T> inline constexpr CppType kCppType<std::vector<T>>{kCppType<T>.base, false, true};
template <class T, size_t N> inline constexpr CppType kCppType<std::array<T, N>>{kCppType<T>.base, false, true, N};
template <class T>
inline constexpr CppType kCppType<std::optional<T>>{kCppType<T>.base, true, kCppType<T>.list, kCppType<T>.list_size};

/// One array for all functions with these types.
template <class... T> struct TypeList { static constexpr std::array<CppType, sizeof...(T)> kTypes{kCppType<T>...}; };
template <class T> struct Results : TypeList<T> {};
template <> struct Results<void> : TypeList<> {};
template <class... T> struct Results<std::tuple<T...>> : TypeList<T...> {};
template <size_t N> struct Results<std::array<Tensor, N>> {
  static constexpr std::array<CppType, N> kTypes = [] {
    std::array<CppType, N> types;
    types.fill(kCppType<Tensor>);
    return types;
  }();
};
template <class T> struct Parameters;
template <class... T> struct Parameters<std::tuple<T...>> : TypeList<T...> {};

/// What a function of type F takes and gives.
template <class F>
inline constexpr FunctionSignature kSignature{Parameters<typename Signature<F>::Arguments>::kTypes,
                                              Results<std::decay_t<typename Signature<F>::Return>>::kTypes};

}  // namespace boxing

/// Whether a parameter of this type can be given any argument of the schema's type.
bool takes(const CppType& parameter, const SchemaType& type);
/// Whether a result of this type is one of the schema's type.
bool gives(const CppType& result, const SchemaType& type);
/// "Tensor?", "int[]".
std::string to_string(const CppType& type);

}  // namespace umbra
