#include "umbra/export/export.h"

#include <algorithm>

#include "export/flat_inputs.h"
#include "export/hinted_ranges.h"
#include "export/names.h"
#include "export/used_symbols.h"
#include "sym/layout_watch.h"
#include "sym/source_hash.h"
#include "umbra/autograd/autocast.h"
#include "umbra/autograd/autograd.h"
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

sym::SymbolOptions symbol_options(const Dim* dim) {
  sym::SymbolOptions options;
  options.policy = sym::Policy::Static;
  if (!dim || dim->hint() == Dim::Hint::Static) return options;
  options.policy = sym::Policy::Dynamic;
  if (dim->hint() == Dim::Hint::Named) {
    options.dim = dim->name();
    options.range = dim->range();
  }
  options.marked_dynamic = dim->hint() == Dim::Hint::Dynamic;
  return options;
}

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
      : source_(source), options_(options) {
    FakeOptions fake;
    fake.shape_env =
        make_counted<sym::ShapeEnv>(sym::ShapeEnvOptions{.duck_shape = false, .naming = sym::Naming::BySource});
    fake.allow_non_fake_inputs = fake.allow_scalar_outputs = fake.allow_dynamic_output_shapes = true;
    fake.propagate_real_tensors = options.draft != nullptr;
    env_ = fake.shape_env;
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
    check_dynamic_shapes(flat);
    find_own_sources(flat);
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

  const Dim* find_dim(const std::string& path, int64_t d, int64_t rank) const {
    auto shapes = options_.dynamic_shapes.find(path);
    if (shapes == options_.dynamic_shapes.end()) return nullptr;
    for (const auto& [position, dim] : shapes->second)
      if ((position < 0 ? position + rank : position) == d) return &dim;
    return nullptr;
  }

  void check_dynamic_shapes(const FlatInputs& flat) const {
    for (const auto& [path, dims] : options_.dynamic_shapes) {
      auto found = std::find(flat.paths.begin(), flat.paths.end(), path);
      check<UserError>(found != flat.paths.end(), "dynamic_shapes names '", path,
                       "', which is no tensor among the inputs");
      const Value& v = flat.values[static_cast<size_t>(found - flat.paths.begin())];
      if (!v.is_tensor()) {
        check_dynamic_integer(path, v, dims);
        continue;
      }
      for (const auto& [position, dim] : dims) wrap_dim(position, v.tensor_ref().dim());
    }
  }

  static void check_dynamic_integer(const std::string& path, const Value& v, const std::map<int64_t, Dim>& dims) {
    check<UserError>(v.is_int(), "dynamic_shapes names '", path, "', which is neither a tensor nor an integer");
    for (const auto& [position, dim] : dims)
      check<ValueError>(dim.hint() != Dim::Hint::Named,
                        "Unable to specify input integers as dynamic through named Dims. Please use Dim.AUTO/DYNAMIC "
                        "instead.");
  }

  // The input of a path, as guards name it: "parts['b'][0]" is L['parts']['b'][0].
  std::string source_of(std::string path) const {
    auto other = options_.argument_sources.find(path.substr(0, path.find_first_of("[.")));
    if (other != options_.argument_sources.end()) path = other->second + path.substr(other->first.size());
    size_t end = path.find_first_of("[.");
    return "L['" + path.substr(0, end) + "']" + (end == std::string::npos ? "" : path.substr(end));
  }

  std::string size_source(const std::string& path, int64_t d) const {
    return source_of(path) + ".size()[" + std::to_string(d) + "]";
  }

  // Of the sizes that are a Dim itself the one whose symbol's name comes first gives the Dim's symbol its name.
  void find_own_sources(const FlatInputs& flat) {
    auto name = [](const std::string& source) { return std::to_string(sym::source_number(source)); };
    for (size_t i = 0; i < flat.values.size(); ++i) {
      if (!flat.values[i].is_tensor()) continue;
      int64_t rank = flat.values[i].tensor_ref().dim();
      for (int64_t d = 0; d < rank; ++d) {
        const Dim* dim = find_dim(flat.paths[i], d, rank);
        if (!dim || dim->hint() != Dim::Hint::Named || dim->is_derived()) continue;
        std::string source = size_source(flat.paths[i], d);
        auto [at, added] = own_sources_.emplace(dim->name(), source);
        if (!added && name(source) < name(at->second)) at->second = source;
      }
    }
  }

  // The size that a Dim stands for: one symbol for each name, so that equal Dims are equal sizes.
  SymInt size_for(const std::string& path, int64_t d, int64_t hint, const Dim* dim) {
    std::string text = size_source(path, d);
    if (!dim || dim->hint() != Dim::Hint::Named) {
      SymInt size = env_->create_symbol(hint, text, symbol_options(dim));
      if (dim) hinted_.add(concat("inputs", source_of(path).substr(1), ".shape[", d, "]"), size, hint, *dim);
      return size;
    }
    auto found = roots_.find(dim->name());
    if (found == roots_.end()) {
      check<UserError>((hint - dim->offset()) % dim->scale() == 0, "Expected shape[", d, "] = ", hint,
                       " of input Tensor to be of the form ", dim->text(), ", where ", dim->name(), " is an integer");
      auto own = own_sources_.find(dim->name());
      bool has_own = own != own_sources_.end();
      SymInt root =
          env_->create_symbol((hint - dim->offset()) / dim->scale(), has_own ? own->second : "", symbol_options(dim));
      found = roots_.emplace(dim->name(), root).first;
      first_sizes_.emplace(dim->name(), text);
      if (!has_own && root.is_symbolic()) env_->add_source(env_->expression(root), root_text(text, *dim));
    }
    if (found->second.is_symbolic())
      env_->add_use(env_->expression(found->second), {dim->text(), text, dim->scale(), dim->offset()});
    SymInt size = found->second * dim->scale() + dim->offset();
    if (dim->is_derived() && size.is_symbolic()) add_derived(text, *dim);
    if (size.hint() != hint) fail_unequal(text, hint, *dim, found->second);
    return size;
  }

  [[noreturn]] void fail_unequal(const std::string& text, int64_t hint, const Dim& dim, SymInt root) const {
    if (dim.is_derived())
      fail<UserError>("Expected input ", text, " to be equal to ", dim.text(), ", where ", dim.name(), " = ",
                      root.hint(), ", but got ", hint);
    fail<UserError>(text, " = ", hint, " is not equal to ",
                    root.is_symbolic() ? first_sizes_.at(dim.name()) : dim.name(), " = ", root.hint());
  }

  // The root of a derived Dim in terms of the size that it was met in, for guards: `((L['x'].size()[0] - 1) // 2)`.
  static std::string root_text(const std::string& size, const Dim& dim) {
    std::string text = size;
    if (dim.offset() != 0) text = concat("(", text, dim.offset() > 0 ? " - " : " + ", std::abs(dim.offset()), ")");
    return dim.scale() == 1 ? text : concat("(", text, " // ", dim.scale(), ")");
  }

  // A size that is no symbol by itself has a range of its own, and inputs are checked to be of its form.
  void add_derived(const std::string& text, const Dim& dim) {
    const std::string& root = env_->symbol(env_->expression(roots_.at(dim.name()))).sources.front();
    std::string form = root;
    if (dim.scale() != 1) form = concat(dim.scale(), "*", form);
    if (dim.offset() > 0) form = concat("(", dim.offset(), " + ", form, ")");
    if (dim.offset() < 0) form = concat("((", dim.offset(), ") + ", form, ")");
    if (dim.scale() != 1 || root != root_text(text, dim)) derived_guards_.push_back(text + " == " + form);
  }

  void add_user_inputs(const FlatInputs& flat) {
    for (size_t i = 0; i < flat.values.size(); ++i) {
      const Value& v = flat.values[i];
      Value stand_in = v.is_tensor() ? Value(fake_input(v.tensor_ref(), flat.paths[i])) : v;
      if (v.is_int()) stand_in = Value(integer_input(v.to_int(), flat.paths[i]));
      tracer_->add_input(next_input(), stand_in);
      if (v.is_tensor()) add_places(program_.graph().placeholders().back(), source_of(flat.paths[i]), places_);
      bool varies = v.is_tensor() || stand_in.is_sym_int();
      InputSpec spec{varies ? InputKind::UserInput : InputKind::ConstantInput, flat.names[i], "", true, {}};
      if (!varies) spec.value = v;
      program_.signature.inputs.push_back(std::move(spec));
      stand_ins_.push_back(std::move(stand_in));
    }
  }

  // An integer is part of the program unless a Dim says that it may vary.
  SymInt integer_input(int64_t given, const std::string& path) {
    const Dim* dim = find_dim(path, 0, 1);
    sym::SymbolOptions options = symbol_options(dim);
    options.size = false;
    options.keep_zero_one = true;
    SymInt number = env_->create_symbol(given, source_of(path), options);
    if (dim && number.is_symbolic()) hinted_.add("inputs" + source_of(path).substr(1), number, given, *dim);
    return number;
  }

  // One tensor given several times is one stand-in: programs may ask whether their arguments are one.
  Tensor fake_input(const Tensor& given, const std::string& path) {
    auto known = given_.find(given.impl());
    if (known != given_.end()) {
      declare_again(known->second, path);
      return known->second;
    }
    held_.push_back(given);
    SymShape sizes;
    bool dynamic = false;
    for (int64_t d = 0; d < given.dim(); ++d) {
      const Dim* dim = find_dim(path, d, given.dim());
      sizes.push_back(size_for(path, d, given.sizes()[d], dim));
      dynamic |= sizes.back().is_symbolic();
    }
    Tensor fake = dynamic ? mode_->from_tensor_with_sizes(given, sizes) : mode_->from_tensor(given);
    given_.emplace(given.impl(), fake);
    return fake;
  }

  bool is_promised(SymInt size, sym::Range range) const {
    const sym::Expression* e = size.is_symbolic() ? env_->expression(size) : nullptr;
    return e && e->is(sym::Kind::Symbol) && !env_->symbol(e).dim.empty() && env_->symbol(e).promised == range;
  }

  // What is said of a tensor's sizes where it is given once more has to fit what was said before.
  void declare_again(const Tensor& fake, const std::string& path) {
    for (int64_t d = 0; d < fake.dim(); ++d) {
      const Dim* dim = find_dim(path, d, fake.dim());
      if (!dim || dim->hint() == Dim::Hint::Static || dim->hint() == Dim::Hint::Auto) continue;
      SymInt size = fake.sym_sizes()[d];
      bool named = dim->hint() == Dim::Hint::Named,
           other = named && !dim->is_derived() && !roots_.contains(dim->name());
      if (!named && size.is_symbolic()) continue;
      if (other && is_promised(size, dim->range())) {  // by another name
        roots_.emplace(dim->name(), size);
        continue;
      }
      sym_compare(SymOp::Eq, size, size_for(path, d, size.is_symbolic() ? size.hint() : size.value(), dim))
          .guard_bool();
    }
  }

  // ---- the run ----

  Tree run_forward(const FlatInputs& flat) {
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

  // Nodes say what values look like; their histories are those of a run that is over.
  static void forget_histories(fx::Graph& graph) {
    auto forget = [](const Tensor& t) {
      if (!t.defined() || t.is_leaf()) return;
      t.impl()->set_autograd_meta(nullptr);
      t.impl()->remove_key(DispatchKey::Autograd);
    };
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
    hinted_.refuse_fixed_examples(*env_);
    sym::check_constraints(*env_, {.force_specializations = options_.force_specializations});
    settle_ranges();
    hinted_.settle(*env_, program_.ranges);
    program_.guards = env_->guard_texts();
    std::vector<std::string> assumptions = env_->assumption_texts();
    program_.guards.insert(program_.guards.end(), assumptions.begin(), assumptions.end());
    program_.guards.insert(program_.guards.begin(), derived_guards_.begin(), derived_guards_.end());
    for (std::string& guard : program_.guards) guard = by_argument_names(std::move(guard));
    env_->suppress_guards(true);  // run_decompositions goes on with them
  }

  // A program's own arguments are those that it is called with: "L['xs'][0]" of `*xs` is L['xs_0'].
  std::string by_argument_names(std::string guard) const {
    for (const auto& [name, source] : options_.argument_sources) {
      std::string place = source_of(name);
      for (size_t at; (at = guard.find(place)) != std::string::npos;)
        guard.replace(at, place.size(), "L['" + name + "']");
    }
    return guard;
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
      program_.ranges.push_back(
          {symbol.name, symbol.replacement ? env_->range(env_->simplify(symbol.expression)) : declared_range(symbol)});
    }
  }

  /// Of a Dim that no size is by itself, what its sizes may be is declared of them.
  sym::Range declared_range(const sym::Symbol& symbol) const {
    bool hidden = !symbol.dim.empty() && !own_sources_.contains(symbol.dim);
    return hidden ? symbol.range : sym::exported_range(symbol);
  }

  const ExportSource& source_;
  const ExportOptions& options_;
  ExportedProgram program_;
  IntrusivePtr<sym::ShapeEnv> env_;
  IntrusivePtr<FakeModeImpl> mode_;
  IntrusivePtr<Tracer> tracer_;
  std::vector<Value> stand_ins_;
  fx::Arguments kept_;  // what calls with signatures to keep are given and give
  std::vector<Tensor> held_;
  std::unordered_map<const TensorImpl*, Tensor> given_;  // the stand-ins of what the user gave
  std::map<std::string, SymInt> roots_;
  std::map<std::string, std::string> first_sizes_;  // of Dims: the size that they were met in first
  std::map<std::string, std::string> own_sources_;  // of Dims: a size that is the Dim itself
  std::vector<std::string> derived_guards_;
  HintedRanges hinted_;
  std::vector<SizePlace> places_;  // sizes of inputs that vary
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
