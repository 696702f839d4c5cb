#include "umbra/aot/joint.h"

#include <algorithm>
#include <optional>

#include "umbra/autograd/autograd.h"
#include "umbra/capture/effects.h"
#include "umbra/capture/functionalize.h"
#include "umbra/capture/lift.h"
#include "umbra/capture/runtime_asserts.h"
#include "umbra/generated/functions.h"
#include "umbra/graph/passes.h"

namespace umbra::aot {

namespace {

/// The function of primals and tangents that is traced.
class Joint {
 public:
  Joint(const ValueFunction& function, const CallInfo& info, JointGraph& layout)
      : function_(function), info_(info), layout_(layout) {}

  std::vector<Value> operator()(const std::vector<Value>& all) const {
    std::vector<Value> inputs(all.begin() + static_cast<ptrdiff_t>(layout_.tokens), all.end()), forward, results,
        tokens;
    Tensor backward_token;
    std::vector<Tensor> gradients, leaves, primals;
    std::vector<autograd::Edge> wanted;  // where gradients of primals arrive, whatever becomes of these
    {
      EnterMode functional_scope(make_counted<FunctionalMode>());
      for (size_t i = 0; i < info_.primals.size(); ++i) {
        leaves.push_back(inputs[i].is_tensor() ? to_functional(inputs[i].tensor()) : Tensor());
        primals.push_back(start_of(i, leaves[i]));
        wanted.push_back(leaves[i].defined() ? autograd::gradient_edge(leaves[i]) : autograd::Edge());
      }
      {
        std::optional<EffectScope> effects;
        if (info_.has_effects) effects.emplace([&] { return all[0].tensor(); });
        forward = run_forward(primals, inputs);
        if (effects) tokens.push_back(effects->token().defined() ? Value(effects->token()) : all[0]);
      }
      // What the backward writes comes later than what the forward gives.
      if (!layout_.written_by_backward.empty()) results = values_of(forward);
      std::optional<EffectScope> effects;
      if (info_.tokens) effects.emplace([this] { return add_backward_token(); });
      if (layout_.differentiable) gradients = run_backward(wanted, primals, forward, inputs);
      if (effects) backward_token = effects->token();
    }
    for (size_t i : layout_.written_in_graph) write_in_graph(i, from_functional(primals[i]), inputs);
    if (layout_.written_by_backward.empty()) results = values_of(forward);
    give_written_inputs(results, primals, forward, inputs);
    for (const Tensor& t : gradients) results.push_back(t.defined() ? Value(from_functional(t)) : Value());
    for (size_t i : layout_.written_by_backward) results.push_back(Value(from_functional(primals[i])));
    results.insert(results.begin(), tokens.begin(), tokens.end());
    if (backward_token.defined()) results.push_back(Value(backward_token));
    return results;
  }

 private:
  /// That the backward has effects is found when it is traced: its token becomes the last input then.
  Tensor add_backward_token() const {
    Tracer* tracer = active_tracer(DispatchKey::Proxy);
    Tensor token = info_.mode->make(token_spec());
    tracer->add_input_after(tracer->graph().placeholders().back(), "tangents_token", Value(token));
    layout_.backward_tokens = 1;
    return token;
  }

  /// What the function is given for a primal: to a function that asks, what it was when the call was analysed, also
  /// where nobody needs gradients.
  Tensor start_of(size_t i, Tensor leaf) const {
    const PrimalInfo& primal = info_.primals[i];
    Tensor start = leaf;
    if (is_changed(primal)) {  // a leaf must not be, where autograd sees it
      if (primal.requires_grad) leaf.requires_grad_();
      start = primal.tracked ? leaf.clone() : apart_from(leaf);
    }
    if (start.defined()) begin_history(start, primal.tensor);
    return start;
  }

  bool is_changed(const PrimalInfo& primal) const {
    return primal.tracked || (primal.replaced && primal.requires_grad) || (primal.changed && layout_.differentiable);
  }

  /// The same values with the same history, and no view of the leaf, as the caller's tensor is none.
  static Tensor apart_from(const Tensor& leaf) {
    Tensor start = leaf.view(leaf.sym_sizes());
    start.impl()->set_view_base(nullptr);
    return start;
  }

  /// The values of forward outputs. What is written is copied to its place; other results are made of what the graph
  /// gives, and have to lie as they did.
  std::vector<Value> values_of(const std::vector<Value>& forward) const {
    std::vector<Value> values;
    for (size_t k = 0; k < forward.size(); ++k) {
      if (!forward[k].is_tensor()) values.push_back(forward[k]);
      else if (k < layout_.first_result()) values.push_back(Value(from_functional(forward[k].tensor())));
      else values.push_back(Value(from_functional_as_shown(forward[k].tensor())));
    }
    return values;
  }

  void write_in_graph(size_t primal, Tensor contents, const std::vector<Value>& inputs) const {
    const Tensor& target = inputs[primal].tensor_ref();
    if (info_.primals[primal].replaced) {
      target.set_(contents);
      return;
    }
    for (size_t i = 0; i < info_.primals.size(); ++i)
      if (inputs[i].is_tensor() && !info_.primals[i].replaced && inputs[i].tensor_ref().storage() == contents.storage())
        contents = contents.clone();
    target.copy_(contents);
  }

  /// Where an output is an input that the graph writes, it is that input: the result of the copy_.
  void give_written_inputs(std::vector<Value>& results, const std::vector<Tensor>& primals,
                           const std::vector<Value>& forward, const std::vector<Value>& inputs) const {
    for (size_t k = layout_.first_result(); k < layout_.first_result() + layout_.results.size(); ++k)
      for (size_t i : layout_.written_in_graph)
        if (forward[k].is_tensor() && forward[k].tensor_ref().is_same(primals[i])) results[k] = inputs[i];
  }

  std::vector<Value> run_forward(const std::vector<Tensor>& primals, const std::vector<Value>& inputs) const {
    auto lift = make_counted<LiftMode>(nullptr, LiftMode::Outside::NotFunctional);
    for (size_t i = 0; i < primals.size(); ++i)
      if (primals[i].defined()) lift->set(info_.primals[i].tensor, primals[i]);
    std::vector<Tensor> tensors = arguments_of(info_.layout, primals);
    std::vector<Value> arguments, results;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].defined()) lift->set(info_.inputs[i].tensor(), tensors[i]);
      arguments.push_back(tensors[i].defined() ? Value(tensors[i]) : inputs[info_.layout.arguments[i].primal]);
    }
    {
      EnterMode lift_scope(lift);
      results = function_(arguments);
    }
    std::vector<Value> forward;
    for (size_t i : layout_.updated) forward.push_back(Value(primals[i]));
    for (size_t i : layout_.results) {
      const Value& result = results.at(i);
      forward.push_back(result.is_tensor() ? Value(lift->replace(result.tensor())) : result);
    }
    for (size_t change : layout_.changed) forward.push_back(arguments[info_.changes[change].argument]);
    for (const IntermediateInfo& b : info_.intermediates)
      forward.push_back(Value(Tensor(results.at(b.output).tensor_ref().impl()->view_base())));
    return forward;
  }

  /// A gradient has the sizes of what it is the gradient of. Those that only the run will tell have other symbols in
  /// this run than they had in the one that found out about outputs.
  static void equate_sizes(const Tensor& tangent, const Tensor& output) {
    FakeModeImpl* mode = fake_mode_of(from_functional(tangent));
    if (!mode || !mode->shape_env()) return;
    sym::ShapeEnv& env = *mode->shape_env();
    for (int64_t d = 0; d < output.dim(); ++d) {
      SymInt a = tangent.sym_sizes()[d], b = output.sym_sizes()[d];
      if (a.raw() != b.raw()) equate(env, env.expression(a), env.expression(b));
    }
  }

  /// Both runs met their unknown numbers in one order. Where the sizes are the same expressions of them, each is the
  /// other run's; else all that is known is that the sizes are equal.
  static void equate(sym::ShapeEnv& env, const sym::Expression* before, const sym::Expression* now) {
    std::vector<const sym::Expression*> old = unknown_symbols(before), fresh = unknown_symbols(now);
    auto fresh_of = [&](const sym::Expression* symbol) {
      auto found = std::ranges::find(old, symbol);
      return found == old.end() ? symbol : fresh[static_cast<size_t>(found - old.begin())];
    };
    auto assume_equal = [&](const sym::Expression* a, const sym::Expression* b) {
      env.assume(env.table().relation(sym::Kind::Eq, a, b));
    };
    if (old.size() != fresh.size() || env.substitute(before, fresh_of) != now) return assume_equal(before, now);
    for (size_t i = 0; i < old.size(); ++i)
      if (old[i] != fresh[i]) assume_equal(old[i], fresh[i]);
  }

  static std::vector<const sym::Expression*> unknown_symbols(const sym::Expression* size) {
    std::vector<const sym::Expression*> symbols = sym::free_symbols(size);
    std::erase_if(symbols, [](const sym::Expression* symbol) { return !symbol->unbacked(); });
    std::ranges::sort(symbols, {}, &sym::Expression::symbol_index);
    return symbols;
  }

  /// One gradient for each primal, undefined where none is needed.
  std::vector<Tensor> run_backward(const std::vector<autograd::Edge>& leaves, const std::vector<Tensor>& primals,
                                   const std::vector<Value>& forward, const std::vector<Value>& inputs) const {
    std::vector<Tensor> tangents;
    std::vector<autograd::Edge> outputs, wanted;
    for (size_t k = 0; k < layout_.tangents; ++k) {
      Tensor output = forward[layout_.tangent_outputs[k]].tensor();
      outputs.push_back(autograd::gradient_edge(output));
      check(static_cast<bool>(outputs.back()),
            "a result that needed gradients in one run of the function needs none in another");
      tangents.push_back(to_functional(inputs[info_.primals.size() + k].tensor()));
      equate_sizes(tangents.back(), output);
    }
    size_t position = info_.primals.size() + layout_.tangents;
    for (size_t i : layout_.written_by_backward) set_contents(primals[i], inputs[position++].tensor());
    std::vector<uint64_t> before;
    std::vector<size_t> steps;
    for (const Tensor& t : primals) {
      before.push_back(t.defined() ? functional_state(t).base->generation : 0);
      steps.push_back(t.defined() ? functional_state(t).views.size() : 0);
    }
    std::vector<size_t> differentiable = info_.differentiable_primals();
    for (size_t i : differentiable) wanted.push_back(leaves[i]);
    std::vector<Tensor> gradients(leaves.size());
    if (outputs.empty()) return gradients;
    std::vector<Tensor> found = autograd::grad_of_edges(outputs, tangents, wanted, {});
    for (size_t k = 0; k < differentiable.size(); ++k) gradients[differentiable[k]] = found[k];
    for (size_t i = 0; i < primals.size(); ++i)
      check<AssertionError>(!primals[i].defined() || functional_state(primals[i]).views.size() == steps[i],
                            "Found a graph input that had its metadata mutated in the backward. This is not supported");
    layout_.written_by_backward.clear();
    for (size_t i = 0; i < primals.size(); ++i)
      if (primals[i].defined() && functional_state(primals[i]).base->generation != before[i])
        layout_.written_by_backward.push_back(i);
    return gradients;
  }

  const ValueFunction& function_;
  const CallInfo& info_;
  JointGraph& layout_;
};

bool same_look(const TensorSpec& a, const TensorSpec& b) {
  return SymIntArrayRef(a.sizes) == SymIntArrayRef(b.sizes) && SymIntArrayRef(a.strides) == SymIntArrayRef(b.strides);
}

JointGraph plan(const CallInfo& info, bool keep_writes) {
  JointGraph layout;
  layout.primals = info.primals.size();
  layout.tokens = info.has_effects;
  for (size_t i = 0; i < info.primals.size(); ++i) {
    const PrimalInfo& p = info.primals[i];
    bool in_graph = keep_writes && p.written && !p.tracked && !p.changed && same_look(p.after, p.stand_in);
    if (in_graph || p.replaced) layout.written_in_graph.push_back(i);
    else if (p.written || p.changed) layout.updated.push_back(i);
  }
  layout.intermediates = info.intermediates.size();
  for (size_t i = 0; i < info.outputs.size(); ++i)
    if (!info.outputs[i].value.is_object()) layout.results.push_back(i);
  for (size_t k = 0; k < info.changes.size(); ++k)
    if (info.layout.arguments[info.changes[k].argument].is_view) layout.changed.push_back(k);
  layout.differentiable = info.needs_gradients();
  if (!layout.differentiable) return layout;
  size_t position = 0;
  auto add = [&](bool differentiable, const TensorSpec& spec) {
    if (differentiable) {
      layout.tangent_outputs.push_back(position);
      layout.tangent_specs.push_back(tangent_of(spec));
    }
    ++position;
  };
  for (size_t i : layout.updated) add(info.primals[i].tracked, info.primals[i].after);
  for (size_t i : layout.results)
    add(info.outputs[i].kind == OutputInfo::Kind::Fresh && info.outputs[i].requires_grad, info.outputs[i].spec);
  position += layout.changed.size();
  for (const IntermediateInfo& b : info.intermediates) add(b.requires_grad, b.spec);
  layout.tangents = layout.tangent_outputs.size();
  return layout;
}

IntrusivePtr<fx::GraphModule> trace(const ValueFunction& function, const CallInfo& info, const JointOptions& options,
                                    JointGraph& joint) {
  CaptureOptions capture;
  capture.mode = TracingMode::Fake;
  capture.fake_mode = info.mode;
  capture.decompositions = options.decompositions;
  std::vector<Value> stand_ins;
  auto add = [&](Value value) {
    size_t number = stand_ins.size();
    stand_ins.push_back(std::move(value));
    capture.names.push_back(joint.differentiable ? concat("primals_", number + 1) : concat("arg", number, "_1"));
  };
  if (joint.tokens > 0) add(Value(info.mode->make(token_spec())));
  for (const PrimalInfo& p : info.primals) add(stand_in_for(info, p));
  size_t first_tangent = stand_ins.size();
  for (const TensorSpec& spec : joint.tangent_specs) {
    stand_ins.push_back(Value(info.mode->make(spec)));
    capture.names.push_back(concat("tangents_", stand_ins.size() - first_tangent));
  }
  for (size_t i : joint.written_by_backward) {
    stand_ins.push_back(Value(info.mode->make(info.primals[i].after)));
    capture.names.push_back(concat("later_", i + 1));
  }
  capture.later_inputs = stand_ins.size() - first_tangent;
  return make_fx(ValueFunction(Joint(function, info, joint)), stand_ins, capture);
}

/// A tensor without data that the function neither was given nor computed is no constant: it was made by a run of the
/// function that is not the one recorded.
void refuse_lost_tensors(const fx::GraphModule& module, const FakeModeImpl* mode) {
  for (const fx::Attribute& attribute : module.attributes())
    if (attribute.value.is_tensor())
      check<NotImplementedError>(
          fake_mode_of(attribute.value.tensor_ref()) != mode,
          "the function uses a tensor that it computed in another run while it was captured (by "
          "a hook, or by something that it keeps): ahead-of-time autograd does not support that");
}

/// A write that the graph carries out at its end comes from the line that wrote.
void name_writes(fx::Graph& graph) {
  for (fx::Node* node : graph.nodes())
    if (node->target().op() && node->target().op()->is_mutable() && node->args().size() > 1 &&
        node->args()[1].is_node())
      node->meta.source = node->args()[1].node()->meta.source;
}

}  // namespace

TensorSpec tangent_of(const TensorSpec& output) {
  for (size_t d = 0; d < output.sizes.size(); ++d) {
    bool repeats = !output.strides[d].is_symbolic() && output.strides[d].value() == 0;
    if (repeats && (output.sizes[d].is_symbolic() || output.sizes[d].value() != 1))
      return TensorSpec(output.sizes, output.dtype, output.device);
  }
  return output;
}

JointGraph trace_joint(const ValueFunction& function, const CallInfo& info, const JointOptions& options) {
  JointGraph joint = plan(info, options.keep_writes);
  joint.module = trace(function, info, options, joint);
  // Only the backward itself tells what it writes; then the forward leaves all writes to the call.
  if (!joint.written_by_backward.empty()) {
    std::vector<size_t> by_backward = std::move(joint.written_by_backward);
    joint = plan(info, false);
    joint.written_by_backward = std::move(by_backward);
    joint.module = trace(function, info, options, joint);
  }
  refuse_lost_tensors(*joint.module, info.mode.get());
  name_writes(joint.module->graph());
  if (info.mode->shape_env()) insert_runtime_asserts(*joint.module, *info.mode->shape_env(), false);
  fx::eliminate_dead_code(*joint.module);
  joint.module->set_class_name("<lambda>");  // as the text of PyTorch's says
  return joint;
}

}  // namespace umbra::aot
