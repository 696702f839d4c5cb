// How operators are defined: once, in one place, everything about them.
//
//     UMBRA_OPERATOR("index_select(Tensor self, int dim, Tensor index) -> Tensor")
//         .out()                                              // index_select.out follows
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

namespace umbra {

/// Collects a definition; the operator is registered at once, and each call adds to its definition.
class OperatorBuilder {
 public:
  explicit OperatorBuilder(const char* schema);
  explicit OperatorBuilder(Operator& op) : op_(&op) {}

  /// `name_` (or an overload of it by another name) exists too: the result is written over the first argument.
  OperatorBuilder& inplace(const char* overload = nullptr);
  /// `name.out` (or another overload name) exists too: the result is written to `out`.
  OperatorBuilder& out(const char* overload = nullptr, std::vector<std::string> names = {"out"});

  /// The outputs' metadata, from the arguments; written over SymInt. Returns a TensorSpec, or a tuple or vector of
  /// them.
  template <class F> OperatorBuilder& meta(F f) {
    definition().meta = boxing::box_meta(std::move(f));
    return *this;
  }
  /// Fills the outputs: `void(const Tensor& out, arguments...)`; `.cpu<2>(...)` where there are two.
  template <size_t kOutputs = 1, class F> OperatorBuilder& cpu(F f) {
    check_kernel_arity(boxing::Signature<F>::kCount - kOutputs, kOutputs);
    definition().cpu = boxing::box_kernel<F, kOutputs>(std::move(f));
    return *this;
  }
  /// A view: returns an alias of its first argument, made by alias_tensor.
  template <class F> OperatorBuilder& view(F f) {
    definition().view = boxing::box_function(std::move(f));
    return *this;
  }
  /// How a write to the view reaches its base: `Tensor(base, written, which output, arguments...)`. Without one, by
  /// strides.
  template <class F> OperatorBuilder& view_inverse(F f) {
    definition().view_inverse = boxing::box_function(std::move(f));
    return *this;
  }
  /// By other operators; differentiated, captured and faked through them. The in-place variant is too.
  template <class F> OperatorBuilder& composite(F f) {
    definition().composite = boxing::box_function(std::move(f));
    compose_inplace();
    return *this;
  }
  /// By other operators, below autograd: has a gradient of its own.
  template <class F> OperatorBuilder& all_backends(F f) {
    definition().all_backends = boxing::box_function(std::move(f));
    return *this;
  }
  /// Needs data and makes its own outputs (item, nonzero).
  template <class F> OperatorBuilder& real(F f) {
    definition().real = boxing::box_function(std::move(f));
    return *this;
  }
  /// What a fake run does, where metadata alone does not say it.
  template <class F> OperatorBuilder& fake(F f) {
    definition().fake = boxing::box_function(std::move(f));
    return *this;
  }
  /// Writes an argument in place, `void(arguments...)`; a fake run skips it. Checks of arguments belong in `meta`.
  template <class F> OperatorBuilder& mutate(F f) {
    definition().mutate = boxing::box_function(std::move(f));
    return *this;
  }
  /// The gradient of the arguments named in `inputs` ("self" or "self, weight"), from what `names` lists: "grad" (or
  /// "grad1"), arguments, "result" (or "result1"), "x.sym_sizes", "x.sym_strides", "x.sym_storage_offset", "x.dtype",
  /// "x.device", "needs" (a bool for each input). That, and only that, is saved for the backward. Returns one Tensor an
  /// input (a tuple for several; a vector for a Tensor[] argument).
  template <class F> OperatorBuilder& gradient(const char* inputs, std::initializer_list<const char*> names, F f) {
    check_gradient_arity(names.size(), boxing::Signature<F>::kCount);
    return add_gradient(inputs, names, boxing::box_function(std::move(f)));
  }
  /// This operator writes arguments, and `name` computes the same as values: its results, then the new contents of each
  /// written one.
  OperatorBuilder& functional_form(const char* name);
  /// No output is differentiable, or only those marked.
  OperatorBuilder& not_differentiable();
  OperatorBuilder& differentiable_outputs(std::vector<bool> outputs);
  OperatorBuilder& tangent(TangentRule rule);
  OperatorBuilder& linear() { return tangent(TangentRule::Linear); }
  /// Each output element depends only on the input elements at its place: in-place variants write directly.
  OperatorBuilder& elementwise();
  /// Its kernel takes lazily conjugated and negated inputs as they are.
  OperatorBuilder& reads_lazy_bits();
  OperatorBuilder& random();
  OperatorBuilder& tags(std::initializer_list<const char*> tags);
  /// What differs in the in-place variant: a gradient of its own, say.
  template <class F> OperatorBuilder& on_inplace(F&& f) {
    OperatorBuilder variant(const_cast<Operator&>(*op_->inplace()));
    f(variant);
    return *this;
  }
  /// A family's shared definition: `.use(pointwise<functors::Gelu>())`.
  template <class F> OperatorBuilder& use(F&& family) {
    family(*this);
    return *this;
  }

  Definition& definition();
  Operator& op() { return *op_; }

 private:
  OperatorBuilder& add_gradient(const char* inputs, std::initializer_list<const char*> names, BoxedFunction function);
  void check_kernel_arity(size_t arguments, size_t outputs) const;
  void check_gradient_arity(size_t names, size_t parameters) const;
  void compose_inplace();
  Operator* op_;
};

#define UMBRA_CONCAT_(a, b) a##b
#define UMBRA_CONCAT(a, b) UMBRA_CONCAT_(a, b)
/// Defines an operator at start-up; see the top of this file.
#define UMBRA_OPERATOR(schema)                                                                        \
  [[maybe_unused]] static const ::umbra::OperatorBuilder UMBRA_CONCAT(umbra_operator_, __COUNTER__) = \
      ::umbra::OperatorBuilder(schema)

}  // namespace umbra
