// How tangents pass through an operator. Linear operators are applied to the tangents; pointwise ones use their
// gradient formula, whose Jacobian is its own transpose. For all others the formula is transposed: it is linear in the
// gradient, and differentiating it with respect to the gradient, weighted by the tangents, gives the derivative along
// them.
#include "autograd/forward_state.h"
#include "autograd/hooks_off.h"
#include "autograd/layer.h"
#include "autograd/meta.h"
#include "autograd/operator_node.h"
#include "dispatch/lost_tangents.h"
#include "umbra/generated/functions.h"

namespace umbra::autograd {

namespace {

/// Where gradients end that only a formula's caller looks at.
class Sink final : public Node {
 public:
  std::string name() const override { return "Sink"; }
  Gradients apply(Gradients) override { return {}; }
};

IntrusivePtr<Node> sink() {
  static const IntrusivePtr<Node> node = make_counted<Sink>();
  return node;
}

class TangentCall {
 public:
  TangentCall(const Operator& op, Value* frame)
      : op_(op), functional_(op.functional() ? *op.functional() : op), plan_(plan_for(op)), frame_(frame) {
    for (size_t i = 0; i < op.argument_count(); ++i) {
      arguments_.push_back(frame[i]);
      frame[i].each_tensor([&](const TensorImpl* t) { level_ = std::max(level_, highest_level(t)); });
    }
  }

  void run(DispatchKeySet keys) {
    if (op_.has_out())
      fail<NotImplementedError>("Trying to use forward AD with ", op_.schema().name,
                                "_out that does not support it because it is an out= function");
    if (const BoxedFunction& form = op_.definition().tangent_form) return form(frame_);
    ShowLevels lower(level_ - 1);
    bool differentiable = plan_.is_differentiable() && !plan_.definition->not_differentiable;
    if (op_.is_inplace()) {
      self_ = arguments_[0].tensor();
      self_tangent_ = tangent(self_);
      // Formulas and products are about what was there before; so is what they keep of the tangent.
      if (differentiable) arguments_[0] = Value(op_.has_tag(Tag::InPlaceView) ? share_data(self_) : self_.clone());
      if (differentiable && self_tangent_.defined())
        tangent_before_ = op_.has_tag(Tag::InPlaceView) ? self_tangent_ : self_tangent_.clone();
    }
    run_operator(op_, keys, frame_);
    if (plan_.definition->not_differentiable) return;
    std::vector<Tensor> tangents = output_tangents();
    if (self_.defined()) return set_inplace_tangent(tangents.at(0));
    size_t next = 0;
    each_output([&](const Tensor& output) {
      Tensor& t = tangents.at(next++);
      if (t.defined() && output.defined() && is_differentiable(output.dtype()))
        set_tangent(output, on_its_own(t), level_);
    });
  }

 private:
  Tensor tangent(const Tensor& t) const {
    if (!t.defined()) return {};
    // A copy made of an argument that is written stands for it.
    if (tangent_before_.defined() && (t.is_same(arguments_[0].tensor_ref()) || t.is_same(self_)))
      return tangent_before_;
    const Tensor* found = tangent_at(t.impl(), level_);
    return found ? *found : Tensor();
  }

  /// A formula may give back the very tangent it was given; but a new tensor's tangent must not change with another's.
  Tensor on_its_own(const Tensor& result) const {
    bool shared = false;
    if (!op_.is_view())
      for (const Value& v : arguments_)
        v.each_tensor([&](const TensorImpl* t) {
          const Tensor* given = tangent_at(t, level_);
          shared |= given && given->storage() == result.storage();
        });
    return shared ? result.clone() : result;
  }

  template <class F> void each_output(F&& visit) const {
    if (plan_.list_result) {
      for (const Tensor& t : frame_[0].tensor_list()) visit(t);
      return;
    }
    for (size_t i = 0; i < op_.return_count(); ++i) visit(frame_[i].is_tensor() ? frame_[i].tensor_ref() : Tensor());
  }

  std::vector<Tensor> output_tangents() {
    if (!plan_.is_differentiable()) refuse();
    refuse_lost_tangents();
    TangentRule rule = plan_.definition->tangent;
    if (rule == TangentRule::Linear) return linear();
    bool complex = false;
    for (const Value& v : arguments_) {
      complex |= v.tag() == Value::Tag::Complex;
      v.each_tensor([&](const TensorImpl* t) { complex |= is_complex(t->dtype()); });
    }
    if (rule == TangentRule::Pointwise && !complex) return {pointwise()};
    return transposed();
  }

  void refuse_lost_tangents() const {
    const LostTangents* lost = lost_tangents(functional_);
    if (!lost || (lost->unless >= 0 && arguments_[static_cast<size_t>(lost->unless)].to_bool())) return;
    for (size_t i : lost->arguments)
      arguments_[i].each_tensor([&](const TensorImpl* t) { check(!tangent_at(t, level_), lost->error); });
  }

  [[noreturn]] void refuse() const {
    fail<NotImplementedError>("Trying to use forward AD with ", functional_.schema().name,
                              " that does not support it because it has not been implemented yet.");
  }

  // ---- linear ----

  /// A number of the user's expression has a number for its tangent: to handlers it is none of their tensors.
  static Tensor zero_like_number(const Tensor& t) {
    switch (t.dtype()) {
      case DType::Bool: return wrapped_number(Scalar(false));
      case DType::Int64: return wrapped_number(Scalar(int64_t{0}));
      case DType::Complex128: return wrapped_number(Scalar(std::complex<double>(0)));
      default: return wrapped_number(Scalar(0.0));
    }
  }

  std::vector<Tensor> linear() const {
    auto along = [&](const Tensor& t) -> Tensor {
      if (!t.defined()) return {};
      Tensor found = tangent(t);
      if (found.defined()) return found;
      return t.impl()->is_wrapped_number() ? zero_like_number(t) : zeros_like(t);
    };
    // A variant with a derivative of its own (copy_) is what can be differentiated once more.
    bool own = op_.is_inplace() && plan_.definition == &op_.definition();
    const Operator& applied = own ? op_ : functional_;
    Frame frame(applied);
    for (size_t i = 0; i < applied.argument_count(); ++i) {
      const Value& v = arguments_[i];
      if (plan_.formula[i] < 0) {
        frame[i] = Value::borrow(v);
      } else if (v.is_tensor_list()) {
        std::vector<Tensor> list;
        for (const Tensor& t : v.tensor_list()) list.push_back(along(t));
        frame[i] = Value(std::move(list));
      } else {
        frame[i] = Value(along(v.tensor_ref()));
      }
    }
    if (own) frame[0] = Value(writable(frame[0].tensor_ref()));
    applied.call(frame.data());
    if (plan_.list_result) return frame[0].tensor_list().vec();
    std::vector<Tensor> out;
    for (size_t i = 0; i < applied.return_count(); ++i)
      out.push_back(frame[i].is_tensor() ? frame[i].take_tensor() : Tensor());
    return out;
  }

  /// A copy of the tangent of what is written, batched wherever one of the tangents is: vmap lets nothing else be
  /// written there.
  Tensor writable(const Tensor& self_tangent) const {
    Tensor out = self_tangent.clone();
    for (const Value& v : arguments_)
      v.each_tensor([&](TensorImpl* t) {
        const Tensor* other = tangent_at(t, level_);
        if (other) out = out.add(other->new_zeros({}, {.dtype = out.dtype()}));
      });
    return out;
  }

  // ---- by gradient formulas ----

  /// A node that gives the gradients of the chosen ones (`wanted(tensor, edge)`) among the arguments.
  template <class F> IntrusivePtr<OperatorNode> formulas_for(F&& wanted) const {
    auto node = make_counted<OperatorNode>(op_, plan_);
    uint64_t needed = 0;
    size_t edge = 0;
    for (size_t i = 0; i < op_.argument_count(); ++i) {
      if (plan_.formula[i] < 0) continue;
      auto add = [&](const Tensor& t) {
        bool use = wanted(t, edge++) && t.defined();
        if (use) needed |= uint64_t{1} << plan_.formula[i];
        node->add_edge(use ? Edge{sink(), 0} : Edge());
      };
      if (!op_.schema().arguments[i].type.list) {
        add(arguments_[i].tensor_ref());
        continue;
      }
      TensorList list = arguments_[i].is_none() ? TensorList() : arguments_[i].tensor_list();
      node->add_list_length(list.size());
      for (const Tensor& t : list) add(t);
    }
    node->set_needed(needed);
    // It is gone with the call: hooks of the user's would see tensors that are kept for no backward pass, and what they
    // give back has no history.
    WithoutSavedTensorHooks own;
    node->save_arguments(arguments_.data());
    node->save_results(frame_, false);
    each_output(
        [&](const Tensor& output) { node->add_input(output.defined() ? InputMetadata(output) : InputMetadata()); });
    return node;
  }

  Tensor pointwise() const {
    SuspendPass suspend;
    const Tensor& output = frame_[0].tensor_ref();
    Tensor sum;
    bool foreign = false;  // a tangent has another type than its tensor
    size_t edge = 0;
    each_input([&](const Tensor& input) {
      size_t here = edge++;
      Tensor along = tangent(input);
      if (!along.defined()) return;
      foreign |= along.dtype() != input.dtype();
      along = along.expand(output.sym_sizes()).to(type_of_tangent(input, along, output));
      Tensor part = formulas_for([&](const Tensor&, size_t e) { return e == here; })->apply({along})[here];
      if (part.defined()) sum = sum.defined() ? sum.add(part) : part;
    });
    return sum.defined() && !foreign ? sum.to(output.dtype()) : sum;
  }

  /// The output's, but for a tangent that was given in another type than its tensor's: nothing of that is lost.
  static DType type_of_tangent(const Tensor& input, const Tensor& along, const Tensor& output) {
    return along.dtype() == input.dtype() ? output.dtype() : promote_types(along.dtype(), output.dtype());
  }

  /// Without a gradient, or without that of the gradient, the operator has no forward mode: that is told of it alone.
  template <class F> auto refused_if_missing(F&& derivatives) const {
    try {
      return derivatives();
    } catch (const NotImplementedError&) {
      refuse();
    } catch (const MissingDerivative&) {
      refuse();
    }
  }

  /// The derivative as the transpose of the transpose.
  std::vector<Tensor> transposed() const {
    SuspendPass suspend;
    bool create_graph = is_grad_enabled() && graph_may_be_wanted();
    EnableGrad enable;
    std::vector<Tensor> cotangents;
    each_output([&](const Tensor& output) {
      bool use = output.defined() && is_differentiable(output.dtype());
      Tensor zero = use ? zeros(output.sym_sizes(), {.dtype = output.dtype(), .device = output.device()}) : Tensor();
      if (use) zero.requires_grad_();
      cotangents.push_back(zero);
    });
    auto node = formulas_for([&](const Tensor& t, size_t) { return tangent(t).defined(); });
    Gradients gradients = refused_if_missing([&] { return node->apply(cotangents); });
    std::vector<Tensor> outputs, weights;
    size_t edge = 0;
    each_input([&](const Tensor& input) {
      Tensor gradient = gradients[edge++];
      Tensor weight = tangent(input);
      if (!gradient.defined() || !weight.defined()) return;
      check<NotImplementedError>(weight.dtype() == input.dtype(), "forward mode of ", functional_.schema().name,
                                 " with a tangent of type ", weight.dtype(), " for an input of type ", input.dtype(),
                                 ": give the tangent in the input's type");
      gradient = fit_gradient(*node, edge - 1, gradient, InputMetadata(input));
      if (!gradient.requires_grad()) return;
      outputs.push_back(gradient);
      weights.push_back(weight);
    });
    return differentiate(outputs, weights, cotangents, create_graph);
  }

  /// Whether somebody could ask for the tangent's derivative. A level's tensors do not show what is behind them.
  bool graph_may_be_wanted() const {
    bool wanted = dispatch_state().include.has(DispatchKey::Level);
    each_input([&](const Tensor& t) {
      if (t.defined()) wanted |= t.requires_grad() || (tangent(t).defined() && tangent(t).requires_grad());
    });
    return wanted;
  }

  std::vector<Tensor> differentiate(const std::vector<Tensor>& outputs, const std::vector<Tensor>& weights,
                                    const std::vector<Tensor>& cotangents, bool create_graph) const {
    std::vector<Tensor> result(cotangents.size()), inputs;
    if (outputs.empty()) return result;
    for (const Tensor& t : cotangents)
      if (t.defined()) inputs.push_back(t);
    std::vector<Tensor> found =
        refused_if_missing([&] { return grad(outputs, inputs, weights, {.create_graph = create_graph}, true); });
    size_t next = 0;
    for (size_t i = 0; i < cotangents.size(); ++i)
      if (cotangents[i].defined()) result[i] = found[next++];
    return result;
  }

  /// The tensors among the arguments that have a formula, in the order of the node's edges.
  template <class F> void each_input(F&& visit) const {
    for (size_t i = 0; i < op_.argument_count(); ++i) {
      if (plan_.formula[i] < 0) continue;
      if (!op_.schema().arguments[i].type.list) visit(arguments_[i].tensor_ref());
      else if (!arguments_[i].is_none())
        for (const Tensor& t : arguments_[i].tensor_list()) visit(t);
    }
  }

  // ---- writing ----

  /// The tangent of a view is a view of its base's tangent, and changes with it.
  void set_inplace_tangent(const Tensor& changed) {
    if (op_.has_tag(Tag::InPlaceView)) return set_tangent(self_, changed, level_);
    if (self_tangent_.defined() && !changed.defined()) return void(self_tangent_.zero_());
    if (self_tangent_.defined()) return write_once(self_tangent_, changed);
    if (!changed.defined()) return;
    if (!self_.is_view()) return set_tangent(self_, changed, level_);
    Tensor base(self_.impl()->view_base());
    if (const Tensor* existing = tangent_at(base.impl(), level_)) {
      Tensor part = same_view(*existing, base, self_);
      part.copy_(changed);
      return set_tangent(self_, part, level_);
    }
    Tensor whole = changed.new_empty_strided(base.sym_sizes(), base.sym_strides(), {.dtype = base.dtype()});
    whole.zero_();
    Tensor part = same_view(whole, base, self_);
    part.copy_(changed);
    set_tangent(base, whole, level_);
    set_tangent(self_, part, level_);
  }

  const Operator& op_;
  const Operator& functional_;
  const Plan& plan_;
  Value* frame_;
  std::vector<Value> arguments_;
  int level_ = 0;
  Tensor self_, self_tangent_, tangent_before_;  // of an in-place operator
};

}  // namespace

void run_with_tangents(const Operator& op, DispatchKeySet keys, Value* frame) { TangentCall(op, frame).run(keys); }

}  // namespace umbra::autograd
