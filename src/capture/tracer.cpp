#include "umbra/capture/tracer.h"

#include <algorithm>
#include <optional>

#include "autograd/stand_in.h"
#include "core/per_thread.h"
#include "umbra/autograd/autograd.h"
#include "umbra/autograd/grad_mode.h"
#include "umbra/autograd/running.h"
#include "umbra/autograd/saved_tensor.h"
#include "umbra/core/wrapped_number.h"
#include "umbra/sym/draft.h"
#include "umbra/sym/shape_env.h"

namespace umbra {

Tracer::Tracer(DispatchKey key, IntrusivePtr<fx::GraphModule> module)
    : Mode(key), module_(std::move(module)), grad_enabled_(autograd::recorded_grad_mode()) {}

Tracer* active_tracer(DispatchKey key) { return static_cast<Tracer*>(active_mode(key)); }

// ---- inputs, attributes, results ----

fx::Node* Tracer::add_input_after(fx::Node* after, const std::string& name, const Value& value) {
  fx::Node* first = graph().first();
  fx::Node* node = nullptr;
  if (after) {
    auto scope = graph().inserting_after(after);
    node = graph().placeholder(name);
  } else if (first) {
    auto scope = graph().inserting_before(first);
    node = graph().placeholder(name);
  } else {
    node = graph().placeholder(name);
  }
  node->meta.val = value;
  if (value.is_tensor()) alias(value.tensor_ref(), node);
  if (value.is_sym_int()) symbols_[value.to_sym_int().raw()] = node;
  if (value.tag() == Value::Tag::SymFloat) floats_[value.to_sym_float().node()] = node;
  if (value.tag() == Value::Tag::SymBool) floats_[value.to_sym_bool().node()] = node;
  if (after && after == last_input_) last_input_ = node;
  return node;
}

fx::Node* Tracer::add_input(const std::string& name, const Value& value, bool later) {
  fx::Node* node = graph().placeholder(name);
  node->meta.val = value;
  last_input_ = node;
  if (value.is_tensor()) {
    const Tensor& tensor = value.tensor_ref();
    tensors_[tensor.impl()] = {tensor, node};
    for (int64_t d = 0; d < tensor.dim(); ++d)
      if (SymInt size = tensor.sym_sizes()[d]; size.is_symbolic() && !(later && size.has_hint()))
        sources_.try_emplace(size.raw(), SymbolSource{node, d});
  } else if (value.is_sym_int()) {
    sources_.try_emplace(value.to_sym_int().raw(), SymbolSource{node, SymbolSource::kItself});
  }
  return node;
}

void Tracer::add_attribute(const std::string& path, const Tensor& tensor, fx::AttributeKind kind) {
  module_->set(path, Value(tensor), kind);
  fx::Node* node = graph().get_attr(path);
  node->meta.val = Value(tensor);
  tensors_[tensor.impl()] = {tensor, node};
}

void Tracer::note_numel(const Tensor& tensor, SymInt value) {
  fx::Node* node = node_of(tensor);
  // What an exported program asks of a result is computed from the sizes of its inputs.
  if (node && sizes_after_inputs && node->op() != fx::Op::Placeholder) return;
  if (node && !symbols_.contains(value.raw()))
    sources_.try_emplace(value.raw(), SymbolSource{node, SymbolSource::kNumel});
}

void note_numel(const Tensor& tensor, SymInt value) {
  if (!value.is_symbolic()) return;
  for (DispatchKey key : {DispatchKey::PreProxy, DispatchKey::Proxy})
    if (Tracer* tracer = active_tracer(key)) tracer->note_numel(tensor, value);
}

fx::Node* Tracer::node_of(const Tensor& tensor) const {
  auto found = tensors_.find(tensor.impl());
  return found == tensors_.end() ? nullptr : found->second.node;
}

void Tracer::take_saved(const Tensor& tensor) {
  if (tensor.impl()->is_wrapped_number() || tensor.keys().has(DispatchKey::Tracked) || node_of(tensor)) return;
  auto same_value = [&](const Tensor& known) {
    bool same_memory = known.storage() == tensor.storage() && known.dtype() == tensor.dtype() &&
                       known.is_conj() == tensor.is_conj() && known.is_neg() == tensor.is_neg() &&
                       known_equal(known.sym_storage_offset(), tensor.sym_storage_offset()) &&
                       std::ranges::equal(known.sym_sizes(), tensor.sym_sizes(), known_equal) &&
                       std::ranges::equal(known.sym_strides(), tensor.sym_strides(), known_equal);
    return same_memory && (!tensor.requires_grad() || autograd::grad_fn(known) == autograd::grad_fn(tensor));
  };
  auto found = std::ranges::find_if(tensors_, [&](const auto& item) { return same_value(item.second.tensor); });
  if (found != tensors_.end()) return alias(tensor, found->second.node);
  needs_split_composites = !splits_composites;
  fail(
      "the program takes a gradient that needs a value which the operators it calls keep to themselves: there is no "
      "node for it in the captured graph");
}

void Tracer::track(fx::Node* node, const Value& result) {
  auto element = [&](size_t i, const Value& value) {
    fx::Node* item = graph().call(fx::function("operator.getitem"), {node, static_cast<int64_t>(i)});
    finish(item, value);
    track(item, value);
  };
  switch (result.tag()) {
    case Value::Tag::Tensor:
      tensors_[result.tensor_impl()] = {result.tensor(), node};
      if (result.tensor_ref().is_symbolic()) note_unbacked_sizes(node, result.tensor_ref());
      break;
    // A number that is there already stays the node's that gave it first.
    case Value::Tag::SymInt: symbols_.try_emplace(result.to_sym_int().raw(), node); break;
    case Value::Tag::SymFloat: floats_.try_emplace(result.to_sym_float().node(), node); break;
    case Value::Tag::SymBool: floats_.try_emplace(result.to_sym_bool().node(), node); break;
    case Value::Tag::TensorList: {
      TensorList list = result.tensor_list();
      for (size_t i = 0; i < list.size(); ++i)
        if (list[i].defined()) element(i, Value(list[i]));
      break;
    }
    case Value::Tag::List: {
      ArrayRef<Value> list = result.list();
      for (size_t i = 0; i < list.size(); ++i)
        if (!list[i].is_none()) element(i, list[i]);
      break;
    }
    default: break;
  }
}

// The first result that has a size which nothing before tells (nonzero's) is where later calls get it from.
void Tracer::note_unbacked_sizes(fx::Node* node, const Tensor& tensor) {
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    SymInt size = tensor.sym_sizes()[d];
    if (!size.is_symbolic()) continue;
    auto* e = static_cast<const sym::Expression*>(size.node());
    if (e->is(sym::Kind::Symbol) && !e->has_hint() && !symbols_.count(size.raw()))
      sources_.try_emplace(size.raw(), SymbolSource{node, d, true});
  }
}

void Tracer::keep_metadata(const Tensor& tensor, const Tensor& before) {
  auto shows = [&](const fx::Node* node) {
    return node->meta.val.is_tensor() && node->meta.val.tensor_impl() == tensor.impl();
  };
  // A size that is read where it is first needed has to be read before it changes.
  std::vector<std::pair<int64_t, SymInt>> sizes;
  if (!sizes_after_inputs)
    for (const auto& [bits, source] : sources_)
      if (!source.is_result && source.dim != SymbolSource::kItself && shows(source.input))
        sizes.emplace_back(source.dim, SymInt::from_raw(bits));
  std::sort(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [dim, size] : sizes) symbol_argument(size);
  for (fx::Node* node : graph().nodes())
    if (shows(node)) node->meta.val = Value(before);
}

void Tracer::record_grad_mode() {
  if (key() != DispatchKey::PreProxy || autograd::recorded_grad_mode() == grad_enabled_) return;
  grad_enabled_ = autograd::recorded_grad_mode();
  finish(graph().call(fx::function("torch._C._set_grad_enabled"), {grad_enabled_}), Value());
}

void Tracer::record_switch() {
  if (!keeps_switches) return;
  grad_enabled_ = is_grad_enabled();
  finish(graph().call(fx::function("torch._C._set_grad_enabled"), {grad_enabled_}), Value());
}

/// Where the program stands. What the backward pass computes comes from the line whose gradient it is.
IntrusivePtr<SourceLocation> Tracer::line() {
  const autograd::Node* running = autograd::running_node();
  if (!running) return lines_.emplace_back(autograd::upcoming_sequence_number(), current_location()).second;
  // Autograd makes its node before the call is recorded.
  auto later = [](uint64_t number, const auto& line) { return number < line.first; };
  auto found = std::upper_bound(lines_.begin(), lines_.end(), running->sequence_number(), later);
  return found == lines_.end() ? nullptr : found->second;
}

namespace {

struct CalledFunctions {
  IntrusivePtr<CalledFunction> current;
  std::unordered_map<const void*, int> counts;
};
CalledFunctions& called_functions() {
  static PerThread<CalledFunctions> state;
  return *state;
}

}  // namespace

IntrusivePtr<CalledFunction> set_called_function(IntrusivePtr<CalledFunction> function) {
  return std::exchange(called_functions().current, std::move(function));
}
void forget_called_functions() { called_functions().counts.clear(); }

namespace {
thread_local const fx::Meta* g_inherited = nullptr;
thread_local IntrusivePtr<fx::Annotations> g_annotations;
thread_local bool g_recomputing = false;
// What nodes take over from the one that is run again, besides its line and its modules.
constexpr const char* kInheritedKeys[] = {"source_fn_stack",       "original_aten",     "recompute",
                                          "ac_graph_id",           "has_backward_hook", "quantization_tag",
                                          "_numeric_debug_handle", "partitioner_tag"};

void inherit(fx::Meta& meta) {
  if (!meta.source) meta.source = g_inherited->source;
  if (!meta.modules) meta.modules = g_inherited->modules;
  meta.custom = g_inherited->custom ? g_inherited->custom->copy() : nullptr;
  for (const char* key : kInheritedKeys)
    if (const Value* value = g_inherited->find(key)) meta.set(key, *value);
}
}  // namespace

InheritMeta::InheritMeta(const fx::Meta& meta) : before_(std::exchange(g_inherited, &meta)) {}
InheritMeta::~InheritMeta() { g_inherited = before_; }

bool set_recomputing(bool recomputing) { return std::exchange(g_recomputing, recomputing); }

void set_annotations(IntrusivePtr<fx::Annotations> annotations) { g_annotations = std::move(annotations); }

void Tracer::finish(fx::Node* node, const Value& result) {
  node->meta.val = result;
  if (g_annotations) node->meta.custom = g_annotations->copy();
  if (g_recomputing) node->meta.set(fx::kPartitionerTag, Value(std::string(fx::kBackwardOnly)));
  if (locations) node->meta.source = line();
  node->meta.modules = current_modules();
  if (g_inherited) inherit(node->meta);
  CalledFunction* called = called_functions().current.get();
  if (!called) return;
  if (called->number == 0) called->number = ++called_functions().counts[called->identity];
  std::vector<Value> text{Value(concat(called->name, "_", called->number)), Value(called->kind)};
  node->meta.set("torch_fn", Value(std::move(text)));
}

void Tracer::set_output(const std::vector<Value>& results) {
  record_grad_mode();
  fx::Arguments items;
  for (const Value& v : results) items.push_back(argument(v));
  graph().output(fx::Argument::tuple(std::move(items)));
}

fx::Node* Tracer::record_call(const fx::Function& function, fx::Arguments arguments, const Value& result,
                              fx::KeywordArguments keywords) {
  record_grad_mode();
  fx::Node* node = graph().call(function, std::move(arguments), std::move(keywords));
  finish(node, result);
  track(node, result);
  return node;
}

// ---- arguments ----

fx::Node* Tracer::constant_node(const Tensor& tensor) {
  check<NotImplementedError>(
      !tensor.keys().has(DispatchKey::Subclass),
      "a tensor of a user's class is a result of the captured function, or is given to an operator "
      "that is not taken apart: that would fix its value. Give the tensors inside it instead.");
  if (on_constant)
    if (fx::Node* node = on_constant(tensor)) return node;
  fx::Node* node = graph().get_attr(constant_path(tensor));
  finish(node, Value(tensor));
  if (!is_parameter) tensors_[tensor.impl()] = {tensor, node};
  return node;
}

std::string Tracer::constant_path(const Tensor& tensor) {
  if (auto known = constant_paths_.find(tensor.impl()); known != constant_paths_.end()) return known->second.path;
  bool parameter = is_parameter && is_parameter(tensor);
  std::string path =
      parameter ? "_param_constant" + std::to_string(parameters_++) : "_tensor_constant" + std::to_string(constants_++);
  module_->set(path, Value(tensor), parameter ? fx::AttributeKind::Parameter : fx::AttributeKind::Constant);
  if (is_parameter) constant_paths_[tensor.impl()] = {tensor, path};
  return path;
}

fx::Argument Tracer::argument(const Value& value) {
  switch (value.tag()) {
    case Value::Tag::Tensor: {
      const Tensor& tensor = value.tensor_ref();
      if (fx::Node* node = node_of(tensor)) return node;
      // A number that was wrapped into a tensor for promotion goes into the graph as the number.
      if (tensor.impl()->is_wrapped_number() && !tensor.is_fake()) return argument(Value(wrapped_scalar(tensor)));
      return constant_node(tensor);
    }
    case Value::Tag::SymInt: return symbol_argument(value.to_sym_int());
    case Value::Tag::SymFloat: return expression_argument(value.to_sym_float().node(), 0);
    case Value::Tag::SymBool: return expression_argument(value.to_sym_bool().node(), 0);
    case Value::Tag::IntList: {
      if (!any_symbolic(value.int_list())) return value;
      fx::Arguments items;
      for (SymInt s : value.int_list()) items.push_back(symbol_argument(s));
      return fx::Argument::list(std::move(items));
    }
    case Value::Tag::TensorList: {
      fx::Arguments items;
      for (const Tensor& t : value.tensor_list()) items.push_back(argument(Value(t)));
      return fx::Argument::list(std::move(items));
    }
    case Value::Tag::List: {
      fx::Arguments items;
      for (const Value& v : value.list()) items.push_back(argument(v));
      return fx::Argument::list(std::move(items));
    }
    default: return value;
  }
}

fx::Argument Tracer::symbol_argument(SymInt value) {
  if (!value.is_symbolic()) return value.value();
  if (auto found = symbols_.find(value.raw()); found != symbols_.end()) return found->second;
  auto source = sources_.find(value.raw());
  if (source == sources_.end()) return expression_argument(value.node(), value.raw());
  if (source->second.dim == SymbolSource::kItself) return source->second.input;
  fx::Node* input = source->second.input;
  bool of_result = source->second.is_result;
  std::optional<fx::Graph::InsertionScope> scope;
  if (of_result || (sizes_after_inputs && source->second.dim != SymbolSource::kNumel)) {
    fx::Node* place = of_result ? input : last_size_ ? last_size_ : last_input_;
    scope.emplace(graph(), place->next());
  }
  fx::Node* node =
      source->second.dim == SymbolSource::kNumel
          ? graph().create_node(fx::Op::CallFunction, get_operator("aten::sym_numel"), {input}, {}, "sym_numel_default")
          : graph().create_node(fx::Op::CallFunction, get_operator("aten::sym_size.int"), {input, source->second.dim},
                                {}, "sym_size_int");
  node->meta.val = Value(value);
  if (of_result) node->meta.source = input->meta.source;
  else if (source->second.dim != SymbolSource::kNumel) last_size_ = node;
  return symbols_[value.raw()] = node;
}

// ---- the layer ----

Tracer::CallArguments Tracer::arguments_of(const Operator& op, const Value* arguments) {
  const auto& schema = op.schema().arguments;
  CallArguments out;
  size_t count = 0;
  for (size_t i = 0; i < schema.size() && !schema[i].keyword_only; ++i)
    if (!schema[i].default_value || !arguments[i].equals(*schema[i].default_value)) count = i + 1;
  for (size_t i = 0; i < count; ++i) out.positional.push_back(argument(arguments[i]));
  for (size_t i = 0; i < schema.size(); ++i)
    if (schema[i].keyword_only && !(schema[i].default_value && arguments[i].equals(*schema[i].default_value)))
      out.keywords.emplace_back(schema[i].name, argument(arguments[i]));
  return out;
}

void Tracer::record(const Operator& op, const Value* arguments, Value* results) {
  record_grad_mode();
  CallArguments given = arguments_of(op, arguments);
  bool some = false;
  bool constant = refuses_data && all_constant(op, arguments, some) && some && !op.definition().random;
  fx::Node* node = graph().call(op, std::move(given.positional), std::move(given.keywords));
  size_t returns = op.return_count();
  if (returns == 1) {
    finish(node, results[0]);
    track(node, results[0]);
  } else if (returns > 1) {
    Value all(std::vector<Value>(results, results + returns));
    finish(node, all);
    track(node, all);
  } else {
    finish(node, Value());
  }
  // What an in-place call wrote is from here on its result, also where the argument was a stand-in's original.
  if (returns == 1 && op.is_inplace() && arguments[0].is_tensor() && node_of(arguments[0].tensor_ref()))
    alias(arguments[0].tensor_ref(), node);
  if (constant)
    for (size_t i = 0; i < returns; ++i) mark_constant(results[i]);
}

// ---- literals, and what follows from them ----

bool Tracer::all_constant(const Operator& op, const Value* arguments, bool& some) const {
  bool all = true;
  for (size_t i = 0; i < op.argument_count(); ++i)
    arguments[i].each_tensor([&](const TensorImpl* t) {
      auto found = tensors_.find(t);
      if (found == tensors_.end()) return;
      some |= found->second.constant;
      all &= found->second.constant;
    });
  return all;
}

void Tracer::mark_constant(const Value& result) {
  result.each_tensor([&](const TensorImpl* t) {
    if (t->sym_numel().is_symbolic() || t->sym_numel().value() != 1) return;
    if (auto known = tensors_.find(t); known != tensors_.end()) known->second.constant = true;
  });
}

/// Reading an element while the data are there: allowed of constants, which is no part of the graph.
void read_data(const Tracer& tracer, const Operator& op, DispatchKeySet keys, Value* frame) {
  bool some = false;
  check(tracer.all_constant(op, frame, some),
        "It appears that you're trying to get value out of a tracing tensor with aten._local_scalar_dense.default - "
        "erroring out! It's likely that this is caused by data-dependent control flow or similar.  It may be possible "
        "to trace this with dynamic shapes; try setting tracing_mode='symbolic' in your make_fx call.");
  ExcludeKeys off(keys.highest());
  op.redispatch(keys.below(keys.highest()), frame);
}

bool Tracer::knows_subclasses(const Operator& op, const Value* frame) const {
  bool all = true;
  for (size_t i = 0; i < op.argument_count(); ++i)
    frame[i].each_tensor(
        [&](const TensorImpl* t) { all &= !t->keys().has(DispatchKey::Subclass) || tensors_.contains(t); });
  return all;
}

// A contiguous tensor asked to be contiguous: there is nothing to record, and PyTorch does not even make the call.
static bool gives_back_its_input(const Operator& op, const Value* frame) {
  const BoxedFunction& unchanged = op.definition().unchanged;
  if (!unchanged) return false;
  Frame arguments(op, frame);
  unchanged(arguments.data());
  return arguments[0].to_bool();
}

namespace {

Tensor as_it_is(const Tensor& tensor) {
  return alias_tensor(tensor, tensor.sym_sizes(), tensor.sym_strides(), tensor.sym_storage_offset());
}

/// Whether it is a composite that gives a bool (is_nonzero), which has no node.
static bool answers_yes_or_no(const Operator& op) {
  const auto& returns = op.schema().returns;
  return op.definition().composite && returns.size() == 1 && returns[0].type.base == SchemaType::Base::Bool;
}

/// The outputs of an out variant, to which the call may give other sizes.
class OutputsBefore {
 public:
  OutputsBefore(const Operator& op, const Value* frame) {
    if (!op.has_out() || !op.functional()) return;
    for (size_t i = op.functional()->argument_count(); i < op.argument_count(); ++i)
      if (frame[i].is_tensor()) outputs_.emplace_back(frame[i].tensor(), as_it_is(frame[i].tensor_ref()));
  }
  template <class F> void each_resized(F&& visit) const {
    for (const auto& [now, before] : outputs_)
      if (!(now.sym_sizes() == before.sym_sizes())) visit(now, before);
  }

 private:
  std::vector<std::pair<Tensor, Tensor>> outputs_;
};

}  // namespace

void record_operator(const Operator& op, DispatchKeySet keys, Value* frame) {
  DispatchKey key = keys.highest();
  Tracer* tracer = active_tracer(key);
  check<AssertionError>(tracer, "a call reached the recording layer, and no tracer is active");
  // A wrapper that the program made comes apart: what its handler does with the tensors inside is what is recorded.
  if (keys.has(DispatchKey::Subclass) && !tracer->knows_subclasses(op, frame)) {
    ExcludeKeys below(DispatchKey::Autograd);
    return pass_to_subclass(op, keys, frame);
  }
  if (const DecompositionTable::Function* parts = tracer->decompositions.find(op)) {
    try {
      return (*parts)(frame);
    } catch (const DecompositionDeclined&) {
    }
  }
  if (tracer->splits_composites && op.is_composite()) return op.definition().composite(frame);
  if (op.has_tag(Tag::SizeOnDemand)) {  // sizes are values, not calls: they get a node when something needs one
    ExcludeKeys off(key);
    return op.redispatch(keys.below(key), frame);
  }
  // A draft answers by the example, and the program has to compute what it then asserts.
  if (key == DispatchKey::PreProxy && sym::Draft::current() && answers_yes_or_no(op))
    return op.definition().composite(frame);
  // Above autograd a write that changes no data counts all the same: detach_ cuts gradients off.
  bool for_gradients = key == DispatchKey::PreProxy && op.is_mutable();
  if (!for_gradients && gives_back_its_input(op, frame)) return;
  if (tracer->refuses_data && op.has_tag(Tag::DataDependentOutput)) return read_data(*tracer, op, keys, frame);
  if (op.has_tag(Tag::InPlaceView)) tracer->keep_metadata(frame[0].tensor_ref(), as_it_is(frame[0].tensor_ref()));
  OutputsBefore outputs(op, frame);
  // The arguments have to outlive the call, whose results take their places.
  Frame arguments(op, frame);
  std::vector<Value> owned;
  owned.reserve(op.argument_count());
  for (size_t i = 0; i < op.argument_count(); ++i) owned.push_back(frame[i]);
  // A tensor made from data (torch.tensor) is new in every run: the graph copies its constant, which writes must not
  // reach.
  bool lifts = op.has_tag(Tag::LiftsData) && op.functional_form();
  {
    ExcludeKeys off(key);
    std::optional<ModesMayOnlyLook> recorded_above;
    if (key == DispatchKey::PreProxy) recorded_above.emplace(tracer);
    op.redispatch(keys.below(key), frame);
    if (lifts && !frame[0].tensor_ref().is_fake()) frame[0] = Value(frame[0].tensor_ref().clone());
  }
  outputs.each_resized([&](const Tensor& t, const Tensor& before) { tracer->keep_metadata(t, before); });
  tracer->record(lifts ? *op.functional_form() : op, owned.data(), frame);
  if (lifts && tracer->refuses_data) tracer->mark_constant(frame[0]);
}

namespace {
const RegisterLayer kProxy(DispatchKey::Proxy, record_operator);
const bool kTakesSaved = [] {
  autograd::saved_tensor_taken = [](const Tensor& tensor) {
    if (!dispatch_state().exclude.has(DispatchKey::PreProxy)) active_tracer(DispatchKey::PreProxy)->take_saved(tensor);
  };
  return true;
}();
const RegisterLayer kPreProxy(DispatchKey::PreProxy, record_operator);

// ---- modules ----

struct ModuleFrames {
  std::vector<fx::ModuleFrame> frames;
  std::vector<IntrusivePtr<fx::ModuleStack>> stacks;  // one for each depth: nodes made in one place share it
};
ModuleFrames& modules() {
  static PerThread<ModuleFrames> of_thread;
  return *of_thread;
}
thread_local IntrusivePtr<fx::ModuleStack> g_given_modules;
}  // namespace

void enter_module(const std::string& path, std::string type, std::string_view prefix) {
  std::string key = concat(prefix, path);
  Tracer* tracer = active_tracer(DispatchKey::PreProxy);
  if (!tracer) tracer = active_tracer(DispatchKey::Proxy);
  if (int earlier = tracer ? tracer->count_call(path) : 0) key += "@" + std::to_string(earlier);
  modules().frames.push_back({std::move(key), path, std::move(type)});
  modules().stacks.push_back(make_counted<fx::ModuleStack>(modules().frames));
}

void leave_module() {
  check(!modules().frames.empty(), "no module is entered");
  modules().frames.pop_back();
  modules().stacks.pop_back();
}

IntrusivePtr<fx::ModuleStack> current_modules() {
  if (g_given_modules) return g_given_modules;
  return modules().stacks.empty() ? nullptr : modules().stacks.back();
}

IntrusivePtr<fx::ModuleStack> set_current_modules(IntrusivePtr<fx::ModuleStack> modules) {
  return std::exchange(g_given_modules, std::move(modules));
}

}  // namespace umbra
