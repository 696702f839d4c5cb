#include "umbra/aot/analysis.h"

#include <algorithm>
#include <optional>

#include "aot/outputs.h"
#include "umbra/autograd/autograd.h"
#include "umbra/capture/effects.h"
#include "umbra/capture/higher_order.h"
#include "umbra/capture/lift.h"
#include "umbra/core/sparse.h"
#include "umbra/dispatch/writes.h"

namespace umbra::aot {

std::vector<size_t> CallInfo::differentiable_primals() const {
  std::vector<size_t> out;
  for (size_t i = 0; i < primals.size(); ++i)
    if (primals[i].requires_grad) out.push_back(i);
  return out;
}

bool CallInfo::needs_gradients() const {
  auto requires_grad = [](const OutputInfo& o) { return o.requires_grad; };
  return computes_gradients() || (std::ranges::any_of(outputs, requires_grad) && !differentiable_primals().empty());
}

bool CallInfo::computes_gradients() const {
  bool any = false;
  for (const PrimalInfo& p : primals) any |= p.tracked;
  for (const OutputInfo& o : outputs) any |= o.requires_grad && o.kind == OutputInfo::Kind::Fresh;
  for (const IntermediateInfo& b : intermediates) any |= b.requires_grad;
  return any && !differentiable_primals().empty();
}

std::vector<Tensor> CallInfo::sources(const std::vector<Tensor>& arguments,
                                      const std::vector<Tensor>& all_primals) const {
  std::vector<Tensor> out = arguments;
  out.insert(out.end(), all_primals.begin() + static_cast<ptrdiff_t>(input_count()), all_primals.end());
  return out;
}

Tensor untracked(const Tensor& tensor) {
  Tensor out = alias_tensor(tensor, tensor.sym_sizes(), tensor.sym_strides(), tensor.sym_storage_offset());
  out.impl()->remove_key(DispatchKey::Autograd);
  return out;
}

namespace {

thread_local bool g_asked_for_leaves = false;

/// The history of a stand-in: it makes it a tensor that may be written, as one that was computed. Leaves are told when
/// a call runs. A stand-in that was computed, as a copy of what may not be written, passes gradients on.
class Origin final : public autograd::Node {
 public:
  explicit Origin(bool leaf) : of_leaf(leaf) {}
  const bool of_leaf;
  std::string name() const override { return "Input"; }
  autograd::Gradients apply(autograd::Gradients gradients) override {
    if (!next_edges().empty()) return gradients;
    fail<NotImplementedError>(
        "the function calls backward(), and a gradient reaches an input or a tensor that it closes over: ahead-of-time "
        "autograd does not write gradients; call autograd.grad and return what it gives, or backward() on the result");
  }
};

/// What an argument is like before the function runs.
struct Start {
  Start() = default;
  explicit Start(const Tensor& t)
      : steps(functional_state(t).views.size()),
        history(autograd::grad_fn(t)),
        sizes(t.sym_sizes()),
        strides(t.sym_strides()),
        offset(t.sym_storage_offset()) {}
  /// Nothing is asked of symbols: other expressions are another look.
  bool looks_like(const Tensor& t) const {
    auto same = [](SymInt a, SymInt b) { return a.raw() == b.raw(); };
    return std::ranges::equal(SymIntArrayRef(sizes), t.sym_sizes(), same) &&
           std::ranges::equal(SymIntArrayRef(strides), t.sym_strides(), same) && same(offset, t.sym_storage_offset());
  }

  size_t steps = 0;  // from its base
  IntrusivePtr<autograd::Node> history;
  SymShape sizes, strides;
  SymInt offset = 0;
};

/// One run of the function on stand-ins.
class Analysis {
 public:
  Analysis(ArgumentLayout layout, const AnalysisOptions& options, const std::vector<Value>& inputs)
      : options_(options) {
    info_.layout = std::move(layout);
    info_.inputs = inputs;
    info_.mode = fake_mode();
    info_.tokens = options.tokens;
  }

  CallInfo run(const ValueFunction& function) {
    std::vector<Tensor> inputs = tensors_among(info_.inputs);
    auto lift =
        make_counted<LiftMode>([this](const Tensor& real) { return add(real); }, LiftMode::Outside::NotFunctional);
    std::vector<Tensor> primals = primals_of(info_.layout, inputs);
    for (size_t i = 0; i < primals.size(); ++i) {
      if (primals[i].defined()) lift->set(primals[i], add(primals[i], has_symbols(i)));
      else add_plain(i);
    }
    std::vector<Tensor> arguments;
    std::vector<Start> starts;
    std::vector<Value> results;
    {
      EnterMode fake_scope(info_.mode), functional_scope(make_counted<FunctionalMode>());
      arguments = arguments_of(info_.layout, stand_ins_);
      for (size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i].defined()) lift->set(inputs[i], arguments[i]);
      for (const Tensor& t : arguments) starts.push_back(t.defined() ? Start(t) : Start());
      EnterMode lift_scope(lift);
      std::optional<EffectScope> effects;
      if (options_.tokens) effects.emplace([this] { return info_.mode->make(token_spec()); });
      g_asked_for_leaves = false;
      results = function(values_of(arguments));
      info_.asks_for_leaves = g_asked_for_leaves;
      info_.has_effects = effects && effects->token().defined();
    }
    for (Value& v : results)
      if (v.is_tensor()) v = Value(lift->replace(v.tensor_ref()));
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].defined()) note_views(i, arguments[i], starts[i]);
    for (size_t i = info_.input_count(); i < stand_ins_.size(); ++i)
      check_metadata("a tensor that it closes over", functional_state(stand_ins_[i]).views.empty());
    for (size_t i = 0; i < stand_ins_.size(); ++i)
      if (stand_ins_[i].defined()) note_writes(i);
    describe_outputs(info_, results, info_.sources(arguments, stand_ins_));
    return std::move(info_);
  }

 private:
  IntrusivePtr<FakeModeImpl> fake_mode() const {
    // Symbols are understood where they were made.
    for (const Value& v : info_.inputs)
      if (v.is_tensor() && v.tensor_ref().is_symbolic())
        return IntrusivePtr<FakeModeImpl>(fake_mode_of(v.tensor_ref()));
    FakeOptions options;
    options.allow_non_fake_inputs = true;
    if (options_.dynamic) {
      options.shape_env = make_counted<sym::ShapeEnv>(sym::ShapeEnvOptions{.naming = sym::Naming::BySource});
      options.allow_scalar_outputs = options.allow_dynamic_output_shapes = true;
    }
    return make_counted<FakeModeImpl>(std::move(options));
  }

  size_t input_of(size_t primal) const { return info_.layout.arguments_of[primal][0]; }

  bool has_symbols(size_t primal) const {
    size_t input = input_of(primal);
    return options_.dynamic && input >= options_.fixed_inputs && !info_.layout.arguments[input].is_view;
  }

  /// What the function is given: what stands for tensors, and the other values.
  std::vector<Value> values_of(const std::vector<Tensor>& arguments) const {
    std::vector<Value> values;
    for (size_t i = 0; i < arguments.size(); ++i)
      values.push_back(arguments[i].defined() ? Value(arguments[i])
                                              : info_.primals[info_.layout.arguments[i].primal].plain);
    return values;
  }

  Tensor add(const Tensor& real, bool symbolic = false) {
    Tensor value = untracked(real);
    SymbolicContext context{concat("__meta_utils_unknown_tensor", tensors_++),
                            std::vector<sym::SymbolOptions>(real.dim())};
    require_strided(value, "ahead-of-time autograd");
    Tensor fake = info_.mode->from_tensor(value, symbolic ? &context : nullptr), stand_in = to_functional(fake);
    begin_history(stand_in, real);
    origins_.push_back(autograd::grad_fn(stand_in));
    bases_.push_back(functional_state(stand_in).base);
    stand_ins_.push_back(stand_in);
    TensorSpec spec(fake.sym_sizes(), fake.sym_strides(), fake.dtype(), fake.device());
    info_.primals.push_back({.tensor = real, .stand_in = std::move(spec), .requires_grad = real.requires_grad()});
    return stand_in;
  }

  void add_plain(size_t primal) {
    size_t input = input_of(primal);
    Value value = info_.inputs[input];
    if (has_symbols(primal) && value.is_int())
      value = Value(info_.mode->shape_env()->create_symbol(value.to_int(), concat("sym_", input), {.size = false}));
    origins_.emplace_back();
    bases_.emplace_back();
    stand_ins_.emplace_back();
    info_.primals.push_back({.tensor = Tensor(), .plain = std::move(value)});
  }

  /// An input that became a view of itself.
  void note_views(size_t input, const Tensor& argument, const Start& start) {
    const std::vector<ViewStep>& views = functional_state(argument).views;
    const ArgumentInfo& place = info_.layout.arguments[input];
    if (functional_state(argument).base != bases_[place.primal]) return note_replaced(place, argument);
    if (place.same_as != input || views.size() == start.steps || start.looks_like(argument)) return;
    bool tracked = autograd::grad_fn(argument) != start.history;
    check_metadata(concat("input ", input), functional_state(argument).base->resizes == 0);
    std::vector<ViewStep> steps(views.begin() + static_cast<ptrdiff_t>(start.steps), views.end());
    info_.changes.push_back({input, std::move(steps), tracked});
    if (!place.is_view) info_.primals[place.primal].changed = true;
  }

  /// An input that got another tensor's memory. Only the graph itself can do that, without autograd's knowledge.
  void note_replaced(const ArgumentInfo& place, const Tensor& argument) {
    PrimalInfo& primal = info_.primals[place.primal];
    check<NotImplementedError>(!place.is_view,
                               "the function calls set_ on an input that shares memory with another one: ahead-of-time "
                               "autograd does not support that");
    bool other_writes = bases_[place.primal]->generation > 0 || autograd::grad_fn(argument) != origins_[place.primal];
    check<AssertionError>(options_.keep_writes && !other_writes,
                          "Encountered a set_ on a graph input, but the input has other mutations that we cannot\nkeep "
                          "in the graph. This is not supported today. Current state:\n  keep_input_mutations=",
                          options_.keep_writes ? "True" : "False",
                          "\n  mutates_data=", bases_[place.primal]->generation > 0 ? "True" : "False",
                          "\n  requires_grad=", primal.requires_grad ? "True" : "False");
    primal.replaced = primal.counted = true;
  }

  static void check_metadata(const std::string& what, bool unchanged) {
    check<NotImplementedError>(
        unchanged, "the function changes the sizes or strides of ", what,
        " in place (t_, as_strided_ and the like): ahead-of-time autograd does not support that");
  }

  void note_writes(size_t i) {
    PrimalInfo& primal = info_.primals[i];
    if (primal.replaced) return;
    primal.written = was_written(stand_ins_[i]);
    primal.tracked = primal.written && autograd::grad_fn(stand_ins_[i]) != origins_[i];
    primal.counted = stand_ins_[i].version() > 0;
    if (primal.tracked) check_views(i);
    check(!primal.written || !primal.tensor.keys().has(DispatchKey::Subclass) || primal.tensor.is_contiguous(),
          "Mutations on non-contiguous inputs are currently not allowed on tensor subclasses");
    const Tensor& t = stand_ins_[i];
    primal.after = TensorSpec(t.sym_sizes(), t.sym_strides(), t.dtype(), t.device());
    if (primal.changed) return;  // its memory keeps its place
    SymIntArrayRef before(primal.stand_in.sizes);
    check<NotImplementedError>(!primal.tracked || t.sym_sizes() == before, "tensor ", i, " of size ", to_string(before),
                               " gets size ", to_string(t.sym_sizes()),
                               " and has a gradient: that cannot be captured; make the result a new tensor");
  }

  /// A write gives a history to the views of what is written, and to nothing else that lies in its memory.
  void check_views(size_t primal) const {
    if (primal >= info_.input_count()) return;
    for (size_t i : info_.layout.arguments_of[primal])
      check<NotImplementedError>(!info_.layout.arguments[i].is_view || is_view_of_primal(i, primal),
                                 "the function writes values with gradients to tensor ", i,
                                 ", which shares memory with another one and is no view of it: ahead-of-time autograd "
                                 "does not support that; pass a clone of one of them");
  }

  bool is_view_of_primal(size_t argument, size_t primal) const {
    const Tensor &input = info_.inputs[argument].tensor_ref(), &whole = info_.primals[primal].tensor;
    return input.is_same(whole) || (input.is_view() && input.impl()->view_base().get() == whole.impl());
  }

  const AnalysisOptions& options_;
  CallInfo info_;
  size_t tensors_ = 0;
  std::vector<Tensor> stand_ins_;  // undefined where the primal is no tensor
  std::vector<IntrusivePtr<autograd::Node>> origins_;
  std::vector<IntrusivePtr<FunctionalBase>> bases_;  // that the stand-ins start with
};

bool is_subclass(const Tensor& t) { return t.keys().has(DispatchKey::Subclass); }

/// A view of a user's class has memory of its own to show; what it is a view of tells. `any_size`: the graphs are for
/// other sizes too, in which parts of one tensor that lie side by side now may overlap.
bool share_memory(const Tensor& a, const Tensor& b, bool any_size) {
  auto root = [](const Tensor& t) { return t.is_view() ? t.impl()->view_base().get() : t.impl(); };
  if (is_subclass(a) && is_subclass(b) && root(a) == root(b)) return true;
  return any_size ? a.storage() == b.storage() : may_share_elements(a, b);
}

/// Inputs that share memory with another primal, where one of them is written. A tensor that is closed over cannot be
/// part of that.
std::vector<bool> shared_writes(const CallInfo& info, const std::vector<Tensor>& inputs, bool any_size) {
  std::vector<bool> shared(inputs.size());
  for (size_t i = 0; i < info.primals.size(); ++i)
    for (size_t j = 0; j < info.primals.size(); ++j) {
      const PrimalInfo &written = info.primals[i], &other = info.primals[j];
      if (i == j || !written.written || !other.tensor.defined() ||
          !share_memory(written.tensor, other.tensor, any_size))
        continue;
      check(
          !is_subclass(written.tensor) && !is_subclass(other.tensor),
          "Encountered aliased inputs that are mutated in the graph, but at least one input/output to the graph is a "
          "tensor subclass. This is not supported today. You can try to remove the aliasing yourself as a workaround.");
      check<NotImplementedError>(
          i < info.input_count() && j < info.input_count(), "the function writes tensor ", i,
          ", which shares memory with tensor ", j,
          ", and closes over one of them: ahead-of-time autograd does not support that; make both inputs");
      for (size_t k = 0; k < inputs.size(); ++k)
        shared[k] = shared[k] || (inputs[k].defined() && inputs[k].storage() == written.tensor.storage());
    }
  return shared;
}

const Origin* origin_of(const Tensor& tensor) { return dynamic_cast<const Origin*>(autograd::grad_fn(tensor).get()); }

/// What a function of `cond` and its like is given for an input tells the same of it.
IntrusivePtr<autograd::Node> origin_like(const Tensor& tensor) {
  const Origin* origin = origin_of(tensor);
  return origin ? make_counted<Origin>(origin->of_leaf) : nullptr;
}
[[maybe_unused]] const bool kSeenInFunctions = (set_node_like(origin_like), true);

}  // namespace

bool stands_for_input(const Tensor& tensor) { return origin_of(tensor) != nullptr; }

bool stands_for_leaf(const Tensor& tensor) {
  const Origin* origin = origin_of(tensor);
  if (origin) g_asked_for_leaves = true;
  return origin && origin->of_leaf;
}

bool is_origin(const autograd::Node& node) { return dynamic_cast<const Origin*>(&node) != nullptr; }

void begin_history(const Tensor& stand_in, const Tensor& real) {
  if (!real.requires_grad()) return;
  auto origin = make_counted<Origin>(real.is_leaf());
  if (!stand_in.is_leaf()) origin->add_edge(autograd::gradient_edge(stand_in));
  autograd::set_history(stand_in, origin);
}

Value stand_in_for(const CallInfo& info, const PrimalInfo& primal) {
  if (!primal.tensor.defined()) return primal.plain;
  Tensor value = untracked(primal.tensor);
  bool symbolic = std::any_of(primal.stand_in.sizes.begin(), primal.stand_in.sizes.end(),
                              [](SymInt size) { return size.is_symbolic(); });
  return Value(symbolic && !value.is_symbolic() ? info.mode->from_tensor_with_sizes(value, primal.stand_in.sizes)
                                                : info.mode->from_tensor(value));
}

CallInfo analyse(const ValueFunction& function, const std::vector<Value>& inputs, const AnalysisOptions& options) {
  std::vector<Tensor> tensors = tensors_among(inputs);
  std::vector<bool> apart(inputs.size());
  CallInfo info = Analysis(lay_out_arguments(tensors, apart), options, inputs).run(function);
  std::vector<bool> merged = shared_writes(info, tensors, options.dynamic);
  if (merged == apart) return info;
  return Analysis(lay_out_arguments(tensors, merged), options, inputs).run(function);
}

std::string to_string(const CallInfo& info) {
  std::string out;
  for (size_t i = 0; i < info.primals.size(); ++i) {
    const PrimalInfo& p = info.primals[i];
    out += concat("primal ", i, i < info.input_count() ? " (input)" : " (closed over)",
                  p.requires_grad ? ", requires grad" : "", p.written ? ", written" : "",
                  p.tracked ? " with history" : "", "\n");
  }
  for (size_t i = 0; i < info.outputs.size(); ++i) out += concat("output ", i, ": ", to_string(info.outputs[i]), "\n");
  if (info.has_effects) out += "has effects\n";
  return out;
}

}  // namespace umbra::aot
