// Every operator's way through autograd. Most calls have nothing to record and go straight on; the others get a node
// that keeps what the gradient formulas of the operator name.
#include "autograd/layer.h"

#include "autograd/forward_state.h"
#include "autograd/meta.h"
#include "autograd/operator_node.h"
#include "autograd/wrapper_views.h"
#include "ops/common/batching.h"
#include "umbra/generated/functions.h"

namespace umbra::autograd {

namespace {

/// What the arguments of a call ask of autograd.
struct Request {
  bool grad = false, tangent = false;
};

Request request_of(const Operator& op, const Value* frame) {
  Request request;
  bool grad_mode = is_grad_enabled();
  int level = visible_level();
  if (!grad_mode && level == 0) return request;
  for (size_t i = 0; i < op.argument_count(); ++i)
    frame[i].each_tensor([&](const TensorImpl* t) {
      request.grad |= grad_mode && requires_grad(t) && !(op.is_view() && t->is_inference());
      request.tangent |= level > 0 && highest_level(t) > 0;
    });
  return request;
}

void refuse_inference(const TensorImpl* t) {
  check(!t->is_inference(),
        "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
        "normal tensor before "
        "doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.");
}

void refuse_inference_mutation(const Operator& op, const Value* frame) {
  for (size_t i = 0; i < op.argument_count(); ++i)
    if (op.schema().arguments[i].alias.write) frame[i].each_tensor(refuse_inference);
}

/// What changes metadata in place and has no derivative: in place of a view without history (detach_) it cuts the
/// history off; anything else (resize_) cannot be done to a tensor that has one, recorded or not. True where nothing is
/// left to do.
bool change_history(const Operator& op, Value* frame) {
  const Operator& source = op.functional() ? *op.functional() : op;
  if (!source.definition().not_differentiable) return false;
  const Tensor& self = frame[0].tensor_ref();
  if (!op.functional()) {
    check(!self.requires_grad(), "cannot resize variables that require grad");
    return false;
  }
  check(
      !self.is_view(),
      "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, "
      "and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be "
      "called on these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in "
      "torch/optim/optimizer.py as the solution.");
  cut_history(self);
  return true;
}

void autograd_layer(const Operator& op, DispatchKeySet keys, Value* frame) {
  if (op.is_mutable()) {
    if (!op.has_out()) refuse_inference_mutation(op, frame);
    if (op.has_tag(Tag::InPlaceView) && change_history(op, frame)) return;
  }
  run_operator(op, keys.below(DispatchKey::Autograd), frame);
  // An out form has its say about its arguments first; what it gives back is what it wrote.
  if (op.has_out())
    for (size_t i = 0; i < op.return_count(); ++i) frame[i].each_tensor(refuse_inference);
}

const RegisterLayer kAutograd(DispatchKey::Autograd, autograd_layer);

void call_below(const Operator& op, DispatchKeySet keys, Value* frame) {
  ExcludeKeys guard(DispatchKey::Autograd);
  bool handled = keys.has(DispatchKey::Subclass) && (op.is_view() || op.is_mutable());
  if (!handled) return op.redispatch(keys, frame);
  WrapperEffects effects(op, frame);
  op.redispatch(keys, frame);
  effects.note(frame);
}

// ---- recording ----

/// One recorded call, step by step.
class Recording {
 public:
  Recording(const Operator& op, Value* frame) : op_(op), plan_(plan_for(op)), frame_(frame) {}

  void run(DispatchKeySet keys) {
    bool no_formula = !plan_.is_differentiable() && !plan_.definition->not_differentiable;
    if (op_.library_kernels() && no_formula && (keys - kBackendKeys).empty()) return run_inside(keys);
    if (op_.has_out()) return run_out(keys);
    refuse_lost_gradients();
    if (!any_differentiable()) return redispatch(keys);
    if (op_.is_inplace() && op_.schema().arguments[0].type.list) return run_on_list(keys);
    if (op_.is_inplace()) check_inplace(frame_[0].tensor_ref());
    make_node();
    Tensor self = op_.is_inplace() || (op_.is_view() && frame_[0].is_tensor()) ? frame_[0].tensor() : Tensor();
    redispatch(keys);
    if (op_.is_inplace()) return set_inplace_history(self);
    if (self.defined() && !self.is_fake()) make_views_of(self);
    set_output_history();
    if (operator_node_) operator_node_->save_results(frame_, true);
  }

 private:
  /// A library's kernel without a formula, run with data: the operators that it calls are recorded, as PyTorch does. A
  /// result that has no history from them cannot be differentiated.
  void run_inside(DispatchKeySet keys) {
    make_node();
    op_.redispatch(keys, frame_);
    if (op_.is_mutable()) return;
    keeps_history_ = true;
    set_output_history();
  }

  /// A list is written, and no formula says how the tensors of it depend on each other: none can be differentiated.
  void run_on_list(DispatchKeySet keys) {
    std::vector<Tensor> written = frame_[0].tensor_list().vec();
    // Steps of optimisers write leaves; what is computed of them afterwards has them as they are.
    std::erase_if(written, [](const Tensor& t) { return t.requires_grad() && t.is_leaf(); });
    for (const Tensor& t : written) check_inplace(t);
    std::vector<IntrusivePtr<Node>> nodes;
    for (size_t i = 0; i < written.size(); ++i) {
      node_ = make_counted<NotImplementedNode>(op_);
      node_->add_edge(gradient_edge(written[i]));
      nodes.push_back(node_);
    }
    redispatch(keys);
    for (size_t i = 0; i < written.size(); ++i) rebase_history(written[i], nodes[i]);
  }

  void redispatch(DispatchKeySet keys) { call_below(op_, keys, frame_); }

  /// What a kernel writes to an output has no history, so an operator with a derivative is refused; one without writes
  /// as it does unrecorded. A generated variant writes, and its outputs refuse to be differentiated. A composite has
  /// its say about the arguments first, as its parts would; it writes what comes to have no history.
  void run_out(DispatchKeySet keys) {
    const Operator* functional = op_.functional();
    bool list = op_.schema().arguments.back().type.list;  // which refuses itself, behind its arguments
    if (op_.has_tag(Tag::Generated) && !list && !plan_.makes_blank) refuse_differentiated_outputs();
    if (!functional) return list || makes_like(frame_) ? redispatch(keys) : refuse_out();
    const Definition& d = functional->definition();
    const std::vector<bool>& marks = d.differentiable_outputs;
    if (d.not_differentiable || (!marks.empty() && std::find(marks.begin(), marks.end(), true) == marks.end()))
      return redispatch(keys);
    if (op_.has_tag(Tag::Generated) || (!plan_.is_differentiable() && !functional->is_composite()))
      return run_copies(keys);
    if (functional->is_composite()) {
      if (!has_history(*functional)) return redispatch(keys);
    } else if (!any_gradient_asked()) {
      return redispatch(keys);
    }
    refuse_out();
  }

  /// Whether an output requires gradients, or what the operator gives, which is computed for it.
  bool has_history(const Operator& functional) const {
    bool any = false;
    auto look = [&](const Value& v) { v.each_tensor([&](const TensorImpl* t) { any |= requires_grad(t); }); };
    Frame results(functional, frame_);
    functional.call(results.data());
    for (size_t i = 0; i < functional.return_count(); ++i) look(results[i]);
    for (size_t i = functional.argument_count(); i < op_.argument_count(); ++i) look(frame_[i]);
    return any;
  }

  /// Whether a tensor requires gradients that has a formula, or ought to have one: an index has none, unless it is one
  /// of a list, nor has an output that is an index itself.
  bool any_gradient_asked() const {
    bool any = false;
    auto look = [&](size_t i) { frame_[i].each_tensor([&](const TensorImpl* t) { any |= requires_grad(t); }); };
    const std::vector<bool>& marks = plan_.definition->differentiable_outputs;
    size_t first = op_.argument_count() - op_.return_count();
    for (size_t i = 0; i < plan_.formula.size(); ++i) {
      const SchemaArgument& argument = op_.schema().arguments[i];
      bool written = argument.alias.write && (marks.empty() || i < first || marks[i - first]);
      if (plan_.formula[i] >= 0 || written || argument.type.is_tensor_list()) look(i);
    }
    for (int i : plan_.refused)
      if (!op_.schema().arguments[i].alias.write) look(static_cast<size_t>(i));
    return any;
  }

  /// Whether it is the out variant of what makes a tensor like another one, of which it reads nothing.
  bool makes_like(const Value* frame) const {
    return op_.has_tag(Tag::Generated) && op_.argument_count() > op_.return_count() && frame[0].is_tensor();
  }

  void refuse_differentiated_outputs() const {
    for (size_t i = op_.argument_count() - op_.return_count(); i < op_.argument_count(); ++i)
      if (requires_grad(frame_[i].tensor_ref().impl())) refuse_out();
  }

  void run_copies(DispatchKeySet keys) {
    size_t count = op_.return_count(), first = op_.argument_count() - count;
    std::vector<Tensor> outs;
    for (size_t i = 0; i < count; ++i) outs.push_back(frame_[first + i].tensor());
    refuse_differentiated_outputs();
    std::vector<IntrusivePtr<Node>> nodes;
    for (size_t i = 0; i < count; ++i) {
      node_ = make_counted<NotImplementedNode>(op_);
      add_all_edges();
      nodes.push_back(node_);
    }
    redispatch(keys);
    for (size_t i = 0; i < count; ++i)
      if (is_differentiable(outs[i].dtype())) rebase_history(outs[i], nodes[i]);
  }

  [[noreturn]] void refuse_out() const {
    fail(op_.schema().name,
         "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
         "requires grad.");
  }

  void refuse_lost_gradients() const {
    for (int i : plan_.refused)
      frame_[i].each_tensor([&](const TensorImpl* t) {
        check(!requires_grad(t), "The function '", op_.schema().name,
              "' is not differentiable with respect to argument '", op_.schema().arguments[i].name,
              "'. This input cannot have requires_grad True.");
      });
  }

  /// Whether the result depends on a tensor that requires gradients in a way that has a derivative.
  bool any_differentiable() const {
    // In place, such an operator leaves the history of what it writes as it was, as PyTorch does (logical_and_).
    if (plan_.definition->not_differentiable) return false;
    if (!plan_.is_differentiable()) return true;
    for (size_t i = 0; i < op_.argument_count(); ++i) {
      if (plan_.formula[i] < 0) continue;
      bool any = false;
      frame_[i].each_tensor([&](const TensorImpl* t) { any |= requires_grad(t); });
      if (any) return true;
    }
    return false;
  }

  void make_node() {
    if (!plan_.is_differentiable()) {
      node_ = make_counted<NotImplementedNode>(op_);
      return add_all_edges();
    }
    operator_node_ = make_counted<OperatorNode>(op_, plan_);
    node_ = operator_node_;
    operator_node_->set_needed(add_edges());
    if (op_.is_inplace() && operator_node_->saves_argument(0)) {
      // The formula is about what was there before.
      Frame arguments(op_, frame_);
      arguments[0] = Value(frame_[0].tensor_ref().clone());
      operator_node_->save_arguments(arguments.data());
    } else {
      operator_node_->save_arguments(frame_);
    }
  }

  /// One edge for each tensor of each argument with a formula; which formulas are needed follows.
  uint64_t add_edges() {
    uint64_t needed = 0;
    node_->reserve_edges(plan_.edge_count);
    for (size_t i = 0; i < op_.argument_count(); ++i) {
      int formula = plan_.formula[i];
      if (formula < 0) continue;
      auto add = [&](const Tensor& t) {
        Edge edge = t.defined() ? gradient_edge(t) : Edge();
        if (edge) needed |= uint64_t{1} << formula;
        node_->add_edge(std::move(edge));
      };
      if (!op_.schema().arguments[i].type.list) {
        add(frame_[i].tensor_ref());
        continue;
      }
      TensorList list = frame_[i].is_none() ? TensorList() : frame_[i].tensor_list();
      operator_node_->add_list_length(list.size());
      for (const Tensor& t : list) add(t);
    }
    return needed;
  }

  void add_all_edges() {
    for (size_t i = 0; i < op_.argument_count(); ++i)
      frame_[i].each_tensor(
          [&](TensorImpl* t) { node_->add_edge(gradient_edge(Tensor(IntrusivePtr<TensorImpl>(t)))); });
  }

  void set_inplace_history(const Tensor& self) {
    // The tensor is another view from here on; the contents of its base are as they were.
    if (op_.has_tag(Tag::InPlaceView) && op_.functional()) return set_history(self, node_);
    rebase_history(self, node_);
    if (!operator_node_) return;
    operator_node_->save_results(frame_, true);
    if (self.is_view()) operator_node_->set_rebased(grad_fn(Tensor(self.impl()->view_base())));
  }

  /// Below, a stand-in without data may take the tensor's place: views of it are views of the tensor, whose history is
  /// here.
  void make_views_of(const Tensor& self) {
    IntrusivePtr<TensorImpl> root = self.is_view() ? self.impl()->view_base() : self.pointer();
    frame_[0].each_tensor([&](TensorImpl* t) {
      if (t->view_base() && Tensor(IntrusivePtr<TensorImpl>(t)).is_fake()) t->set_view_base(root, t->view_kind());
    });
  }

  void set_output_history() {
    if (plan_.list_result) {
      for (const Tensor& t : frame_[0].tensor_list()) set_one(t, true);
      return;
    }
    const std::vector<bool>& marks = plan_.definition->differentiable_outputs;
    for (size_t i = 0; i < op_.return_count(); ++i) {
      if (!frame_[i].is_tensor()) node_->add_input({});
      else set_one(frame_[i].tensor_ref(), marks.empty() || marks[i]);
    }
  }

  void set_one(const Tensor& output, bool differentiable) {
    if (!output.defined() || !differentiable || !is_differentiable(output.dtype())) {
      if (output.defined() && differentiable) refuse_told_type(output.dtype());
      node_->add_input({});
      return;
    }
    if (keeps_history_ && requires_grad(output.impl())) return;
    check<NotImplementedError>(!plan_.real_only || !is_complex(output.dtype()), op_.schema().name,
                               " does not support automatic differentiation for outputs with complex dtype.");
    // What the operator made by views of its own is a new tensor all the same.
    if (!op_.is_view()) output.impl()->set_view_base(nullptr);
    set_history(output, node_);
  }

  /// A reduction that is told to give integers loses a derivative that it has; a conversion is meant to.
  void refuse_told_type(DType dtype) const {
    static const Operator& conversion = get_operator("aten::_to_copy");
    check(op_.schema().find("dtype") < 0 || &op_ == &conversion || op_.is_view(),
          "Autograd not support dtype: ", kernel_name(dtype));
  }

  const Operator& op_;
  const Plan& plan_;
  Value* frame_;
  IntrusivePtr<Node> node_;
  IntrusivePtr<OperatorNode> operator_node_;
  bool keeps_history_ = false;
};

/// Inside a derivative an operator comes apart where an argument would lose what its parts have for it: the weights of
/// a loss. (PyTorch's transforms take such operators apart always.) Null where it stays whole.
const BoxedFunction* parts_with_derivative(const Operator& op, const Value* frame) {
  const Definition& definition = op.definition();
  if (!definition.batch || !dispatch_state().include.has(DispatchKey::Level)) return nullptr;
  bool lost = false;
  for (int i : plan_for(op).refused)
    frame[i].each_tensor([&](const TensorImpl* t) { lost |= requires_grad(t) || highest_level(t) > 0; });
  return lost ? ops::parts_of(definition.batch) : nullptr;
}

}  // namespace

void run_operator(const Operator& op, DispatchKeySet keys, Value* frame) {
  Request request = request_of(op, frame);
  if (__builtin_expect(request.tangent || request.grad, 0))
    if (const BoxedFunction* parts = parts_with_derivative(op, frame)) return (*parts)(frame);
  if (__builtin_expect(request.tangent, 0)) return run_with_tangents(op, keys, frame);
  if (request.grad) return Recording(op, frame).run(keys);
  call_below(op, keys, frame);
}

}  // namespace umbra::autograd
