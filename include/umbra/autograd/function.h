// Functions with a gradient of the user's own.
//
//     struct Square : autograd::Function<Square> {
//       static Tensor forward(autograd::FunctionContext& context, const Tensor& x) {
//         context.save_for_backward({x});
//         return x * x;
//       }
//       static autograd::Gradients backward(autograd::FunctionContext& context, autograd::Gradients grads) {
//         return {grads[0] * context.saved_tensors()[0] * 2};
//       }
//     };
//     Tensor y = Square::apply(x);
#pragma once

#include <map>
#include <typeinfo>

#include "umbra/autograd/saved_tensor.h"
#include "umbra/core/ivalue.h"

namespace UMBRA_API umbra {
namespace autograd {

class FunctionNode;

/// What forward and backward of one call share.
class FunctionContext {
 public:
  /// Inputs and outputs that the backward needs; other values go into `data`.
  void save_for_backward(std::vector<Tensor> tensors) { to_save_ = std::move(tensors); }
  std::vector<Tensor> saved_tensors() const;
  std::vector<Tensor> get_saved_variables() const { return saved_tensors(); }  // libtorch's name
  /// Inputs that forward changed in place; they must be among the outputs.
  void mark_dirty(std::vector<Tensor> tensors) { dirty_ = std::move(tensors); }
  void mark_non_differentiable(std::vector<Tensor> tensors) { non_differentiable_ = std::move(tensors); }
  /// Off: backward sees undefined tensors, not zeros, for outputs that took no part.
  void set_materialize_grads(bool value) { materialize_ = value; }
  /// Off: backward sees undefined tensors for outputs that have no gradient at all.
  void set_materialize_non_diff_grads(bool value) { materialize_non_diff_ = value; }
  bool needs_input_grad(size_t input) const { return needs_.at(input); }
  /// The tensors given to save_for_backward, before the call has ended.
  const std::vector<Tensor>& tensors_to_save() const { return to_save_; }

  std::map<std::string, Value> data;
  std::map<std::string, IValue> saved_data;  // the same under libtorch's names

 private:
  friend class FunctionNode;
  friend class FunctionCall;
  FunctionNode* node_ = nullptr;
  std::vector<Tensor> to_save_, dirty_, non_differentiable_;
  std::vector<SavedTensor> saved_;
  std::vector<bool> needs_;
  bool materialize_ = true, materialize_non_diff_ = true;
};

/// The node of a custom function. Bindings make them of callables; C++ users derive from Function.
class FunctionNode : public Node {
 public:
  using Backward = std::function<Gradients(FunctionContext&, Gradients)>;
  /// Tangents of the inputs (undefined where there is none) to those of the outputs.
  using Jvp = std::function<std::vector<Tensor>(FunctionContext&, std::vector<Tensor>)>;

  FunctionNode(std::string name, Backward backward, Jvp jvp = {});
  std::string name() const override { return name_; }
  Gradients apply(Gradients incoming) override;
  void release_saved() override;
  FunctionContext& context() { return context_; }
  const Jvp& jvp() const { return jvp_; }

 protected:
  void release_resources() override;

 private:
  std::string name_;
  Backward backward_;
  Jvp jvp_;
  FunctionContext context_;
};

/// Calls `forward` with recording off and makes its results the outputs of `node`. `inputs` are the tensors among its
/// arguments, in order; backward gives one gradient for each of them.
///
/// Inside a transform it is refused, since recording off would reach outer transforms too, unless the caller says that
/// `forward` goes on outside the innermost one (`knows_levels`).
std::vector<Tensor> apply_function(const IntrusivePtr<FunctionNode>& node, TensorList inputs,
                                   const std::function<std::vector<Tensor>(FunctionContext&)>& forward,
                                   bool knows_levels = false);

/// What stands for a tensor from outside in the program that is being captured; the tensor itself where nothing does.
/// Capture says it: the calls inside of a function see stand-ins alone, so its gradients have to flow to those.
using StandIn = Tensor (*)(const Tensor& tensor);
void set_stand_in(StandIn stand_in);
/// Asked of each tensor by which a derivative of `roots` is taken: an error where what is captured does not know how
/// others depend on it.
using WantedCheck = void (*)(const Tensor& wanted, const std::vector<Edge>& roots);
void set_wanted_check(WantedCheck check);

namespace detail {
void collect(std::vector<Tensor>& out, const Tensor& tensor);
void collect(std::vector<Tensor>& out, const std::vector<Tensor>& list);
void collect(std::vector<Tensor>& out, TensorList list);
template <class T> void collect(std::vector<Tensor>&, const T&) {}
/// "Square" for a struct of that name in any namespace.
std::string short_type_name(const std::type_info& type);
}  // namespace detail

/// Base of custom functions; see the top of this file. An optional `static std::vector<Tensor> jvp(FunctionContext&,
/// std::vector<Tensor>)` gives the forward-mode derivative. The context may also be taken by pointer, as in libtorch.
template <class T> struct Function {
  template <class... Args> static auto apply(const Args&... args) {
    std::vector<Tensor> inputs;
    (detail::collect(inputs, args), ...);
    FunctionNode::Jvp jvp;
    if constexpr (requires(FunctionContext & c, std::vector<Tensor> t) { T::jvp(c, t); }) jvp = &T::jvp;
    auto node = make_counted<FunctionNode>(
        detail::short_type_name(typeid(T)) + "Backward",
        [](FunctionContext& context, Gradients gradients) -> Gradients {
          if constexpr (requires { T::backward(context, gradients); })
            return T::backward(context, std::move(gradients));
          else return T::backward(&context, std::move(gradients));
        },
        std::move(jvp));
    auto forward = [&](FunctionContext& context) {
      if constexpr (requires { T::forward(&context, args...); }) return T::forward(&context, args...);
      else return T::forward(context, args...);
    };
    constexpr bool one = std::is_same_v<decltype(forward(node->context())), Tensor>;
    std::vector<Tensor> outputs = apply_function(node, inputs, [&](FunctionContext& context) -> std::vector<Tensor> {
      if constexpr (one) return {forward(context)};
      else return forward(context);
    });
    if constexpr (one) return outputs[0];
    else return outputs;
  }
};

}  // namespace autograd
}  // namespace umbra
