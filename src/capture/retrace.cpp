#include "umbra/capture/retrace.h"

#include "umbra/capture/tracer.h"

namespace umbra {

namespace {

Tracer* recording() {
  Tracer* tracer = active_tracer(DispatchKey::PreProxy);
  return tracer ? tracer : active_tracer(DispatchKey::Proxy);
}

/// The modules of a graph's node inside those around the graph: where these are more than the root, the graph's root is
/// the innermost of them.
IntrusivePtr<fx::ModuleStack> inside(const IntrusivePtr<fx::ModuleStack>& around,
                                     const IntrusivePtr<fx::ModuleStack>& modules) {
  if (!around || around->frames().size() < 2 || !modules) return modules ? modules : around;
  std::vector<fx::ModuleFrame> frames = around->frames();
  const std::string prefix = frames.back().path + ".";
  for (const fx::ModuleFrame& frame : modules->frames())
    if (!frame.path.empty()) frames.push_back({"L__self__" + prefix + frame.path, prefix + frame.path, frame.type});
  return make_counted<fx::ModuleStack>(std::move(frames));
}

/// Other modules that are running, while it lasts.
class SetModules {
 public:
  explicit SetModules(IntrusivePtr<fx::ModuleStack> modules) : before_(set_current_modules(std::move(modules))) {}
  ~SetModules() { set_current_modules(std::move(before_)); }

 private:
  IntrusivePtr<fx::ModuleStack> before_;
};

using OriginOf = IntrusivePtr<fx::Origin> (*)(const fx::Node&);

std::vector<Value> run_calls_with_origin(const IntrusivePtr<fx::GraphModule>& module, std::vector<Value> inputs,
                                         OriginOf origin_of) {
  fx::Interpreter interpreter(module);
  interpreter.on_call([origin_of](fx::NodeCall& call) { return call_with_origin(call, origin_of); });
  return interpreter.run(std::move(inputs));
}

/// Operators written in Python get their graphs as they are.
bool calls_functions(const fx::Node& node) {
  const fx::Function* function = node.target().function();
  const Operator* op = function ? find_operator(concat("higher_order::", function->short_name())) : nullptr;
  return op && op->definition().higher_order;
}

/// Sizes of inputs are asked for once, for all calls: they have no line of their own.
bool is_size_of_input(const fx::Node& node) {
  static const Operator& size = get_operator("aten::sym_size.int");
  return node.calls(size) && node.arg(0).is_node() && node.arg(0).node()->op() == fx::Op::Placeholder;
}

/// Graphs that a call is given (the branches of a cond) run in the same way: their calls have lines of their own.
void give_origins_to_graphs(fx::NodeCall& call, OriginOf origin_of) {
  if (!calls_functions(call.node())) return;
  for (size_t i = 0; i < call.count(); ++i) {
    Value& argument = call.arguments()[i];
    auto* graph = argument.is_object() ? dynamic_cast<fx::GraphModule*>(argument.object()) : nullptr;
    if (!graph) continue;
    argument =
        function_value([module = IntrusivePtr<fx::GraphModule>(graph), origin_of](const std::vector<Value>& inputs) {
          return run_calls_with_origin(module, inputs, origin_of);
        });
  }
}

}  // namespace

Value call_with_origin(fx::NodeCall& call, OriginOf origin_of) {
  Tracer* tracer = recording();
  if (!tracer) return call.run();
  give_origins_to_graphs(call, origin_of);
  const fx::Meta& origin = call.node().meta;
  fx::Node* last = tracer->graph().last();
  Value result;
  {
    SetModules scope(inside(current_modules(), origin.modules));
    result = call.run();
  }
  IntrusivePtr<fx::Origin> from;
  const Value* function = origin.find("torch_fn");
  for (fx::Node* made = last ? last->next() : tracer->graph().first(); made && made->op() != fx::Op::Root;
       made = made->next()) {
    if (has_origin(*made)) continue;  // of a graph that the call was given
    if (is_size_of_input(*made)) continue;
    if (origin.source) made->meta.source = origin.source;
    if (function) made->meta.set("torch_fn", *function);
    if (!from) from = origin_of(call.node());
    set_origin(*made, from);
  }
  return result;
}

std::vector<Value> run_with_origins(const IntrusivePtr<fx::GraphModule>& module, std::vector<Value> inputs) {
  if (!recording()) return module->run(std::move(inputs));
  return run_calls_with_origin(module, std::move(inputs), [](const fx::Node& node) {
    return make_counted<fx::Origin>(node, "Interpreter_Interpreter", "create");
  });
}

}  // namespace umbra
