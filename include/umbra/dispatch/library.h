// Operators and kernels that users add at run time, in C++ or Python.
//
//     static Library library("mylib");
//     library.define("scale(Tensor x, float factor) -> Tensor");
//     library.implement("scale", [](const Tensor& x, double factor) { return x * factor; });
//     library.fake("scale", [](const Tensor& x, double factor) { return empty_like(x); });
//     library.gradient("scale", "x", {"grad", "factor"}, [](const Tensor& grad, double factor) { return grad * factor;
//     });
//
// The same where a program starts, in a file of its own; `implement`, `fake` and `gradient` may stand in other files,
// in UMBRA_LIBRARY_FRAGMENTs:
//
//     UMBRA_LIBRARY(mylib, library) {
//       library.define("scale(Tensor x, float factor) -> Tensor");
//     }
//
// What a library defined and implemented goes when the library goes; an operator's earlier kernel comes back then.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "umbra/dispatch/batching.h"
#include "umbra/dispatch/define.h"

namespace UMBRA_API umbra {

namespace boxing {
// What users' kernels may take besides: a list and a text that live for the call.
template <> struct Unbox<IntArrayRef> {
  static std::vector<int64_t> from(const Value& v) { return guard_ints(v.int_list()); }
};
template <> inline constexpr CppType kCppType<std::string_view>{CppType::Base::String};
template <> struct Unbox<std::string_view> {
  static std::string from(const Value& v) { return v.to_string(); }
};

template <class Arguments> inline constexpr bool kCanTake = false;
template <class... T>
inline constexpr bool kCanTake<std::tuple<T...>> = (requires(const Value& v) { Unbox<T>::from(v); } && ...);

/// "(Tensor a0, float a1) -> Tensor": a schema as far as a function's types tell it.
std::string schema_text(const FunctionSignature& function);
template <class F> std::string schema_text() { return schema_text(kSignature<F>); }
}  // namespace boxing

/// Where a library's kernel stands. The names are PyTorch's dispatch keys.
enum class KernelKey : uint8_t {
  CPU,
  CUDA,
  Meta,
  Fake,  // without data, on any device: PyTorch's register_fake
  AutogradCPU,
  AutogradCUDA,
  AutogradMeta,
  Autograd,                                // on every device that has none of its own
  CompositeExplicitAutogradNonFunctional,  // on every device, below autograd
  CompositeExplicitAutograd,               // the same
  CompositeImplicitAutograd,               // by other operators, differentiated through them
  AutocastCPU,                             // while autocast is on there, before anything else of these
  AutocastCUDA,                            // the same; autocast is never on there
  Count,
};
/// The key of a name; an error for one that PyTorch does not have, and NotImplementedError for one that is not built.
KernelKey parse_kernel_key(std::string_view name);
const char* to_string(KernelKey key);

/// Whether a library has registered a kernel of an operator at a key.
bool has_library_kernel(const Operator& op, KernelKey key);

/// A kernel: results replace the arguments in the frame.
using KernelFunction = std::function<void(const Operator& op, Value* frame)>;
/// A kernel for those who have no static types, such as Python: arguments to results.
using GenericFunction = std::function<std::vector<Value>(const Operator& op, ArrayRef<Value>)>;

class Library {
 public:
  enum class Kind : uint8_t {
    Define,     // the library of its namespace: there is one such at a time
    Fragment,   // adds to a namespace
    Implement,  // kernels alone
  };
  explicit Library(std::string space, Kind kind = Kind::Fragment);
  ~Library();
  Library(Library&&) noexcept;
  Library& operator=(Library&&) noexcept;

  /// Defines an operator in this namespace; an error if it exists already.
  Operator& define(const std::string& schema, TagSet tags = {});
  /// What runs on tensors with data on a device, or what its key says.
  template <class F> void implement(const std::string& name, F f, KernelKey key = KernelKey::CPU) {
    static_assert(
        boxing::kCanTake<typename boxing::Signature<F>::Arguments>,
        "an operator's kernel takes Tensor, int64_t, SymInt, double, bool, Scalar, std::string, DType, Device, "
        "IntArrayRef, SymIntArrayRef, TensorList, and std::optional and std::vector of these");
    check_signature(name, boxing::kSignature<F>);
    add(name, key, boxed(std::move(f)));
  }
  /// The same for an operator that another file may define later: only then can types be compared with its schema, and
  /// what does not fit is an error of the call.
  template <class F> void implement_ahead(const std::string& name, F f, KernelKey key) {
    if (is_defined(name)) implement(name, std::move(f), key);
    else add(name, key, boxed(std::move(f)));
  }
  /// What runs without data, by operators such as empty_like that only make metadata.
  template <class F> void fake(const std::string& name, F f) { implement(name, std::move(f), KernelKey::Fake); }
  /// By other operators: no fake function or gradient needed.
  template <class F> void composite(const std::string& name, F f) {
    implement(name, std::move(f), KernelKey::CompositeImplicitAutograd);
  }
  /// The gradient of an operator that this library defined; see OperatorBuilder::gradient.
  template <class F>
  void gradient(const std::string& name, const char* inputs, std::initializer_list<const char*> names, F f) {
    OperatorBuilder(defined_here(name)).gradient(inputs, names, std::move(f));
  }
  /// What vmap does with an operator that this library defined: `Batched` (dispatch/batching.h) in the place of
  /// tensors. Without it, the operator is called for each element of the batch.
  template <class F> void batch(const std::string& name, F f) {
    OperatorBuilder(defined_here(name)).batch(std::move(f));
  }
  /// A kernel as a generic function. The operator may be defined later.
  void implement_generic(const std::string& name, GenericFunction f, KernelKey key = KernelKey::CPU);
  /// Calls pass the key's layer as if there were none. Of use at Autograd.
  void fall_through(const std::string& name, KernelKey key);

  /// Takes back all that this library defined and implemented.
  void reset();
  const std::string& space() const { return space_; }

 private:
  template <class F> static KernelFunction boxed(F f) {
    return [f = std::move(f)](const Operator&, Value* frame) {
      constexpr auto positions = std::make_index_sequence<boxing::Signature<F>::kCount>();
      if constexpr (std::is_void_v<typename boxing::Signature<F>::Return>)
        boxing::apply_frame<0, F>(f, frame, positions);
      else boxing::store(frame, boxing::apply_frame<0, F>(f, frame, positions));
    };
  }
  /// Refuses a function whose parameters or results do not fit the operator's schema.
  void check_signature(const std::string& name, const FunctionSignature& function) const;
  std::string full_name(const std::string& name) const;
  bool is_defined(const std::string& name) const;
  Operator& defined_here(const std::string& name) const;
  void add(const std::string& name, KernelKey key, KernelFunction function);

  struct Registered;
  std::string space_;
  Kind kind_;
  IntrusivePtr<Registered> registered_;
};

}  // namespace umbra

#define UMBRA_JOINED_NAMES(a, b) a##b
#define UMBRA_JOINED(a, b) UMBRA_JOINED_NAMES(a, b)
/// A name that no other line of the file makes.
#define UMBRA_LIBRARY_NAME(name) UMBRA_JOINED(name, __LINE__)
#define UMBRA_LIBRARY_OF_KIND(space, kind, library)                                  \
  static void UMBRA_LIBRARY_NAME(umbra_fill_##space##_)(::umbra::Library & library); \
  static ::umbra::Library UMBRA_LIBRARY_NAME(umbra_library_##space##_) = [] {        \
    ::umbra::Library made(#space, ::umbra::Library::Kind::kind);                     \
    UMBRA_LIBRARY_NAME(umbra_fill_##space##_)(made);                                 \
    return made;                                                                     \
  }();                                                                               \
  static void UMBRA_LIBRARY_NAME(umbra_fill_##space##_)(::umbra::Library & library)
#define UMBRA_LIBRARY(space, library) UMBRA_LIBRARY_OF_KIND(space, Define, library)
#define UMBRA_LIBRARY_FRAGMENT(space, library) UMBRA_LIBRARY_OF_KIND(space, Fragment, library)
