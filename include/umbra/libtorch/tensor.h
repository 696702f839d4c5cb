// Tensors, options, devices and checks in libtorch's words. `torch::Tensor` is umbra::Tensor; what libtorch sets one
// after the other (`TensorOptions().dtype(kLong).requires_grad(true)`) is a class over the plain options.
#pragma once

#if __cplusplus < 202002L
#error "Umbra's headers are C++20: compile with -std=c++20, or link with umbra::umbra in CMake"
#endif

#include "umbra/autograd/autograd.h"
#include "umbra/autograd/function.h"
#include "umbra/core/generator.h"
#include "umbra/core/indexing.h"
#include "umbra/core/print.h"
#include "umbra/core/tensor.h"
#include "umbra/core/threads.h"
#include "umbra/core/warning.h"
#include "umbra/dispatch/dispatcher.h"
#include "umbra/dispatch/library.h"
#include "umbra/dispatch/typed.h"
#include "umbra/generated/functions.h"
#include "umbra/libtorch_names.h"
#include "umbra/nn/nn.h"
#include "umbra/ops/operators.h"
#include "umbra/ops/parts.h"
#include "umbra/ops/tensor_of.h"
#include "umbra/optim/optim.h"

// The version of PyTorch whose operators and files these are.
#define TORCH_VERSION_MAJOR 2
#define TORCH_VERSION_MINOR 15
#define TORCH_VERSION_PATCH 0
#define TORCH_VERSION "2.15.0"

namespace torch {
using namespace umbra;

// ---- options ----

class TensorOptions : public umbra::TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(const umbra::TensorOptions& options) : umbra::TensorOptions(options) {}
  TensorOptions(DType type) { umbra::TensorOptions::dtype = type; }
  TensorOptions(umbra::Device where) { umbra::TensorOptions::device = where; }
  TensorOptions(DeviceType where) : TensorOptions(umbra::Device(where)) {}

  TensorOptions dtype(DType type) const {
    TensorOptions out(*this);
    out.umbra::TensorOptions::dtype = type;
    return out;
  }
  TensorOptions device(umbra::Device where) const {
    TensorOptions out(*this);
    out.umbra::TensorOptions::device = where;
    return out;
  }
  TensorOptions layout(Layout layout) const {
    TensorOptions out(*this);
    out.umbra::TensorOptions::layout = layout;
    return out;
  }
  TensorOptions requires_grad(bool value) const {
    TensorOptions out(*this);
    out.umbra::TensorOptions::requires_grad = value;
    return out;
  }
  DType dtype() const { return umbra::TensorOptions::dtype.value_or(default_dtype()); }
  umbra::Device device() const { return umbra::TensorOptions::device.value_or(umbra::Device()); }
  Layout layout() const { return umbra::TensorOptions::layout.value_or(Layout::Strided); }
  bool requires_grad() const { return umbra::TensorOptions::requires_grad; }
};
inline TensorOptions dtype(DType type) { return TensorOptions(type); }
inline TensorOptions device(umbra::Device where) { return TensorOptions(where); }
inline TensorOptions layout(Layout layout) { return TensorOptions().layout(layout); }
inline TensorOptions requires_grad(bool value = true) { return TensorOptions().requires_grad(value); }

inline constexpr Layout kStrided = Layout::Strided, kSparse = Layout::SparseCoo;

/// A device whose parts are asked for by calls.
class Device : public umbra::Device {
 public:
  using umbra::Device::Device;
  Device(const umbra::Device& device) : umbra::Device(device) {}
  DeviceType type() const { return umbra::Device::type; }
  int8_t index() const { return umbra::Device::index; }
  bool has_index() const { return index() >= 0; }
  bool is_cpu() const { return type() == DeviceType::CPU; }
  bool is_cuda() const { return type() == DeviceType::CUDA; }
  bool is_meta() const { return type() == DeviceType::Meta; }
  std::string str() const { return to_string(static_cast<const umbra::Device&>(*this)); }
};

/// A DType under libtorch's names: `ScalarType::Double`.
class ScalarType {
 public:
  constexpr ScalarType(DType type) : type_(type) {}
  constexpr operator DType() const { return type_; }
  static constexpr DType Byte = kByte, Char = kChar, Short = kShort, Int = kInt, Long = kLong, Half = kHalf,
                         Float = kFloat, Double = kDouble, ComplexFloat = kComplexFloat, ComplexDouble = kComplexDouble,
                         Bool = kBool, BFloat16 = kBFloat16;

 private:
  DType type_;
};

// Where the device is all that is said: `torch::randn({4, 8}, device)`.
#define UMBRA_ON_DEVICE(name)                                                                                   \
  using umbra::name;                                                                                            \
  template <class On>                                                                                           \
  requires(std::same_as<On, Device> || std::same_as<On, DeviceType>) Tensor name(const argument::SymInts& size, \
                                                                                 const On& device) {            \
    return umbra::name(size, TensorOptions(umbra::Device(device)));                                             \
  }
UMBRA_ON_DEVICE(empty)
UMBRA_ON_DEVICE(ones)
UMBRA_ON_DEVICE(rand)
UMBRA_ON_DEVICE(randn)
UMBRA_ON_DEVICE(zeros)
#undef UMBRA_ON_DEVICE

using umbra::tensor;
template <class T> Tensor tensor(const std::vector<T>& values, const TensorOptions& options) {
  Tensor made = umbra::tensor(values, {}, static_cast<const umbra::TensorOptions&>(options).dtype);
  return made.to(options.device()).requires_grad_(options.requires_grad());
}

using std::nullopt;
using std::optional;
/// "Float" for float32.
inline const char* toString(DType type) { return umbra::detail::libtorch_name(type); }
/// The pieces as one text.
template <class... Pieces> std::string str(const Pieces&... pieces) { return umbra::detail::concat(pieces...); }
template <class T> struct RestrictPtrTraits {};

namespace indexing {
using namespace umbra::indexing;
}

// ---- random numbers ----

/// A generator as a value.
class Generator : public IntrusivePtr<umbra::Generator> {
 public:
  using IntrusivePtr<umbra::Generator>::IntrusivePtr;
  Generator(IntrusivePtr<umbra::Generator> generator) : IntrusivePtr<umbra::Generator>(std::move(generator)) {}
  void set_current_seed(uint64_t seed) { get()->manual_seed(seed); }
  uint64_t current_seed() const { return get()->seed(); }
};
struct CPUGeneratorImpl {};
template <class Impl = CPUGeneratorImpl> Generator make_generator(uint64_t seed) {
  return make_counted<umbra::Generator>(seed);
}
namespace detail {
using namespace umbra::detail;
inline Generator createCPUGenerator(uint64_t seed = 67280421310721ull) { return make_generator(seed); }
inline Generator getDefaultCPUGenerator() { return default_generator(); }
}  // namespace detail

// ---- gradients ----

namespace autograd {
using namespace umbra::autograd;
using Variable = Tensor;
}  // namespace autograd

/// Calls pass autograd by: what an autograd kernel does with the operator it stands for.
class AutoDispatchBelowAutograd {
 public:
  AutoDispatchBelowAutograd() : before_(dispatch_state()) {
    dispatch_state().exclude = dispatch_state().exclude | DispatchKey::Autograd;
  }
  ~AutoDispatchBelowAutograd() { dispatch_state() = before_; }
  AutoDispatchBelowAutograd(const AutoDispatchBelowAutograd&) = delete;

 private:
  DispatchState before_;
};
using AutoDispatchBelowADInplaceOrView = AutoDispatchBelowAutograd;
using AutoNonVariableTypeMode = AutoDispatchBelowAutograd;

// ---- threads ----

/// Calls `body(begin, end)` for parts of the range; they run one after the other, and operators inside use threads.
template <class F> void parallel_for(int64_t begin, int64_t end, int64_t grain_size, const F& body) {
  int64_t step = std::max<int64_t>(grain_size, 1);
  for (int64_t at = begin; at < end; at += step) body(at, std::min(at + step, end));
}

}  // namespace torch

namespace at = torch;
namespace c10 = torch;

// ---- checks ----

#define UMBRA_LIBTORCH_CHECK(ErrorType, condition, ...)                                                             \
  do {                                                                                                              \
    if (!(condition)) [[unlikely]]                                                                                  \
      throw ErrorType(                                                                                              \
          ::torch::check_message("Expected " #condition " to be true, but got false." __VA_OPT__(, ) __VA_ARGS__)); \
  } while (false)
namespace torch {
template <class... Pieces> std::string check_message(const char* plain, const Pieces&... pieces) {
  if constexpr (sizeof...(pieces) == 0) return plain;
  else return umbra::detail::concat(pieces...);
}
}  // namespace torch
#define TORCH_CHECK(condition, ...) UMBRA_LIBTORCH_CHECK(::umbra::Error, condition, __VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) UMBRA_LIBTORCH_CHECK(::umbra::ValueError, condition, __VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) UMBRA_LIBTORCH_CHECK(::umbra::IndexError, condition, __VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) UMBRA_LIBTORCH_CHECK(::umbra::TypeError, condition, __VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(condition, ...) UMBRA_LIBTORCH_CHECK(::umbra::Error, condition, __VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) \
  UMBRA_LIBTORCH_CHECK(::umbra::NotImplementedError, condition, __VA_ARGS__)
#define TORCH_WARN(...) ::umbra::detail::warn(__VA_ARGS__)
#define AT_ASSERT(condition, ...) UMBRA_LIBTORCH_CHECK(::umbra::Error, condition, __VA_ARGS__)

// ---- code for each type of elements: inside the function the type is `scalar_t` ----

#define UMBRA_DISPATCH_CASE(type, ...)      \
  case ::umbra::dtype_of<type>: {           \
    using scalar_t [[maybe_unused]] = type; \
    return __VA_ARGS__();                   \
  }
#define UMBRA_DISPATCH(type, name, cases)                                                       \
  [&] {                                                                                         \
    ::umbra::DType umbra_dispatched_type = (type);                                              \
    switch (umbra_dispatched_type) {                                                            \
      cases default : throw ::umbra::NotImplementedError(::umbra::detail::concat(               \
                          "\"", name, "\" not implemented for '", umbra_dispatched_type, "'")); \
    }                                                                                           \
  }()
#define UMBRA_FLOATING_CASES(...) UMBRA_DISPATCH_CASE(float, __VA_ARGS__) UMBRA_DISPATCH_CASE(double, __VA_ARGS__)
#define UMBRA_INTEGRAL_CASES(...)           \
  UMBRA_DISPATCH_CASE(uint8_t, __VA_ARGS__) \
  UMBRA_DISPATCH_CASE(int8_t, __VA_ARGS__)  \
  UMBRA_DISPATCH_CASE(int16_t, __VA_ARGS__) \
  UMBRA_DISPATCH_CASE(int32_t, __VA_ARGS__) UMBRA_DISPATCH_CASE(int64_t, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES(type, name, ...) UMBRA_DISPATCH(type, name, UMBRA_FLOATING_CASES(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(type, name, ...) UMBRA_DISPATCH(type, name, UMBRA_INTEGRAL_CASES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(type, name, ...) \
  UMBRA_DISPATCH(type, name, UMBRA_FLOATING_CASES(__VA_ARGS__) UMBRA_INTEGRAL_CASES(__VA_ARGS__))
