#include "umbra/export/decompose.h"

#include "capture/auto_functionalized.h"
#include "export/guard_text.h"
#include "export/names.h"
#include "export/size_arithmetic.h"
#include "export/used_symbols.h"
#include "sym/layout_watch.h"
#include "sym/rename.h"
#include "umbra/capture/effects.h"
#include "umbra/capture/functionalize.h"
#include "umbra/capture/retrace.h"
#include "umbra/capture/runtime_asserts.h"
#include "umbra/capture/tracer.h"
#include "umbra/dispatch/take_composites.h"
#include "umbra/export/input_check.h"
#include "umbra/generated/functions.h"
#include "umbra/graph/interpreter.h"
#include "umbra/graph/passes.h"
#include "umbra/sym/constraints.h"
#include "umbra/sym/walk.h"

namespace umbra {

namespace {

/// What a decomposition asks of sizes, and which the program did not ask: from here on it is captured for less.
class NewConditions {
 public:
  explicit NewConditions(sym::ShapeEnv& env)
      : env_(env),
        layouts_(env, sym::Composites::Apart),
        suppressed_(env.suppress_guards(false)),
        guards_(env.guards().size()),
        assumptions_(env.assumptions().size()) {}
  ~NewConditions() { env_.suppress_guards(suppressed_); }
  NewConditions(const NewConditions&) = delete;
  NewConditions& operator=(const NewConditions&) = delete;

  std::vector<const sym::Expression*> found() const {
    std::vector<const sym::Expression*> conditions;
    for (size_t i = guards_; i < env_.guards().size(); ++i) conditions.push_back(env_.guards()[i].condition);
    for (size_t i = assumptions_; i < env_.assumptions().size(); ++i)
      conditions.push_back(env_.assumptions()[i].condition);
    return conditions;
  }

 private:
  sym::ShapeEnv& env_;
  sym::LayoutWatch layouts_;
  bool suppressed_;
  size_t guards_, assumptions_;
};

/// One program being run again.
class Decomposer {
 public:
  Decomposer(const ExportedProgram& program, const DecomposeOptions& options)
      : from_(program),
        options_(options),
        program_(with_empty_graph(program)),
        tracer_(make_counted<Tracer>(DispatchKey::Proxy, program_.graph_module)),
        sizes_(*tracer_) {
    for (const auto& object : from_.graph().kept_alive()) program_.graph().keep_alive(object);
    if (program_.shape_env) program_.graph().keep_alive(program_.shape_env);
    tracer_->decompositions = options.table;
    tracer_->decompositions.add("aten::lift_fresh_copy", [](const Tensor& self) { return self.clone(); });
    tracer_->locations = false;
  }

  ExportedProgram run() {
    add_inputs();
    record();
    keep_names();
    size_t recorded = count_sizes(program_.graph());
    if (program_.shape_env)
      insert_runtime_asserts(*program_.graph_module, *program_.shape_env, true, earlier_conditions());
    take_sources_of_copies();
    remove_dead_code();
    program_.dialect = "ATEN";
    call_by_auto_functionalized(program_.graph());
    name_nodes(program_);
    if (program_.shape_env)
      settle_sizes(program_.graph(), *program_.shape_env, symbolic_sizes(program_.graph()), recorded);
    name_outputs();
    settle_ranges();
    return std::move(program_);
  }

 private:
  static ExportedProgram with_empty_graph(ExportedProgram program) {
    program.graph_module = make_counted<fx::GraphModule>(make_counted<fx::Graph>());
    return program;
  }

  void add_inputs() {
    std::vector<fx::Node*> placeholders = from_.graph().placeholders();
    order_ = order_of_inputs(from_.signature.inputs);
    program_.signature.inputs.clear();
    for (size_t i : order_) program_.signature.inputs.push_back(from_.signature.inputs[i]);
    for (const fx::Node* node : placeholders) values_.push_back(node->meta.val);
    for (size_t i = 0; i < order_.size(); ++i) {
      const Value& value = values_[order_[i]];
      // What is known of numbers that were read from an input is known of the program as it was captured: here they are
      // read anew, so that what the program asserts of them stays.
      if (value.is_tensor() && value.tensor_ref().is_fake()) value.tensor_ref().storage()->bump_version();
      tracer_->add_input("arg" + std::to_string(i) + "_1", value);
      if (!mode_ && value.is_tensor()) mode_ = IntrusivePtr<FakeModeImpl>(fake_mode_of(value.tensor_ref()));
    }
    take_names_of_guards();
    if (mode_) return;
    FakeOptions fake{.shape_env = program_.shape_env};
    fake.allow_non_fake_inputs = fake.allow_scalar_outputs = fake.allow_dynamic_output_shapes = true;
    mode_ = make_counted<FakeModeImpl>(std::move(fake));
  }

  /// PyTorch runs the program's module, which checks its inputs first.
  void take_names_of_guards() {
    if (!program_.shape_env) return;
    std::vector<fx::Node*> inputs, all = program_.graph().placeholders();
    for (size_t i = 0; i < order_.size(); ++i) {
      InputKind kind = from_.signature.inputs[order_[i]].kind;
      if (kind == InputKind::UserInput || kind == InputKind::ConstantInput) inputs.push_back(all[i]);
    }
    take_names(InputCheck(from_).calls(), program_.graph(), inputs);
  }

  // ---- the run ----

  void record() {
    ExcludeKeys no_history(DispatchKey::Autograd);
    EnterMode fake(mode_);
    EnterMode recording(tracer_);
    EnterMode functional(make_counted<FunctionalMode>());
    std::optional<NewConditions> conditions;
    if (program_.shape_env) {
      conditions.emplace(*program_.shape_env);
      expected_ = program_.shape_env->runtime_asserts().size();
    }
    std::vector<Value> inputs = wrapped_inputs();
    EffectScope effects([this] { return add_token(); });
    TakeComposites composites([this](const Operator& op, Value* frame) { return take_composite(op, frame); });
    fx::Interpreter interpreter(from_.graph_module);
    interpreter.on_call([this](fx::NodeCall& call) { return run_node(call); });
    interpreter.on_value([this](fx::Node& node, const Value& value) { note_value(node, value); });
    std::vector<Value> results = interpreter.run(inputs);
    add_outputs(inputs, results, effects.token());
    rename_calls();
    if (!conditions) return;
    for (const sym::Expression* condition : conditions->found())
      program_.guards.push_back(guard_text(from_, condition));
  }

  /// What is written, or read by its place in memory, may share memory with another tensor that it was copied from.
  static void note_sharing(const Operator& op, const Value* arguments) {
    static const Operator& by_strides = get_operator("aten::as_strided");
    sym::LayoutWatch* layouts = sym::LayoutWatch::current();
    if (!layouts || !layouts->has_copies()) return;
    for (size_t i = 0; i < op.schema().arguments.size(); ++i) {
      if (!op.schema().arguments[i].alias.write && !(&op == &by_strides && i == 0)) continue;
      mapped(arguments[i], [&](const Tensor& t) {
        if (layouts->knows(t)) layouts->rely_on(t);
        return t;
      });
    }
  }

  /// The token of the first call with effects is the program's first input.
  Tensor add_token() {
    Tensor token = mode_->make(token_spec());
    tracer_->add_input_after(nullptr, "token", Value(token));
    program_.signature.inputs.insert(program_.signature.inputs.begin(), {InputKind::Token, "token", "", true, {}});
    return token;
  }

  /// Inputs that are one tensor stay one.
  std::vector<Value> wrapped_inputs() const {
    std::unordered_map<const TensorImpl*, Tensor> wrappers;
    std::vector<Value> inputs;
    for (size_t i = 0; i < values_.size(); ++i) {
      const Value& value = values_[i];
      if (!value.is_tensor()) {
        inputs.push_back(value);
        continue;
      }
      auto [at, added] = wrappers.try_emplace(value.tensor_ref().impl());
      if (added) at->second = to_functional(value.tensor());
      if (is_trained(from_.signature.inputs[i])) at->second.requires_grad_();
      inputs.push_back(Value(at->second));
    }
    return inputs;
  }

  /// Parameters show that they are trained: composites choose parts that have a gradient by it.
  bool is_trained(const InputSpec& spec) const {
    if (spec.kind != InputKind::Parameter) return false;
    auto found = std::ranges::find(from_.state, spec.target, [](const auto& entry) { return entry.first; });
    return found != from_.state.end() && found->second.requires_grad();
  }

  Value run_node(fx::NodeCall& call) {
    const Operator* op = call.node().target().op();
    if (op == &assertion_) return expect(call);
    if (op) note_sharing(*op, call.arguments());
    if (op) take_names_of_checks(*op, call.arguments());
    return call_with_origin(call, origin_of);
  }

  static Tracer& recording() { return static_cast<Tracer&>(*active_mode(DispatchKey::Proxy)); }

  /// PyTorch's decompositions of these ask first whether each size is negative.
  void take_names_of_checks(const Operator& op, const Value* arguments) const {
    static const Operator &zeros = get_operator("aten::zeros"), &ones = get_operator("aten::ones"),
                          &stack = get_operator("aten::stack");
    if (&op == &stack && options_.table.find(op))
      SizeArithmetic(recording()).stack(arguments[0].tensor_list().vec(), arguments[1].to_int());
    if ((&op != &zeros && &op != &ones) || !options_.table.find(op)) return;
    fx::Graph& graph = recording().graph();
    for (SymInt size : arguments[0].int_list())
      if (size.is_symbolic()) graph.names().create("ge");
  }

  /// PyTorch runs the program's module.
  static IntrusivePtr<fx::Origin> origin_of(const fx::Node& node) {
    auto in_module = make_counted<fx::Origin>(node, "ExportedProgram.module()", "create");
    return make_counted<fx::Origin>(node, "Interpreter_PropagateUnbackedSymInts", "create", std::move(in_module));
  }

  /// A composite comes apart as the table says, or stays whole, also where it is a part of another one.
  bool take_composite(const Operator& op, Value* frame) {
    if (dispatch_state().exclude.has(DispatchKey::Proxy)) return false;  // nobody records it
    if (const DecompositionTable::Function* parts = options_.table.find(op)) {
      try {
        return (*parts)(frame), true;
      } catch (const DecompositionDeclined&) {
        return false;
      }
    }
    if (stays_whole(op)) return record_whole(op, frame), true;
    return program_.shape_env && take_apart(op, frame);
  }

  /// In PyTorch the composite's arithmetic on sizes takes names, before its parts and after them.
  bool take_apart(const Operator& op, Value* frame) {
    if (coming_apart_ == &op) return coming_apart_ = nullptr, false;
    if (&recording() != tracer_.get() || !sizes_.begin(op, frame)) return false;
    coming_apart_ = &op;
    op.call(frame);
    coming_apart_ = nullptr;
    if (fx::Node* made = tracer_->node_of(plain(frame[0]).tensor_ref())) sizes_.end(op, made);
    return true;
  }

  /// What the program asserts is taken to hold. What is not asserted anew in the same words stays in the new graph.
  Value expect(fx::NodeCall& call) {
    SymBool condition = call.arguments()[0].to_scalar().to_sym_bool();
    auto& tracer = static_cast<Tracer&>(*active_mode(DispatchKey::Proxy));
    if (condition.is_symbolic())
      tracer.graph().call(assertion_, {tracer.argument(Value(condition)), call.arguments()[1]})->meta.modules =
          current_modules();
    check(condition.expect_true(), call.arguments()[1].to_string());
    return {};
  }

  /// Composites that write or give back what they are given without their schemas saying so.
  static bool hides_writes_or_aliases(const Operator& op) {
    static const std::unordered_set<std::string> names = {
        "aten::batch_norm",      "aten::_batch_norm_impl_index", "aten::dropout",       "aten::alpha_dropout",
        "aten::feature_dropout", "aten::feature_alpha_dropout",  "aten::atleast_1d",    "aten::atleast_2d",
        "aten::atleast_3d",      "aten::cartesian_prod",         "aten::conj_physical", "aten::unsafe_chunk"};
    return names.contains(op.name());
  }

  bool stays_whole(const Operator& op) {
    if (!options_.keeps || options_.table.find(op) || hides_writes_or_aliases(op)) return false;
    auto shares = [](const auto& part) { return !part.alias.set.empty(); };
    if (std::ranges::any_of(op.schema().arguments, shares) || std::ranges::any_of(op.schema().returns, shares))
      return false;
    auto [known, added] = kept_composites_.try_emplace(&op, false);
    if (added) known->second = options_.keeps(op);
    return known->second;
  }

  /// A composite as one call: it runs on values while nothing is recorded.
  void record_whole(const Operator& op, Value* frame) {
    std::vector<Value> arguments;
    for (size_t i = 0; i < op.argument_count(); ++i) arguments.push_back(plain(frame[i]));
    std::vector<Value> results = arguments;
    results.resize(op.frame_size());
    {
      ExcludeKeys quiet(DispatchKeySet(DispatchKey::Proxy) | DispatchKey::Functionalize);
      op.call(results.data());
    }
    record_node(op, arguments, results);
    bool wrapped = !dispatch_state().exclude.has(DispatchKey::Functionalize);
    for (size_t i = 0; i < op.return_count(); ++i) frame[i] = wrapped ? functional(results[i]) : results[i];
  }

  /// Into the graph that is being recorded: the program's, or that of a function (a branch of a cond).
  static void record_node(const Operator& op, const std::vector<Value>& arguments, const std::vector<Value>& results) {
    auto& tracer = static_cast<Tracer&>(*active_mode(DispatchKey::Proxy));
    Tracer::CallArguments given = tracer.arguments_of(op, arguments.data());
    fx::Node* made = tracer.graph().call(op, std::move(given.positional), std::move(given.keywords));
    size_t count = op.return_count();
    Value result = count == 1
                       ? results[0]
                       : Value(std::vector<Value>(results.begin(), results.begin() + static_cast<ptrdiff_t>(count)));
    made->meta.val = result;
    made->meta.modules = current_modules();
    tracer.track(made, result);
  }

  static Value mapped(const Value& value, const std::function<Tensor(const Tensor&)>& change) {
    if (value.is_tensor()) return value.tensor_ref().defined() ? Value(change(value.tensor())) : value;
    if (value.tag() == Value::Tag::TensorList) {
      std::vector<Tensor> tensors;
      for (const Tensor& t : value.tensor_list()) tensors.push_back(change(t));
      return Value(std::move(tensors));
    }
    if (value.tag() == Value::Tag::List) {
      std::vector<Value> values;
      for (const Value& v : value.list()) values.push_back(mapped(v, change));
      return Value(std::move(values));
    }
    return value;
  }
  static Value plain(const Value& value) {
    return mapped(value, [](const Tensor& t) { return is_functional(t) ? from_functional(t) : t; });
  }
  static Value functional(const Value& value) {
    return mapped(value, [](const Tensor& t) { return to_functional(t); });
  }

  // ---- results ----

  /// What a program writes to an input is copied back to it, which gives no tensor another shape.
  static void refuse_resized(const fx::Node& placeholder, const Tensor& written) {
    SymIntArrayRef before = placeholder.meta.val.tensor_ref().sym_sizes();
    check<NotImplementedError>(before == written.sym_sizes(), "the program changes the shape of its input ",
                               placeholder.name(), " from ", to_string(before), " to ", to_string(written.sym_sizes()),
                               ", which a functional program cannot");
  }

  /// What is written to memory that another input has too is seen there, which a program of values does not show.
  void refuse_shared(size_t written, const std::vector<Value>& inputs,
                     const std::vector<fx::Node*>& placeholders) const {
    auto look = [&](size_t i) -> const Tensor& { return placeholders[i]->meta.val.tensor_ref(); };
    // The program's own tensors say it themselves: what stands for them in a file shares nothing.
    auto memory = [&](size_t i) {
      const InputSpec& spec = from_.signature.inputs[i];
      return spec.target.empty() ? look(i).storage().get() : from_.find(spec.target).storage().get();
    };
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (i == written || !inputs[i].is_tensor() || look(i).is_same(look(written))) continue;
      bool unseen = placeholders[i]->users().empty();
      check<AssertionError>(unseen || memory(i) != memory(written), "the program writes its input ",
                            placeholders[written]->name(), ", whose memory ", placeholders[i]->name(),
                            " shares: a functional program of it would not see the write there. Give the program "
                            "inputs that share no memory");
    }
  }

  void add_outputs(const std::vector<Value>& inputs, const std::vector<Value>& results, const Tensor& token) {
    std::vector<OutputSpec> specs;
    std::vector<Value> values;
    if (token.defined()) {
      specs.push_back({OutputKind::Token, "", "", {}});
      values.push_back(Value(token));
    }
    std::unordered_set<const TensorImpl*> seen;
    std::vector<fx::Node*> placeholders = from_.graph().placeholders();
    for (size_t i : order_) {
      const InputSpec& input = from_.signature.inputs[i];
      if (!inputs[i].is_tensor() || !was_written(inputs[i].tensor_ref())) continue;
      if (!seen.insert(inputs[i].tensor_ref().impl()).second) continue;
      refuse_resized(*placeholders[i], inputs[i].tensor_ref());
      refuse_shared(i, inputs, placeholders);
      check<NotImplementedError>(input.kind != InputKind::TensorConstant, "Constant ", input.target,
                                 " is written by the program, whose constants stay what they are: make it a buffer "
                                 "(register_buffer)");
      bool user = input.kind == InputKind::UserInput;
      specs.push_back({user                              ? OutputKind::UserInputMutation
                       : input.kind == InputKind::Buffer ? OutputKind::BufferMutation
                                                         : OutputKind::ParameterMutation,
                       "",
                       user ? input.name : input.target,
                       {}});
      values.push_back(Value(from_functional(inputs[i].tensor())));
    }
    for (size_t i = 0; i < results.size(); ++i) {
      specs.push_back(from_.signature.outputs[i]);
      bool tensor = results[i].is_tensor() && results[i].tensor_ref().defined();
      values.push_back(tensor ? Value(from_functional_as_shown(results[i].tensor())) : results[i]);
    }
    program_.signature.outputs = std::move(specs);
    tracer_->set_output(values);
  }

  void name_outputs() {
    fx::Arguments results = program_.graph().outputs();
    for (size_t i = 0; i < results.size(); ++i)
      if (fx::Node* node = results[i].node()) program_.signature.outputs[i].name = node->name();
  }

  /// A buffer that becomes a copy of something becomes that thing, where nothing else does: what is a result and what a
  /// tensor becomes is the tensor.
  void take_sources_of_copies() {
    static const Operator& copy = get_operator("aten::copy");
    fx::Arguments results = program_.graph().outputs();
    for (size_t i = 0; i < results.size(); ++i) {
      fx::Node* node = results[i].node();
      if (program_.signature.outputs[i].kind != OutputKind::BufferMutation || !node || !node->calls(copy)) continue;
      fx::Node* source = node->arg(1).node();
      if (!source || !source->meta.val.is_tensor() || !node->meta.val.is_tensor()) continue;
      const Tensor &from = source->meta.val.tensor_ref(), &to = node->meta.val.tensor_ref();
      bool result =
          std::ranges::any_of(program_.graph().outputs(), [&](const fx::Argument& a) { return a.node() == source; });
      if (!result && from.dtype() == to.dtype() && from.sym_sizes() == to.sym_sizes())
        node->replace_all_uses_with(source);
    }
  }

  // ---- numbers that only the run tells ----

  static const sym::Expression* unknown_number(const Value& value) {
    const SymNode* node = value.is_sym_int()                    ? value.to_sym_int().node()
                          : value.tag() == Value::Tag::SymFloat ? value.to_sym_float().node()
                                                                : nullptr;
    auto* e = static_cast<const sym::Expression*>(node);
    return e && e->is(sym::Kind::Symbol) && !e->has_hint() ? e : nullptr;
  }

  /// Which number of the program one of this run stands for.
  void note_numbers(const Value& before, const Value& now) {
    const sym::Expression *old = unknown_number(before), *made = unknown_number(now);
    if (old && made && old != made) numbers_.try_emplace(made, old);
    if (before.is_tensor() && now.is_tensor() && before.tensor_ref().defined() && now.tensor_ref().defined()) {
      SymIntArrayRef sizes = before.tensor_ref().sym_sizes(), other = now.tensor_ref().sym_sizes();
      for (size_t d = 0; d < std::min(sizes.size(), other.size()); ++d) note_numbers(Value(sizes[d]), Value(other[d]));
    }
    if (before.tag() == Value::Tag::TensorList && now.tag() == Value::Tag::TensorList)
      for (size_t i = 0; i < std::min(before.tensor_list().size(), now.tensor_list().size()); ++i)
        note_numbers(Value(before.tensor_list()[i]), Value(now.tensor_list()[i]));
    if (before.tag() == Value::Tag::List && now.tag() == Value::Tag::List)
      for (size_t i = 0; i < std::min(before.list().size(), now.list().size()); ++i)
        note_numbers(before.list()[i], now.list()[i]);
  }

  /// Numbers keep the names that they have in the program.
  void keep_names() {
    if (!program_.shape_env) return;
    std::unordered_set<const sym::Expression*> used = used_symbols(*program_.graph_module);
    std::unordered_set<const sym::Expression*> taken;
    for (const sym::Symbol& symbol : program_.shape_env->symbols()) {
      auto old = numbers_.find(symbol.expression);
      if (old == numbers_.end() || used.contains(old->second) || !taken.insert(old->second).second) continue;
      sym::rename_symbol(*program_.shape_env, symbol.expression, program_.shape_env->symbol(old->second).name);
    }
  }

  /// What the program was found to need of its numbers, of those of this run.
  std::vector<const sym::Expression*> earlier_conditions() const {
    std::unordered_map<const sym::Expression*, const sym::Expression*> now;
    for (const auto& [made, old] : numbers_) now.emplace(old, made);
    std::vector<const sym::Expression*> conditions;
    for (size_t i = 0; i < expected_; ++i) {
      const sym::Expression* condition = program_.shape_env->runtime_asserts()[i].condition;
      conditions.push_back(program_.shape_env->substitute(condition, [&](const sym::Expression* symbol) {
        auto found = now.find(symbol);
        return found == now.end() ? symbol : found->second;
      }));
    }
    return conditions;
  }

  // ---- signatures of calls ----

  void note_value(const fx::Node& node, const Value& value) {
    note_numbers(node.meta.val, value);
    // Arithmetic stands where the program has it; what nobody uses is removed later.
    if (node.target().function() && value.is_symbolic()) tracer_->argument(value);
    for (const ModuleCall& call : from_.module_calls) {
      if (!call.signature) continue;
      for (const auto* list : {&call.signature->inputs, &call.signature->outputs})
        for (const CallArgument& argument : *list)
          if (argument.name == node.name()) noted_.emplace(node.name(), plain(value));
    }
  }

  /// Calls whose signatures are kept go by the nodes there are now.
  void rename_calls() {
    for (ModuleCall& call : program_.module_calls) {
      if (!call.signature) continue;
      for (auto* list : {&call.signature->inputs, &call.signature->outputs})
        for (CallArgument& argument : *list) {
          auto found = noted_.find(argument.name);
          if (found == noted_.end()) continue;
          fx::Argument now = tracer_->argument(found->second);
          if (!now.node()) continue;
          argument.name = now.node()->name();
          kept_.push_back(now);
        }
    }
  }

  // What kept calls give stays, though nothing in the program uses it.
  void remove_dead_code() {
    fx::Arguments results = program_.graph().outputs(), with_kept = results;
    with_kept.insert(with_kept.end(), kept_.begin(), kept_.end());
    program_.graph().output_node()->set_args({fx::Argument::tuple(std::move(with_kept))});
    fx::eliminate_dead_code(program_.graph());
    program_.graph().output_node()->set_args({fx::Argument::tuple(std::move(results))});
    fx::remove_unused_submodules(*program_.graph_module);
  }

  /// Numbers that only the run tells have symbols of this run.
  void settle_ranges() {
    if (!program_.shape_env) return;
    std::unordered_set<const sym::Expression*> used = used_symbols(*program_.graph_module);
    size_t unbacked = 0;  // they come first
    for (const sym::Symbol& symbol : program_.shape_env->symbols()) {
      if (symbol.backed || symbol.type != sym::Type::Int) continue;
      auto at = std::find_if(program_.ranges.begin(), program_.ranges.end(),
                             [&](const RangeConstraint& r) { return r.expression == symbol.name; });
      if (!used.count(symbol.expression)) {
        if (at != program_.ranges.end()) program_.ranges.erase(at);
        continue;
      }
      if (at == program_.ranges.end())
        program_.ranges.insert(program_.ranges.begin() + static_cast<ptrdiff_t>(unbacked),
                               {symbol.name, sym::exported_range(symbol)});
      ++unbacked;
    }
  }

  const Operator& assertion_ = get_operator("aten::_assert_scalar");
  const ExportedProgram& from_;
  const DecomposeOptions& options_;
  ExportedProgram program_;
  IntrusivePtr<FakeModeImpl> mode_;
  IntrusivePtr<Tracer> tracer_;
  SizeArithmetic sizes_;
  const Operator* coming_apart_ = nullptr;
  std::vector<Value> values_;  // what stands for the program's inputs
  std::vector<size_t> order_;  // the inputs, as the new program has them
  size_t expected_ = 0;        // conditions on numbers of the run that the program had
  std::unordered_map<std::string, Value> noted_;
  std::unordered_map<const sym::Expression*, const sym::Expression*>
      numbers_;                                                // of this run, and what they were before
  std::unordered_map<const Operator*, bool> kept_composites_;  // what was asked of the options
  fx::Arguments kept_;
};

}  // namespace

ExportedProgram decompose(const ExportedProgram& program, const DecomposeOptions& options) {
  check_operators(program);
  return Decomposer(program, options).run();
}

}  // namespace umbra
