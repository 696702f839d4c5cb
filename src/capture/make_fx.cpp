#include "umbra/capture/make_fx.h"

#include <algorithm>
#include <optional>

#include "umbra/capture/tracer.h"
#include "umbra/graph/passes.h"

namespace umbra {

namespace {

IntrusivePtr<FakeModeImpl> fake_mode_for(const CaptureOptions& options, const std::vector<Value>& inputs) {
  if (options.fake_mode) return options.fake_mode;
  for (const Value& v : inputs)
    if (v.is_tensor())
      if (FakeModeImpl* mode = fake_mode_of(v.tensor_ref())) return IntrusivePtr<FakeModeImpl>(mode);
  FakeOptions fake;
  fake.allow_non_fake_inputs = true;
  // Sizes may be numbers: what only the run tells is a symbol all the same.
  fake.shape_env = make_counted<sym::ShapeEnv>();
  fake.allow_scalar_outputs = fake.allow_dynamic_output_shapes = true;
  return make_counted<FakeModeImpl>(std::move(fake));
}

// An input as the function sees it: itself, or its fake stand-in. Symbols are named after its place, as in PyTorch.
Value stand_in(const Value& input, size_t place, FakeModeImpl* mode, bool symbolic) {
  std::string source = "input" + std::to_string(place);
  if (symbolic && input.is_int())  // booleans and floats are baked in
    return Value(mode->shape_env()->create_symbol(input.to_int(), source, {.size = false}));
  if (!mode || !input.is_tensor() || input.tensor_ref().is_fake()) return input;
  const Tensor& tensor = input.tensor_ref();
  if (!symbolic) return mode->from_tensor(tensor);
  SymbolicContext context{source, std::vector<sym::SymbolOptions>(tensor.dim())};
  return mode->from_tensor(tensor, &context);
}

// A value without its data: tensors that have some become fake ones of the same metadata.
Value metadata_of(const Value& value, FakeModeImpl& mode) {
  auto of_tensor = [&](const Tensor& t) {
    bool has_data = t.defined() && !t.is_fake() && t.storage() && t.storage()->has_data();
    return has_data ? mode.make(TensorSpec(t.sym_sizes(), t.sym_strides(), t.dtype(), t.device())) : t;
  };
  if (value.is_tensor()) return of_tensor(value.tensor_ref());
  if (value.tag() == Value::Tag::TensorList) {
    std::vector<Tensor> tensors;
    for (const Tensor& t : value.tensor_list()) tensors.push_back(of_tensor(t));
    return Value(std::move(tensors));
  }
  if (value.tag() == Value::Tag::List) {
    std::vector<Value> values;
    for (const Value& v : value.list()) values.push_back(metadata_of(v, mode));
    return Value(std::move(values));
  }
  return value;
}

// Nodes say what their values look like; a graph that kept the values would keep all the memory of the traced run.
void forget_data(fx::Graph& graph) {
  auto mode = make_counted<FakeModeImpl>(FakeOptions{.allow_non_fake_inputs = true});
  for (fx::Node* node : graph.nodes()) node->meta.val = metadata_of(node->meta.val, *mode);
}

}  // namespace

// What the function called stays, used or not: it may fail, and that is part of what it does.
void remove_unused_sizes(fx::Graph& graph) {
  fx::eliminate_dead_code(graph, [](const fx::Node& node) {
    if (node.is_impure()) return true;
    if (const Operator* op = node.target().op(); op && op->has_tag(Tag::SizeOnDemand)) return false;
    auto is_number = [](const fx::Node* n) { return n->meta.val.is_symbolic(); };
    return !(is_number(&node) && std::ranges::all_of(node.inputs(), is_number));
  });
}

std::vector<Value> detail::as_values(Tensor result) { return {Value(std::move(result))}; }
std::vector<Value> detail::as_values(const std::vector<Tensor>& results) { return {results.begin(), results.end()}; }
std::vector<Tensor> detail::as_tensors(const std::vector<Value>& values) {
  std::vector<Tensor> tensors;
  for (const Value& value : values) tensors.push_back(value.tensor());
  return tensors;
}

namespace {

IntrusivePtr<fx::GraphModule> capture(Tracer* tracer, const ValueFunction& function, const std::vector<Value>& inputs,
                                      const CaptureOptions& options) {
  const auto& module = tracer->module();
  tracer->decompositions = options.decompositions;
  tracer->locations = options.locations;
  tracer->is_parameter = options.is_parameter;
  tracer->keeps_switches = options.pre_dispatch;
  tracer->sizes_after_inputs = false;
  tracer->refuses_data = options.mode == TracingMode::Real && !options.keeps_read_data;
  IntrusivePtr<FakeModeImpl> mode;
  if (options.mode != TracingMode::Real) mode = fake_mode_for(options, inputs);
  std::vector<Value> stand_ins;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string name = i < options.names.size() ? options.names[i] : "arg" + std::to_string(i) + "_1";
    stand_ins.push_back(stand_in(inputs[i], i, mode.get(), options.mode == TracingMode::Symbolic));
    tracer->add_input(name, stand_ins.back(), i + options.later_inputs >= inputs.size());
  }
  {
    std::optional<EnterMode> fake_scope;
    if (mode) fake_scope.emplace(mode);
    EnterMode scope{IntrusivePtr<Mode>(tracer)};
    CallBoundary boundary;
    tracer->set_output(function(stand_ins));
  }
  if (mode && mode->shape_env()) module->graph().keep_alive(mode->options().shape_env);
  remove_unused_sizes(module->graph());
  if (!mode) forget_data(module->graph());
  return module;
}

}  // namespace

IntrusivePtr<fx::GraphModule> make_fx(const ValueFunction& function, const std::vector<Value>& inputs,
                                      const CaptureOptions& options) {
  auto new_tracer = [&] {
    auto module = make_counted<fx::GraphModule>(make_counted<fx::Graph>());
    return make_counted<Tracer>(options.pre_dispatch ? DispatchKey::PreProxy : DispatchKey::Proxy, module);
  };
  auto whole = new_tracer();
  try {
    return capture(whole.get(), function, inputs, options);
  } catch (...) {
    if (!whole->needs_split_composites) throw;
  }
  auto split = new_tracer();
  split->splits_composites = true;
  return capture(split.get(), function, inputs, options);
}

}  // namespace umbra
