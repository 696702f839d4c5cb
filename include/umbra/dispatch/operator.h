// An operator: its schema, what was defined for it, and its way through the layers.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <typeinfo>
#include <vector>

#include "umbra/core/dispatch_key.h"
#include "umbra/dispatch/schema.h"
#include "umbra/dispatch/signature.h"
#include "umbra/dispatch/tag.h"

namespace UMBRA_API umbra {

class Operator;
class KernelTable;

/// What a metadata function says about an output before it exists.
struct TensorSpec {
  SymShape sizes;
  SymShape strides;
  DType dtype = DType::Float32;
  Device device = {};
  bool defined = true;  // an optional output that this call does not have

  TensorSpec() = default;
  /// Row-major.
  TensorSpec(SymIntArrayRef sizes, DType dtype, Device device);
  TensorSpec(SymIntArrayRef sizes, SymIntArrayRef strides, DType dtype, Device device);
};

/// The metadata of a call's outputs. One output, the usual case, needs no allocation.
class SpecList {
 public:
  void push_back(TensorSpec spec) {
    if (size_++ == 0) first_ = std::move(spec);
    else rest_.push_back(std::move(spec));
  }
  size_t size() const { return size_; }
  TensorSpec& operator[](size_t i) { return i == 0 ? first_ : rest_[i - 1]; }

 private:
  size_t size_ = 0;
  TensorSpec first_;
  std::vector<TensorSpec> rest_;
};

/// A function over a frame of Values: arguments in, results out, in place. A plain pointer and its context, and what
/// the function takes and gives (null where it is written over frames to begin with).
template <class... Extra> struct Boxed {
  using Function = void (*)(const void* context, Extra..., Value* frame);
  Function function = nullptr;
  const void* context = nullptr;
  const FunctionSignature* signature = nullptr;
  explicit operator bool() const { return function != nullptr; }
  void operator()(Extra... extra, Value* frame) const { function(context, extra..., frame); }
};
using BoxedFunction = Boxed<>;
using BoxedMeta = Boxed<SpecList&>;
using BoxedKernel = Boxed<TensorList>;  // outputs, then the frame of arguments

/// A layer's entry: sees the operator, the keys still to be served (its own included) and the frame.
using LayerFunction = void (*)(const Operator& op, DispatchKeySet keys, Value* frame);

/// Where an input of a gradient formula comes from.
struct GradientSource {
  enum class Kind : uint8_t { Grad, Argument, Result, Sizes, Strides, Offset, DTypeOf, DeviceOf, NeedsInput };
  Kind kind;
  int index = 0;
};

/// One gradient formula: for which arguments, from what, and how.
struct Gradient {
  std::vector<int> inputs;  // positions of the arguments whose gradients it returns, in order
  std::vector<std::string> names;
  std::vector<GradientSource> sources;
  BoxedFunction function;
};

/// How the forward-mode derivative follows.
enum class TangentRule : uint8_t {
  None,
  Linear,       // the operator itself, applied to the tangents
  Multilinear,  // linear in each tensor by itself: the sum over them of the operator with that one's tangent in its
                // place
  Pointwise,    // the gradient formula with the tangent in the place of the gradient
};

struct HigherOrder;
/// Where kernels run.
enum class Backend : uint8_t { CPU, CUDA, Count };
const char* name(Backend backend);

/// A slot for each backend.
template <class T> class PerBackend {
 public:
  T& operator[](Backend backend) { return slots_[static_cast<size_t>(backend)]; }
  const T& operator[](Backend backend) const { return slots_[static_cast<size_t>(backend)]; }
  bool any() const {
    for (const T& slot : slots_)
      if (slot) return true;
    return false;
  }

 private:
  T slots_[static_cast<size_t>(Backend::Count)];
};

/// The scalar function behind a pointwise operator, for whoever makes one loop of several operators. Its maths stands
/// in kernels/functors; here it is known by its type.
struct ScalarFunctor {
  const std::type_info* type = nullptr;
  size_t arity = 0;  // the operator's first arguments are its inputs, of the others it is made
  /// The functor for a call with these arguments.
  std::shared_ptr<const void> (*make)(const void* context, const Value* arguments) = nullptr;
  /// The type that these inputs are converted to for it.
  DType (*compute_type)(const void* context, const Value* arguments) = nullptr;
  const void* context = nullptr;
  explicit operator bool() const { return type != nullptr; }
  /// "umbra::functors::Gelu".
  std::string name() const;
};

/// All that was said about an operator in its definition.
struct Definition {
  BoxedMeta meta;                   // metadata of the outputs
  PerBackend<BoxedKernel> kernels;  // fill what meta allocated
  ScalarFunctor functor;            // of a pointwise operator
  BoxedFunction view;               // an alias of the input, for every backend
  BoxedFunction
      view_inverse;         // (base, written view, which output, arguments...): the base with the view's new contents
  BoxedFunction composite;  // by other operators, differentiated through them
  BoxedFunction all_backends;        // by other operators, below autograd
  BoxedFunction decomposition;       // by other operators, for capture: beside a kernel
  PerBackend<BoxedFunction> real;    // runs only with data, and makes its own outputs
  BoxedFunction fake;                // what a fake run does instead
  PerBackend<BoxedFunction> mutate;  // writes its arguments in place; a fake run does nothing but check
  BoxedFunction unchanged;           // whether a call gives back its first argument, so that there is nothing to record
  BoxedFunction sparse;              // of tensors that are not strided (core/sparse.h); without one they are refused
  BoxedFunction batch;               // under vmap: batched arguments to batched results (dispatch/batching.h)
  std::vector<Gradient> gradients;
  std::string node_name;  // of its autograd node, where it does not follow from the operator's
  TangentRule tangent = TangentRule::None;
  BoxedFunction tangent_form;  // what forward mode runs instead: the same by operators that have a derivative
  bool not_differentiable = false;
  std::vector<bool> differentiable_outputs;  // empty: all floating ones
  bool elementwise = false;                  // output elements depend on input elements at their place: safe in place
  bool writes_straight = false;              // its kernel takes its first argument as its output, too
  bool reads_lazy_bits = false;              // its kernel takes conjugated and negated inputs as they are
  bool random = false;                       // draws from a generator
  TagSet tags;
  const HigherOrder* higher_order = nullptr;  // it takes functions: capture/higher_order.h
};

/// A registered operator; lives as long as the process, so a pointer to it is its identity.
class Operator {
 public:
  explicit Operator(Schema schema);
  const Schema& schema() const { return schema_; }
  const std::string& name() const { return name_; }
  size_t argument_count() const { return schema_.arguments.size(); }
  size_t return_count() const { return schema_.returns.size(); }
  /// How many Values a frame for this operator needs.
  size_t frame_size() const { return frame_size_; }
  const Definition& definition() const { return definition_; }
  Definition& mutable_definition() { return definition_; }

  /// The functional operator that this in-place or out variant follows from, or null.
  const Operator* functional() const { return functional_; }
  void set_functional(const Operator* op) { functional_ = op; }
  /// The operator that gives as values what this one writes or aliases: `functional()`, or one named by its definition.
  /// Null: none.
  const Operator* functional_form() const;
  void set_functional_name(std::string name) { functional_name_ = std::move(name); }
  /// Its in-place variant, or null.
  const Operator* inplace() const { return inplace_; }
  void set_inplace(const Operator* op) { inplace_ = op; }

  bool is_inplace() const { return is_inplace_; }
  bool has_out() const { return has_out_; }
  bool is_mutable() const { return is_mutable_; }
  bool is_view() const { return is_view_; }
  bool takes_functions() const { return definition_.higher_order != nullptr; }
  bool is_composite() const { return static_cast<bool>(definition_.composite); }
  bool has_tag(Tag tag) const { return definition_.tags.has(tag); }
  /// Its tags, and those that a variant shares with its functional operator.
  TagSet all_tags() const;

  /// Calls it with a full frame of arguments; results replace them from the front.
  void call(Value* frame) const;
  /// Goes on with the layers of `keys`.
  void redispatch(DispatchKeySet keys, Value* frame) const;
  /// Convenience: arguments (defaults filled in) to results.
  std::vector<Value> operator()(std::vector<Value> arguments) const;
  /// The keys a call with this frame has, the thread's modes included.
  DispatchKeySet keys(const Value* frame) const;

  /// A kernel of a layer for this operator alone.
  void set_layer_kernel(DispatchKey key, LayerFunction function) { kernels_[static_cast<int>(key)] = function; }
  /// What libraries registered for it (dispatch/library.h), or null.
  const KernelTable* library_kernels() const { return library_kernels_; }
  void set_library_kernels(const KernelTable* kernels) { library_kernels_ = kernels; }
  /// Layers that every call passes, whatever the tensors say: those for which a library has a kernel.
  void set_own_keys(DispatchKeySet keys) { own_keys_ = keys; }
  /// Slots where a layer may keep what it derives for this operator (argument matchers, printed names).
  mutable void* python_slot = nullptr;
  mutable std::atomic<const void*> autograd_slot{nullptr};

 private:
  Schema schema_;
  std::string name_;
  size_t frame_size_;
  bool is_inplace_, has_out_, is_mutable_, is_view_;
  std::vector<int> tensor_positions_;
  int device_position_ = -1;  // of the argument that says where results go
  LayerFunction kernels_[static_cast<int>(DispatchKey::Count)] = {};
  DispatchKeySet own_keys_;
  const KernelTable* library_kernels_ = nullptr;
  Definition definition_;
  const Operator* functional_ = nullptr;
  std::string functional_name_;
  const Operator* inplace_ = nullptr;
};

/// "aten::add.Tensor" (the unnamed overload as "aten::relu" or "aten::relu.default"), or null / an error.
const Operator* find_operator(std::string_view name);
const Operator& get_operator(std::string_view name);
/// All overloads of "aten::add", in the order of their definition.
std::vector<const Operator*> operator_overloads(std::string_view name);
std::vector<const Operator*> all_operators();

/// A frame of Values for one call, on the stack for all operators of ordinary arity.
class Frame {
 public:
  explicit Frame(const Operator& op) : Frame(op.frame_size()) {}
  explicit Frame(size_t size) : size_(size), values_(size <= kInline ? inline_ : new Value[size]) {}
  /// Borrows another frame's arguments.
  Frame(const Operator& op, const Value* arguments) : Frame(op) {
    for (size_t i = 0; i < op.argument_count(); ++i) values_[i] = Value::borrow(arguments[i]);
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame() {
    if (values_ != inline_) delete[] values_;
  }
  Value& operator[](size_t i) { return values_[i]; }
  Value* data() { return values_; }
  size_t size() const { return size_; }

 private:
  static constexpr size_t kInline = 10;
  size_t size_;
  Value inline_[kInline];
  Value* values_;
};

}  // namespace umbra
