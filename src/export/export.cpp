#include "umbra/export/export.h"

#include <algorithm>

#include "export/dim_sizes.h"
#include "export/names.h"
#include "export/used_symbols.h"
#include "sym/layout_watch.h"
#include "umbra/autograd/autocast.h"
#include "umbra/autograd/autograd.h"
#include "umbra/autograd/node.h"
#include "umbra/autograd/running.h"
#include "umbra/capture/runtime_asserts.h"
#include "umbra/capture/tracer.h"
#include "umbra/export/regions.h"
#include "umbra/generated/functions.h"
#include "umbra/graph/passes.h"
#include "umbra/sym/constraints.h"
#include "umbra/sym/print.h"
#include "umbra/sym/walk.h"

namespace umbra {

namespace {

/// A cast that was kept for a region would be used outside of the part of the program that makes it.
class WithoutAutocastCache {
 public:
  WithoutAutocastCache() { set_autocast_cache_enabled(false); }
  ~WithoutAutocastCache() { set_autocast_cache_enabled(before_); }

 private:
  bool before_ = is_autocast_cache_enabled();
};

/// One capture in progress: the pieces of `export_program` share its state.
class Exporter {
 public:
  Exporter(const ExportSource& source, const ExportOptions& options, bool splits_composites)
      : source_(source),
        options_(options),
        env_(make_counted<sym::ShapeEnv>(sym::ShapeEnvOptions{.duck_shape = false, .naming = sym::Naming::BySource})),
        sizes_(options, *env_) {
    FakeOptions fake;
    fake.shape_env = env_;
    fake.allow_non_fake_inputs = fake.allow_scalar_outputs = fake.allow_dynamic_output_shapes = true;
    fake.propagate_real_tensors = options.draft != nullptr;
    mode_ = make_counted<FakeModeImpl>(std::move(fake));
    program_.shape_env = env_;
    program_.graph_module = make_counted<fx::GraphModule>(make_counted<fx::Graph>());
    program_.graph().keep_alive(env_);
    program_.argument_names = options.argument_names;
    program_.module_calls = source.modules;
    tracer_ = make_counted<Tracer>(DispatchKey::PreProxy, program_.graph_module);
    tracer_->splits_composites = splits_composites;
    tracer_->on_constant = [this](const Tensor& t) { return lift_constant(t); };
    tracer_->decompositions.add("aten::conj", [](const Tensor& t) { return t.is_complex() ? _conj(t) : t; });
  }

  ExportedProgram run(const Tree& arguments, const Tree& keywords) {
    FlatInputs flat = flatten_inputs(arguments, keywords, options_.argument_names);
    program_.in_spec = flat.spec;
    sizes_.read(flat);
    add_state();
    know_constants();
    add_user_inputs(flat);
    Tree result = run_forward(flat);  // with histories: programs may ask for gradients
    add_assignments();
    add_outputs(result);
    drop_needless_contiguous();
    add_calls();
    forget_histories(program_.graph());
    size_t recorded = count_sizes(program_.graph());
    insert_runtime_asserts(*program_.graph_module, *env_);
    remove_dead_code();
    remove_unused_constants();
    insert_metadata_asserts(program_.graph());
    settle_sizes(program_.graph(), *env_, places_, recorded);
    wrap_grad_regions(*program_.graph_module, is_grad_enabled());
    wrap_autocast_regions(*program_.graph_module);
    name_nodes(program_);
    name_outputs();
    settle_symbols();
    return std::move(program_);
  }

  bool needs_split_composites() const { return tracer_->needs_split_composites; }

 private:
  // ---- inputs ----

  // Until all nodes are there inputs have names that no call takes.
  std::string next_input() { return "arg" + std::to_string(inputs_++) + "_1"; }

  void add_state() {
    for (const auto& [name, tensor] : source_.parameters) {
      add_lifted(identifier("p_", name), tensor, {InputKind::Parameter, "", name, true, {}});
      program_.state.emplace_back(name, tensor);
    }
    for (const NamedBuffer& b : source_.buffers) {
      add_lifted(identifier("b_", b.name), b.tensor, {InputKind::Buffer, "", b.name, b.persistent, {}});
      (b.persistent ? program_.state : program_.constants).emplace_back(b.name, b.tensor);
    }
  }

  // The number that a plain attribute holds is a part of the program, which may go by it.
  void know_constants() {
    for (const auto& [path, attribute] : source_.attributes) {
      if (attribute.is_fake() || !attribute.storage()->has_data() || attribute.numel() != 1) continue;
      held_.push_back(mode_->from_tensor(attribute));
      remember_constant(*mode_, held_.back(), attribute.detach().clone());
    }
  }

  // The program's own tensors are met by the tracer as they are and by the fake mode as stand-ins: both mean the same
  // input. A tensor with two names is known by the last.
  void add_lifted(const std::string& name, const Tensor& tensor, InputSpec spec) {
    own_.push_back(tensor);
    if (tensor.is_view()) own_.emplace_back(tensor.impl()->view_base());
    Tensor fake = mode_->from_tensor(tensor);
    fx::Node* node = tracer_->add_input_after(last_lifted_, next_input(), Value());
    node->meta.val = Value(fake);
    tracer_->alias(tensor, node);
    tracer_->alias(fake, node);
    spec.name = name;
    program_.signature.inputs.insert(program_.signature.inputs.begin() + static_cast<ptrdiff_t>(lifted_++),
                                     std::move(spec));
    last_lifted_ = node;
    held_.push_back(std::move(fake));
  }

  fx::Node* lift_constant(const Tensor& tensor) {
    auto is_tensor = [&](const auto& attribute) { return attribute.second.is_same(tensor); };
    if (!tensor.storage()->has_data()) {
      check(!tensor.is_fake() || std::ranges::any_of(source_.attributes, is_tensor),
            "We found a fake tensor in the exported program constant's list. This typically means our tracing system "
            "encountered an op that we can't trace through.");
      return nullptr;
    }
    std::string name;  // the first of those it has; the program knows it by all
    for (const auto& [path, attribute] : source_.attributes) {
      if (!attribute.is_same(tensor)) continue;
      if (name.empty()) name = path;
      program_.constants.emplace_back(path, tensor);
    }
    if (name.empty()) {
      name = kUnnamedConstant + std::to_string(unnamed_constants_++);
      if (auto modules = current_modules(); modules && !modules->frames().empty()) {  // it belongs to who uses it
        std::string path = modules->frames().back().path;
        path = path.substr(0, path.find('@'));
        if (!path.empty()) name = path + "." + name;
      }
      unnamed_.insert(name);
      program_.constants.emplace_back(name, tensor);
    }
    add_lifted(identifier("c_", name), tensor, {InputKind::TensorConstant, "", name, true, {}});
    return last_lifted_;
  }

  void add_user_inputs(const FlatInputs& flat) {
    for (size_t i = 0; i < flat.values.size(); ++i) {
      const Value& v = flat.values[i];
      Value stand_in = v.is_tensor() ? Value(fake_input(v.tensor_ref(), flat.paths[i])) : v;
      if (v.is_int()) stand_in = Value(sizes_.integer(flat.paths[i], v.to_int()));
      tracer_->add_input(next_input(), stand_in);
      if (v.is_tensor()) add_places(program_.graph().placeholders().back(), sizes_.source_of(flat.paths[i]), places_);
      bool varies = v.is_tensor() || stand_in.is_sym_int();
      InputSpec spec{varies ? InputKind::UserInput : InputKind::ConstantInput, flat.names[i], "", true, {}};
      if (!varies) spec.value = v;
      program_.signature.inputs.push_back(std::move(spec));
      stand_ins_.push_back(std::move(stand_in));
    }
  }

  // One tensor given several times is one stand-in: programs may ask whether their arguments are one.
  Tensor fake_input(const Tensor& given, const std::string& path) {
    auto known = given_.find(given.impl());
    if (known != given_.end()) {
      sizes_.declare_again(known->second, path);
      return known->second;
    }
    held_.push_back(given);
    SymShape sizes;
    bool dynamic = false;
    for (int64_t d = 0; d < given.dim(); ++d) {
      sizes.push_back(sizes_.size(path, given, d));
      dynamic |= sizes.back().is_symbolic();
    }
    Tensor fake = dynamic ? mode_->from_tensor_with_sizes(given, sizes) : mode_->from_tensor(given);
    given_.emplace(given.impl(), fake);
    return fake;
  }

  // ---- the run ----

  // The program's own tensors are not written by the run, which gives them a history all the same: they lose it again.
  struct ForgetAtEnd {
    const std::vector<Tensor>& tensors;
    uint64_t begun = autograd::upcoming_sequence_number();
    ~ForgetAtEnd() {
      for (const Tensor& t : tensors)
        if (!t.is_leaf() && autograd::grad_fn(t)->sequence_number() >= begun) forget(t);
    }
  };

  Tree run_forward(const FlatInputs& flat) {
    ForgetAtEnd histories_of_the_run{own_};
    Tree both = unflatten(stand_ins_, flat.spec);
    sym::DeferGuards deferred(options_.defer_guards);
    if (!options_.draft) return run_source(both);
    sym::Draft draft;
    Tree result = run_source(both);
    *options_.draft = draft.answers();
    return result;
  }

  Tree run_source(const Tree& both) {
    EnterMode fake(mode_);
    EnterMode recording(tracer_);
    sym::LayoutWatch layouts(*env_, sym::Composites::Whole);
    CallBoundary boundary;
    WithoutAutocastCache each_cast_is_made_where_it_stands;
    SetGradEnabled as_it_was(is_grad_enabled());  // a switch in the program is the program's
    Tree result = source_.forward(both.children[0], both.children[1]);
    tracer_->record_grad_mode();
    return result;
  }

  static void forget(const Tensor& t) {
    if (!t.defined() || t.is_leaf()) return;
    t.impl()->set_autograd_meta(nullptr);
    t.impl()->remove_key(DispatchKey::Autograd);
  }
  // Nodes say what values look like; their histories are those of a run that is over.
  static void forget_histories(fx::Graph& graph) {
    for (fx::Node* node : graph.nodes()) {
      const Value& value = node->meta.val;
      if (value.is_tensor()) forget(value.tensor_ref());
      else if (value.tag() == Value::Tag::TensorList)
        for (const Tensor& t : value.tensor_list()) forget(t);
    }
  }

  // Buffers that the program replaced: the graph writes the new value into the old one at its end.
  void add_assignments() {
    if (!source_.assignments) return;
    for (const auto& [buffer, value] : source_.assignments()) {
      fx::Argument target = tracer_->argument(Value(buffer)), written = tracer_->argument(Value(value));
      fx::Node* node = program_.graph().create_node(fx::Op::CallFunction, get_operator("aten::copy_"),
                                                    {target, written}, {}, "copy__default");
      if (target.node()) node->meta.val = target.node()->meta.val;
      if (written.node()) node->meta.source = written.node()->meta.source;
    }
  }

  void add_outputs(const Tree& result) {
    auto [leaves, spec] = flatten(result);
    program_.out_spec = std::move(spec);
    fx::Arguments items;
    for (const Value& v : leaves) {
      fx::Argument a = tracer_->argument(v);
      OutputSpec out;
      if (!a.node()) out.value = v;
      program_.signature.outputs.push_back(std::move(out));
      items.push_back(std::move(a));
    }
    program_.graph().output(fx::Argument::tuple(std::move(items)));
  }

  // contiguous() of a contiguous tensor is recorded where it may copy in another run. Only a write, or a look at places
  // in memory, can tell: without one the program has PyTorch's calls.
  void drop_needless_contiguous() {
    static const Operator &contiguous = get_operator("aten::contiguous"),
                          &by_strides = get_operator("aten::as_strided");
    std::vector<fx::Node*> needless;
    for (fx::Node* node : program_.graph().nodes()) {
      const Operator* op = node->target().op();
      if (op && (op->is_mutable() || op == &by_strides)) return;
      if (op != &contiguous || !node->args()[0].node()) continue;
      const Tensor &from = node->args()[0].node()->meta.val.tensor_ref(), &to = node->meta.val.tensor_ref();
      if (from.storage() == to.storage()) needless.push_back(node);
    }
    for (fx::Node* node : needless) {
      node->replace_all_uses_with(node->args()[0].node());
      program_.graph().erase_node(node);
    }
  }

  // What the module computes stays, though nothing in the program uses it, as in PyTorch: a later pass may want it.
  // Sizes and numbers that were only asked for go, and so do constants, detached tensors and memory that nobody wrote.
  void remove_dead_code() {
    fx::Arguments results = program_.graph().outputs(), with_kept = results;
    with_kept.insert(with_kept.end(), kept_.begin(), kept_.end());
    program_.graph().output_node()->set_args({fx::Argument::tuple(std::move(with_kept))});
    static const Operator &copies = get_operator("aten::lift_fresh_copy"), &detaches = get_operator("aten::detach_");
    auto stays = [](const fx::Node& node) {
      if (node.calls(detaches) && node.arg(0).is_node() && node.arg(0).node()->calls(copies)) return false;
      constexpr std::string_view kGone[] = {"detach", "lift_fresh_copy", "empty", "new_empty"};
      const Value& value = node.meta.val;
      bool computes = value.is_tensor() || value.is_tensor_list() || value.is_list();
      if (const Operator* op = node.target().op())
        computes &= std::ranges::find(kGone, op->schema().name) == std::end(kGone);
      return node.is_impure() || (computes && node.op() == fx::Op::CallFunction);
    };
    fx::eliminate_dead_code(program_.graph(), stays);
    program_.graph().output_node()->set_args({fx::Argument::tuple(std::move(results))});
    merge_repeated_numbers(program_.graph());
  }

  // A constant of which the program only needed to know the number.
  void remove_unused_constants() {
    std::vector<fx::Node*> placeholders = program_.graph().placeholders();
    for (size_t i = placeholders.size(); i-- > 0;) {
      const InputSpec& spec = program_.signature.inputs[i];
      if (spec.kind != InputKind::TensorConstant || !placeholders[i]->users().empty()) continue;
      std::erase_if(program_.constants, [&](const auto& constant) { return constant.first == spec.target; });
      program_.signature.inputs.erase(program_.signature.inputs.begin() + static_cast<ptrdiff_t>(i));
      program_.graph().erase_node(placeholders[i]);
    }
    number_constants(program_, unnamed_);
  }

  void add_calls() {
    if (!source_.calls) return;
    auto describe = [&](const std::string& path, const std::vector<Value>& values) {
      std::vector<CallArgument> out;
      for (const Value& v : values) {
        bool inside = v.is_tensor() && v.tensor_ref().is_fake() && !tracer_->node_of(v.tensor_ref());
        check<NotImplementedError>(!inside, "the signature of '", path,
                                   "' cannot be kept: it is called inside a function of an operator (cond, map, scan, "
                                   "while_loop), and the program has no names for what is given there");
        fx::Argument a = tracer_->argument(v);
        out.push_back(a.node() ? CallArgument{a.node()->name(), {}} : CallArgument{"", v});
        if (a.node()) kept_.push_back(a);
      }
      return out;
    };
    for (RecordedCall& call : source_.calls()) {
      CallSignature signature{describe(call.path, call.inputs), describe(call.path, call.outputs),
                              std::move(call.in_spec), std::move(call.out_spec)};
      auto& calls = program_.module_calls;
      auto known = std::find_if(calls.begin(), calls.end(), [&](const ModuleCall& m) { return m.path == call.path; });
      if (known == calls.end()) known = calls.insert(calls.end(), {call.path});
      known->signature = std::move(signature);
    }
  }

  // The passes give nodes their last names.
  void name_outputs() {
    fx::Arguments results = program_.graph().outputs();
    for (size_t i = 0; i < results.size(); ++i)
      if (fx::Node* node = results[i].node()) program_.signature.outputs[i].name = node->name();
  }

  // ---- symbols ----

  void settle_symbols() {
    sizes_.hinted().refuse_fixed_examples(*env_);
    sym::check_constraints(*env_, {.force_specializations = options_.force_specializations});
    settle_ranges();
    sizes_.hinted().settle(*env_, program_.ranges);
    program_.guards = sizes_.guards();
    env_->suppress_guards(true);  // run_decompositions goes on with them
  }

  /// Numbers that only the run tells; sizes and numbers of inputs as they turned out, in order; then the symbols that
  /// stand in none by themselves.
  std::vector<const sym::Expression*> declared_numbers() const {
    std::vector<const sym::Expression*> numbers;
    for (const sym::Symbol& symbol : env_->symbols())
      if (!symbol.backed) numbers.push_back(symbol.expression);
    auto add = [&](SymInt number) {
      if (number.is_symbolic()) numbers.push_back(env_->simplify(env_->expression(number)));
    };
    for (const Value& input : stand_ins_) {
      if (input.is_sym_int()) add(input.to_sym_int());
      for (int64_t d = 0; input.is_tensor() && d < input.tensor_ref().dim(); ++d)
        add(input.tensor_ref().sym_sizes()[d]);
    }
    for (const sym::Symbol& symbol : env_->symbols()) numbers.push_back(symbol.expression);
    return numbers;
  }

  void settle_ranges() {
    std::unordered_set<const sym::Expression*> used = used_symbols(*program_.graph_module), seen;
    for (const sym::Expression* number : declared_numbers()) {
      if (number->is(sym::Kind::Integer) || !seen.insert(number).second) continue;
      if (!number->is(sym::Kind::Symbol)) {
        sym::Range range = sym::exported_range(*env_, number).intersect({0});  // no input is smaller
        program_.ranges.push_back({sym::to_text(number), range});
        continue;
      }
      const sym::Symbol& symbol = env_->symbol(number);
      if (symbol.type != sym::Type::Int || (symbol.backed && symbol.replacement)) continue;
      if (!symbol.backed && !used.count(symbol.expression)) continue;  // of a function that was only tried
      program_.ranges.push_back({symbol.name, symbol.replacement ? env_->range(env_->simplify(symbol.expression))
                                                                 : sizes_.declared_range(symbol)});
    }
  }

  const ExportSource& source_;
  const ExportOptions& options_;
  IntrusivePtr<sym::ShapeEnv> env_;
  DimSizes sizes_;
  ExportedProgram program_;
  IntrusivePtr<FakeModeImpl> mode_;
  IntrusivePtr<Tracer> tracer_;
  std::vector<Value> stand_ins_;
  fx::Arguments kept_;  // what calls with signatures to keep are given and give
  std::vector<Tensor> held_, own_;
  std::unordered_map<const TensorImpl*, Tensor> given_;  // the stand-ins of what the user gave
  std::vector<SizePlace> places_;                        // sizes of inputs that vary
  fx::Node* last_lifted_ = nullptr;
  size_t inputs_ = 0, lifted_ = 0, unnamed_constants_ = 0;
  std::unordered_set<std::string> unnamed_;  // names of constants that were made up
};

}  // namespace

ExportedProgram export_program(const ExportSource& source, const Tree& arguments, const Tree& keywords,
                               const ExportOptions& options) {
  Exporter whole(source, options, false);
  try {
    return whole.run(arguments, keywords);
  } catch (...) {
    if (!whole.needs_split_composites()) throw;
  }
  return Exporter(source, options, true).run(arguments, keywords);
}

}  // namespace umbra
