// How operators are defined: once, in one place, everything about them.
//
//     UMBRA_OPERATOR("index_select(Tensor self, int dim, Tensor index) -> Tensor")
//         .out("index_select.out")                            // follows from what stands below
//         .meta([](const Tensor& self, int64_t dim, const Tensor& index) { return TensorSpec(...); })
//         .cpu(kernels::index_select)                         // (out, self, dim, index): fills what meta allocated
//         .gradient("self", {"grad", "self.sym_sizes", "dim", "index"}, [](...) { return ...; });
//
// The same works outside the library: see dispatch/library.h for operators defined at run time.
#pragma once

#include <initializer_list>
#include <string>

#include "umbra/dispatch/boxing.h"
#include "umbra/dispatch/operator.h"

namespace UMBRA_API umbra {

/// The parts of a definition that are functions over the operator's arguments.
enum class Slot : uint8_t {
  Meta,
  Kernel,
  View,
  ViewInverse,
  Composite,
  AllBackends,
  Decomposition,
  Real,
  Fake,
  Mutate,
  Unchanged,
  TangentForm,
  Sparse,
};

/// Collects a definition; the operator is registered at once, and each call adds to its definition. A function whose
/// parameters or results do not fit the schema is an error that names the operator and what does not fit.
class OperatorBuilder {
 public:
  explicit OperatorBuilder(const char* schema);
  explicit OperatorBuilder(Operator& op) : op_(&op) {}

  /// The in-place variant exists too, by its full name ("add_.Tensor"): the result is written over the first argument.
  OperatorBuilder& inplace(const char* name);
  /// The out variant exists too, by its full name ("add.out"): the result is written to `out`, or to outputs of other
  /// names.
  OperatorBuilder& out(const char* name, std::vector<std::string> outputs = {"out"});
  /// The same for a variant that PyTorch has for completeness only, which shows in its tags.
  OperatorBuilder& generated_out(const char* name, std::vector<std::string> outputs = {"out"});

  /// The outputs' metadata, from the arguments; written over SymInt. Returns a TensorSpec, or a tuple or vector of
  /// them.
  template <class F> OperatorBuilder& meta(F f) { return set_meta(boxing::box_meta(std::move(f))); }
  /// Fills the outputs: `void(const Tensor& out, arguments...)`; `.cpu<2>(...)` where there are two, and a TensorList
  /// where the schema has a list.
  template <size_t kOutputs = 1, class F> OperatorBuilder& cpu(F f) {
    return kernel<kOutputs>(Backend::CPU, std::move(f));
  }
  /// The same for another backend.
  template <size_t kOutputs = 1, class F> OperatorBuilder& kernel(Backend backend, F f) {
    return set_kernel(backend, boxing::box_kernel<F, kOutputs>(std::move(f)));
  }
  /// A view: returns an alias of its first argument, made by alias_tensor.
  template <class F> OperatorBuilder& view(F f) { return set(Slot::View, boxing::box_function(std::move(f))); }
  /// How a write to the view reaches its base: `Tensor(base, written, which output, arguments but the first...)`.
  /// Without one, by strides.
  template <class F> OperatorBuilder& view_inverse(F f) {
    return set(Slot::ViewInverse, boxing::box_function(std::move(f)));
  }
  /// By other operators; differentiated, captured and faked through them. The in-place variant is too.
  template <class F> OperatorBuilder& composite(F f) {
    return set(Slot::Composite, boxing::box_function(std::move(f)));
  }
  /// By other operators, below autograd: has a gradient of its own.
  template <class F> OperatorBuilder& all_backends(F f) {
    return set(Slot::AllBackends, boxing::box_function(std::move(f)));
  }
  /// By other operators, for captures that ask for it: the operator has a kernel as well.
  template <class F> OperatorBuilder& decomposition(F f) {
    return set(Slot::Decomposition, boxing::box_function(std::move(f)));
  }
  /// Needs data and makes its own outputs (item, nonzero).
  template <class F> OperatorBuilder& real(F f, Backend backend = Backend::CPU) {
    return set(Slot::Real, boxing::box_function(std::move(f)), backend);
  }
  /// What a fake run does, where metadata alone does not say it.
  template <class F> OperatorBuilder& fake(F f) { return set(Slot::Fake, boxing::box_function(std::move(f))); }
  /// What it does where a tensor is not strided (core/sparse.h); without this, such tensors are refused by name.
  template <class F> OperatorBuilder& sparse(F f) { return set(Slot::Sparse, boxing::box_function(std::move(f))); }
  /// Writes an argument in place, `void(arguments...)`; a fake run skips it. Checks of arguments belong in `meta`.
  template <class F> OperatorBuilder& mutate(F f, Backend backend = Backend::CPU) {
    return set(Slot::Mutate, boxing::box_function(std::move(f)), backend);
  }
  /// `bool(arguments...)`: whether a call gives back its first argument and does nothing; such a call is not recorded.
  template <class F> OperatorBuilder& unchanged(F f) {
    return set(Slot::Unchanged, boxing::box_function(std::move(f)));
  }
  /// Forward mode of what has no derivative of its own, such as a fused backward pass: where an input has a tangent,
  /// `f` computes the same by operators that have one.
  template <class F> OperatorBuilder& tangents_through(F f) {
    return set(Slot::TangentForm, boxing::box_function(std::move(f)));
  }
  /// What vmap does: `Batched` (dispatch/batching.h) in the place of tensors. Elementwise operators need none.
  template <class F> OperatorBuilder& batch(F f) {
    check_batch_arity(boxing::Signature<F>::kCount);
    definition().batch = boxing::box_function(std::move(f));
    return *this;
  }
  /// The gradient of the arguments named in `inputs` ("self" or "self, weight"), from what `names` lists: "grad" (or
  /// "grad1"), arguments, "result" (or "result1"), "x.sym_sizes", "x.sym_strides", "x.sym_storage_offset", "x.dtype",
  /// "x.device", "needs" (a bool for each input). That, and only that, is saved for the backward. Sizes of a list are
  /// each tensor's number of dimensions and its sizes, one after the other. Returns one Tensor an input (a tuple for
  /// several; a vector for a Tensor[] argument).
  template <class F> OperatorBuilder& gradient(const char* inputs, std::initializer_list<const char*> names, F f) {
    return add_gradient(inputs, names, boxing::box_function(std::move(f)));
  }
  /// What autograd's node is called where PyTorch's name does not follow from the operator's ("SumBackward1").
  OperatorBuilder& node(const char* name);
  /// This operator writes arguments, and `name` computes the same as values: its results, then the new contents of each
  /// written one. Or it gives an alias, and `name` a copy.
  OperatorBuilder& functional_form(const char* name);
  /// No output is differentiable, or only those marked.
  OperatorBuilder& not_differentiable();
  OperatorBuilder& differentiable_outputs(std::vector<bool> outputs);
  OperatorBuilder& tangent(TangentRule rule);
  OperatorBuilder& linear() { return tangent(TangentRule::Linear); }
  /// Each output element depends only on the input elements at its place: in-place variants write directly.
  OperatorBuilder& elementwise();
  /// Its kernel changes some elements of its first argument, whatever its strides, and leaves the others: the in-place
  /// variant gives it that tensor as its output, unless another argument lies in the same memory.
  OperatorBuilder& writes_straight();
  /// Its kernel takes lazily conjugated and negated inputs as they are.
  OperatorBuilder& reads_lazy_bits();
  OperatorBuilder& random();
  OperatorBuilder& tags(TagSet tags);
  /// What differs in the in-place variant: a gradient of its own, say.
  template <class F> OperatorBuilder& on_inplace(F&& f) {
    OperatorBuilder variant(inplace_variant());
    f(variant);
    return *this;
  }
  /// A family's shared definition: `.use(pointwise<functors::Gelu>())`.
  template <class F> OperatorBuilder& use(F&& family) {
    family(*this);
    return *this;
  }

  /// The scalar function of a pointwise operator, made of the arguments behind its inputs; `parameters` describes what
  /// it is made of.
  OperatorBuilder& functor(ScalarFunctor functor, const FunctionSignature& parameters);

  Definition& definition();
  Operator& op() { return *op_; }

 private:
  OperatorBuilder& set(Slot slot, BoxedFunction function, Backend backend = Backend::CPU);
  OperatorBuilder& set_meta(BoxedMeta function);
  OperatorBuilder& set_kernel(Backend backend, BoxedKernel function);
  OperatorBuilder& add_gradient(const char* inputs, std::initializer_list<const char*> names, BoxedFunction function);
  Operator& inplace_variant();
  Operator& add_out(const char* name, std::vector<std::string> outputs);
  void check_batch_arity(size_t parameters) const;
  void compose_inplace();
  Operator* op_;
};

/// What does not fit the operator's schema among the functions of its definition, and what is missing from it; one line
/// each. Functions were checked when they were given: this is for a look at all of them.
std::vector<std::string> definition_problems(const Operator& op);

#define UMBRA_CONCAT_(a, b) a##b
#define UMBRA_CONCAT(a, b) UMBRA_CONCAT_(a, b)
/// Defines an operator at start-up; see the top of this file.
#define UMBRA_OPERATOR(schema)                                                                        \
  [[maybe_unused]] static const ::umbra::OperatorBuilder UMBRA_CONCAT(umbra_operator_, __COUNTER__) = \
      ::umbra::OperatorBuilder(schema)

}  // namespace umbra
