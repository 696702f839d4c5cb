#include "umbra/capture/effects.h"

#include "capture/operator_row.h"
#include "umbra/capture/functionalize.h"
#include "umbra/dispatch/effects.h"
#include "umbra/generated/functions.h"
#include "umbra/graph/operator_value.h"

namespace umbra {

namespace {

thread_local EffectScope* g_scope = nullptr;

constexpr const char* kName = "torch.ops.higher_order.with_effects";

bool is_on(DispatchKey key) { return active_mode(key) && !dispatch_state().exclude.has(key); }

std::vector<Value> call_operator(const Operator& op, const std::vector<Value>& arguments) {
  Frame frame(op, arguments.data());
  op.call(frame.data());
  std::vector<Value> results;
  for (size_t i = 0; i < op.return_count(); ++i) results.push_back(std::move(frame[i]));
  return results;
}

Tensor token_like(const Tensor& token) {
  if (FakeModeImpl* mode = fake_mode_of(token)) return mode->make(token_spec());
  return make_token();
}

/// Each tensor of the values as what `change` makes of it.
void change_tensors(std::vector<Value>& values, Tensor (*change)(const Tensor&)) {
  for (Value& v : values) {
    if (v.is_tensor()) v = Value(change(v.tensor_ref()));
    if (!v.is_tensor_list()) continue;
    std::vector<Tensor> list = v.tensor_list().vec();
    for (Tensor& t : list)
      if (t.defined()) t = change(t);
    v = Value(std::move(list));
  }
}

/// A node's arguments without keywords: those of the operator in the order of its schema.
fx::Arguments positional(const fx::Node& node) {
  const fx::Arguments& row = node.args();
  const Operator* op = row.size() > 1 && row[1].is_value() ? fx::operator_in(row[1].value()) : nullptr;
  check<TypeError>(op, "with_effects takes a token, an operator and its arguments");
  return operator_row(node, *op);
}

[[maybe_unused]] const fx::Function& kFunction = fx::define_function({
    .name = kName,
    .format = {},
    .evaluate =
        [](ArrayRef<Value> arguments) {
          const Operator* op = arguments.size() > 1 ? fx::operator_in(arguments[1]) : nullptr;
          check<TypeError>(op && arguments.size() == 2 + op->argument_count(),
                           "with_effects takes a token, an operator and its arguments");
          return Value(
              with_effects(arguments[0].tensor(), *op, std::vector<Value>(arguments.begin() + 2, arguments.end())));
        },
    .has_side_effects = true,
    .positional = positional,
});

}  // namespace

EffectScope::EffectScope(std::function<Tensor()> first)
    : first_(std::move(first)), before_(std::exchange(g_scope, this)) {}
EffectScope::~EffectScope() { g_scope = before_; }
EffectScope* EffectScope::current() { return g_scope; }

WithoutEffectScope::WithoutEffectScope() : before_(std::exchange(g_scope, nullptr)) {}
WithoutEffectScope::~WithoutEffectScope() { g_scope = before_; }

void EffectScope::call(const Operator& op, Value* frame) {
  if (!token_.defined()) token_ = first_();
  std::vector<Value> results = with_effects(token_, op, std::vector<Value>(frame, frame + op.argument_count()));
  token_ = results[0].tensor();
  for (size_t i = 0; i < op.return_count(); ++i) frame[i] = std::move(results[1 + i]);
}

TensorSpec token_spec() { return TensorSpec(SymShape{SymInt(0)}, DType::Float32, Device(DeviceType::CPU)); }
Tensor make_token() { return empty({0}, {.dtype = DType::Float32, .device = Device(DeviceType::CPU)}); }

void unlift_token(fx::Graph& graph, bool first) {
  std::vector<fx::Node*> inputs = graph.placeholders();
  fx::Node *input = first ? inputs.front() : inputs.back(), *start = inputs.back()->next();
  fx::Arguments outputs = graph.outputs();
  auto last = first ? outputs.begin() : outputs.end() - 1;
  {
    auto before = graph.inserting_before(start);
    fx::Node* made =
        graph.create_node(fx::Op::CallFunction, get_operator("prims::_make_token"), {}, {}, "_make_token_default");
    made->meta.val = input->meta.val;
    input->replace_all_uses_with(made);
  }
  {
    auto before = graph.inserting_before(graph.output_node());
    graph.create_node(fx::Op::CallFunction, get_operator("prims::_sink_tokens"), {fx::Argument::list({*last})}, {},
                      "_sink_tokens_default");
  }
  outputs.erase(last);
  bool is_list = graph.output_node()->arg(0).kind() == fx::Argument::Kind::List;
  graph.output_node()->set_args(
      {is_list ? fx::Argument::list(std::move(outputs)) : fx::Argument::tuple(std::move(outputs))});
  graph.erase_node(input);
}

namespace {
/// The elements of a call's results that are taken apart, by their number; null where nobody takes one.
fx::Node* element(const fx::Node& call, int64_t number) {
  for (fx::Node* user : call.users())
    if (user->target().function() == &fx::function("operator.getitem") && user->arg(1).is_value() &&
        user->arg(1).value().to_int() == number)
      return user;
  return nullptr;
}

/// The operator's own call in place of one with tokens.
void call_plainly(fx::Graph& graph, fx::Node* node) {
  const Operator& op = *fx::operator_in(node->arg(1).value());
  auto before = graph.inserting_before(node);
  fx::Node* call =
      graph.create_node(fx::Op::CallFunction, op, {node->args().begin() + 2, node->args().end()}, node->kwargs(),
                        op.schema().name + "_" + (op.schema().overload.empty() ? "default" : op.schema().overload));
  call->meta.source = node->meta.source;
  call->meta.modules = node->meta.modules;
  std::vector<Value> values;
  for (size_t i = 0; i < op.return_count(); ++i) {
    fx::Node* old = element(*node, static_cast<int64_t>(i) + 1);
    values.push_back(node->meta.val.is_list() ? node->meta.val.list()[i + 1] : Value());
    if (!old) continue;
    fx::Node* now =
        op.return_count() == 1 ? call : graph.call(fx::function("operator.getitem"), {call, static_cast<int64_t>(i)});
    if (now != call) now->meta = old->meta;
    old->replace_all_uses_with(now);
    graph.erase_node(old);
  }
  if (op.return_count() > 0) call->meta.val = op.return_count() == 1 ? values[0] : Value(std::move(values));
}
}  // namespace

void drop_tokens(fx::Graph& graph) {
  const fx::Function& function = fx::function(kName);
  std::vector<fx::Node*> calls;
  for (fx::Node* node : graph.nodes())
    if (node->target().function() == &function) calls.push_back(node);
  for (fx::Node* node : calls) call_plainly(graph, node);
  for (size_t k = calls.size(); k-- > 0;) {  // the last one's token has no more users
    if (fx::Node* token = element(*calls[k], 0)) graph.erase_node(token);
    graph.erase_node(calls[k]);
  }
}

std::vector<Value> with_effects(const Tensor& token, const Operator& op, std::vector<Value> arguments) {
  if (is_on(DispatchKey::Functionalize)) {  // it is functional as it is
    change_tensors(arguments, from_functional);
    std::vector<Value> results;
    {
      ExcludeKeys off(DispatchKeySet(DispatchKey::Functionalize) | DispatchKey::Autograd);
      results = with_effects(from_functional(token), op, std::move(arguments));
    }
    change_tensors(results, to_functional);
    return results;
  }
  Tracer* tracer = nullptr;
  for (DispatchKey key : {DispatchKey::Proxy, DispatchKey::PreProxy})
    if (is_on(key)) tracer = active_tracer(key);
  std::vector<Value> results{Value()};
  {
    ExcludeKeys off(tracer ? DispatchKeySet(tracer->key()) : DispatchKeySet());
    for (Value& v : call_operator(op, arguments)) results.push_back(std::move(v));
    results[0] = Value(token_like(token));
  }
  if (tracer) {
    Tracer::CallArguments given = tracer->arguments_of(op, arguments.data());
    fx::Arguments row{tracer->argument(Value(token)), fx::operator_value(op)};
    for (fx::Argument& a : given.positional) row.push_back(std::move(a));
    tracer->record_call(fx::function(kName), std::move(row), Value(results), std::move(given.keywords));
  }
  if (op.return_count() == 0) results.push_back(Value());
  return results;
}

}  // namespace umbra
