#include "umbra/autograd/function.h"

#include <cxxabi.h>

#include <cstdlib>

#include "autograd/forward_state.h"
#include "autograd/meta.h"
#include "autograd/stand_in.h"
#include "autograd/user_code.h"
#include "umbra/autograd/grad_mode.h"
#include "umbra/core/warning.h"
#include "umbra/dispatch/dispatcher.h"
#include "umbra/generated/functions.h"

namespace umbra::autograd {

std::string detail::short_type_name(const std::type_info& type) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  std::string name = status == 0 ? text.get() : type.name();
  size_t scope = name.rfind("::");
  return scope == std::string::npos ? name : name.substr(scope + 2);
}

void detail::collect(std::vector<Tensor>& out, const Tensor& tensor) { out.push_back(tensor); }
void detail::collect(std::vector<Tensor>& out, const std::vector<Tensor>& list) { collect(out, TensorList(list)); }
void detail::collect(std::vector<Tensor>& out, TensorList list) { out.insert(out.end(), list.begin(), list.end()); }

std::vector<Tensor> FunctionContext::saved_tensors() const {
  if (saved_.empty()) return to_save_;
  std::vector<Tensor> tensors;
  IntrusivePtr<Node> node(node_);
  EnableGrad
      recording;  // results come back with their history in any mode: a backward of the user's may record with them
  for (const SavedTensor& s : saved_) tensors.push_back(s.unpack(node));
  return tensors;
}

FunctionNode::FunctionNode(std::string name, Backward backward, Jvp jvp)
    : name_(std::move(name)), backward_(std::move(backward)), jvp_(std::move(jvp)) {
  context_.node_ = this;
}

Gradients FunctionNode::apply(Gradients incoming) {
  if (context_.materialize_)
    for (size_t i = 0; i < incoming.size(); ++i) {
      const InputMetadata& m = inputs()[i];
      if (!incoming[i].defined() && m.defined) incoming[i] = zeros(m.sizes, {.dtype = m.dtype, .device = m.device});
    }
  size_t expected = next_edges().size();
  Gradients given = backward_(context_, std::move(incoming));
  size_t count = given.size();
  while (given.size() > expected && !given.back().defined()) given.pop_back();  // more than asked for, but nothing
  check(given.size() == expected, "function ", name_, " returned an incorrect number of gradients (expected ", expected,
        ", got ", count, ")");
  return given;
}

void FunctionNode::release_saved() {
  for (SavedTensor& s : context_.saved_) s.release();
}

void FunctionNode::release_resources() {
  context_ = FunctionContext();
  backward_ = nullptr;
  jvp_ = nullptr;
  Node::release_resources();
}

namespace {

bool contains(TensorList tensors, const Tensor& t) {
  return std::any_of(tensors.begin(), tensors.end(), [&](const Tensor& other) { return other.is_same(t); });
}

StandIn g_stand_in = nullptr;
WantedCheck g_wanted_check = nullptr;
constinit thread_local bool g_hides_grad_mode = false;

/// While the `forward` of a custom function runs.
struct ForwardScope {
  NoGrad no_grad;
  ShowLevels hidden{0};
  bool before;
  explicit ForwardScope(bool enabled) : before(std::exchange(g_hides_grad_mode, g_hides_grad_mode || enabled)) {}
  ~ForwardScope() { g_hides_grad_mode = before; }
};

}  // namespace

void set_stand_in(StandIn stand_in) { g_stand_in = stand_in; }

void set_wanted_check(WantedCheck check) { g_wanted_check = check; }

void see_wanted(std::vector<Tensor>& tensors, const std::vector<Edge>& roots) {
  see_as_captured(tensors);
  for (const Tensor& t : tensors)
    if (g_wanted_check && t.defined()) g_wanted_check(t, roots);
}

void see_as_captured(std::vector<Tensor>& tensors) {
  for (Tensor& t : tensors)
    if (g_stand_in && t.defined()) t = g_stand_in(t);
}

bool recorded_grad_mode() { return g_hides_grad_mode || is_grad_enabled(); }

/// One call of a custom function, step by step.
class FunctionCall {
 public:
  FunctionCall(const IntrusivePtr<FunctionNode>& node, TensorList inputs)
      : node_(node), context_(node->context()), inputs_(inputs.vec()) {
    see_as_captured(inputs_);
  }

  std::vector<Tensor> run(const std::function<std::vector<Tensor>(FunctionContext&)>& forward) {
    connect();
    std::vector<Tensor> outputs;
    {
      ForwardScope scope(is_grad_enabled());
      outputs = forward(context_);
    }
    for (auto* given : {&outputs, &context_.dirty_, &context_.non_differentiable_, &context_.to_save_})
      see_as_captured(*given);
    for (const Tensor& t : context_.dirty_)
      check(contains(outputs, t),
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
            "modified inplace must all be outputs of the Function.");
    std::vector<Tensor> results;
    outputs_ = outputs.size();
    for (const Tensor& output : outputs) results.push_back(output.defined() ? wrap(output) : none());
    if (records_) {
      for (const Tensor& t : context_.to_save_)
        context_.saved_.emplace_back(t, contains(outputs, t) || contains(results, t));
      context_.to_save_.clear();
    }
    set_tangents(results);
    if (records_) context_.dirty_.clear(), context_.non_differentiable_.clear();
    return results;
  }

 private:
  void connect() {
    for (const Tensor& t : inputs_) {
      bool needs = t.defined() && is_grad_enabled() && t.requires_grad();
      context_.needs_.push_back(needs);
      node_->add_edge(needs ? gradient_edge(t) : Edge());
      records_ |= needs;
    }
  }

  Tensor none() {
    node_->add_input({});
    return {};
  }

  Tensor wrap(const Tensor& output) {
    bool is_input = contains(inputs_, output), dirty = contains(context_.dirty_, output);
    bool differentiable = is_differentiable(output.dtype()) && !contains(context_.non_differentiable_, output);
    if (dirty) return wrap_dirty(output, is_input, differentiable);
    Tensor result = output;
    if (is_input) {
      // Handing an input back would give it a second history.
      NoGrad no_grad;
      ShowLevels hidden(0);
      result = differentiable ? alias(output) : output.detach();
    }
    bool view = is_view_of_input(result);
    if (view) result.impl()->set_view_base(result.impl()->view_base(), ViewKind::CustomFunction);
    if (!records_ || !differentiable) {
      // What has metadata backward is given zeros for.
      node_->add_input(differentiable || context_.materialize_non_diff_ ? InputMetadata(result) : InputMetadata());
      return result;
    }
    if (!view) result.impl()->set_view_base(nullptr);
    set_history(result, node_);
    return result;
  }

  Tensor wrap_dirty(const Tensor& output, bool is_input, bool differentiable) {
    if (!is_input)
      warn(
          "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should "
          "be passed to ctx.mark_dirty().");
    if (is_input && !output.impl()->is_inference()) output.impl()->bump_version();  // however it was written
    if (!records_) return output;
    check(!output.requires_grad() || !output.is_leaf(),
          "a leaf Variable that requires grad has been used in an in-place operation.");
    check_inplace(output);
    check(
        outputs_ == 1 || !output.impl()->view_base(),
        "your Function modifies inplace an input that is a view of another Tensor and returns more than one Tensor, "
        "which is not supported: give it a copy of the view (.clone()), or return the Tensor that was written alone.");
    if (differentiable) rebase_history(output, node_);
    else node_->add_input(InputMetadata(output)), cut_history(output);
    return output;
  }

  bool is_view_of_input(const Tensor& t) const {
    const IntrusivePtr<TensorImpl>& base = t.impl()->view_base();
    return base && std::any_of(inputs_.begin(), inputs_.end(), [&](const Tensor& input) {
             return input.defined() && (input.pointer() == base || input.impl()->view_base() == base);
           });
  }

  void set_tangents(const std::vector<Tensor>& results) {
    int level = highest_level(inputs_);
    if (level == 0) return;
    if (!node_->jvp())
      fail<NotImplementedError>(
          "You must implement the jvp function for custom autograd.Function to use it with forward mode AD.");
    std::vector<Tensor> tangents;
    std::vector<uint32_t> versions;
    for (const Tensor& t : inputs_) {
      const Tensor* tangent = t.defined() ? tangent_at(t.impl(), level) : nullptr;
      bool zero = !tangent && context_.materialize_ && t.defined() && is_differentiable(t.dtype());
      tangents.push_back(tangent ? *tangent : zero ? zeros_like(t.detach()) : Tensor());
      versions.push_back(tangent ? tangent->version() : 0);
    }
    ShowLevels lower(level - 1);
    std::vector<Tensor> found = node_->jvp()(context_, tangents);
    check(found.size() == results.size(), "Function's jvp returned an invalid number of forward gradients (expected ",
          results.size(), " but got ", found.size(), ")");
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].defined()) continue;
      bool differentiable =
          is_differentiable(results[i].dtype()) && !contains(context_.non_differentiable_, results[i]);
      check(differentiable || !found[i].defined(), "Function's jvp returned a gradient at position ", i,
            ", but  the corresponding forward output is not a differentiable Tensor.You should return None at that "
            "position instead.");
      if (contains(context_.dirty_, results[i])) check_written_tangent(results[i], found[i], tangents, versions);
      else check_viewed_tangent(results[i], found[i], tangents);
      if (found[i].defined()) set_tangent(results[i], found[i], level);
    }
  }

  // What is written in place has a tangent that is written in place.
  void check_written_tangent(const Tensor& result, const Tensor& found, const std::vector<Tensor>& tangents,
                             const std::vector<uint32_t>& versions) const {
    for (size_t k = 0; k < inputs_.size(); ++k) {
      if (!inputs_[k].is_same(result) || !tangents[k].defined()) continue;
      check(found.defined() && tangents[k].version() != versions[k],
            "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is "
            "modifying an input inplace, then the jvp function must modify the corresponding gradient inplace.");
      check(found.is_same(tangents[k]),
            "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is modifying "
            "an input inplace, then the jvp function must modify the gradient inplace and return it as-is.");
    }
  }

  // A view of an input, or the input itself, has a tangent that is a view of the input's.
  void check_viewed_tangent(const Tensor& result, const Tensor& found, const std::vector<Tensor>& tangents) const {
    const IntrusivePtr<TensorImpl>& base = result.impl()->view_base();
    for (size_t k = 0; base && k < inputs_.size(); ++k) {
      const Tensor& input = inputs_[k];
      bool is_base = input.defined() && (input.pointer() == base || input.impl()->view_base() == base);
      if (!is_base || !tangents[k].defined()) continue;
      const TensorImpl* of = found.defined() ? found.impl()->view_base().get() : nullptr;
      check(of != nullptr,
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view.");
      const TensorImpl* given = tangents[k].impl()->view_base().get();
      check(given ? of == given : of == tangents[k].impl(),
            "A custom Function is returning a view but the jvp is not returning a view of the ",
            given ? "same base as the given grad input." : "given grad input.");
      return;
    }
  }

  IntrusivePtr<FunctionNode> node_;
  FunctionContext& context_;
  std::vector<Tensor> inputs_;
  bool records_ = false;
  size_t outputs_ = 0;  // how many the function gave
};

std::vector<Tensor> apply_function(const IntrusivePtr<FunctionNode>& node, TensorList inputs,
                                   const std::function<std::vector<Tensor>(FunctionContext&)>& forward,
                                   bool knows_levels) {
  check<NotImplementedError>(knows_levels || !dispatch_state().include.has(DispatchKey::Level), node->name(),
                             ": a function with a gradient of its own cannot be used inside a transform (grad, vjp, "
                             "jvp, vmap) yet; from Python, an autograd.Function with setup_context can");
  note_user_code();
  FunctionCall call(node, inputs);
  return call.run(forward);
}

}  // namespace umbra::autograd
