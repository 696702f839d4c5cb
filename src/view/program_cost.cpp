#include "umbra/view/program_cost.h"

#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "umbra/autograd/grad_mode.h"
#include "umbra/export/input_check.h"
#include "umbra/export/unlift.h"
#include "umbra/fake/fake_mode.h"
#include "umbra/generated/functions.h"
#include "umbra/graph/interpreter.h"

namespace umbra {

namespace {

int64_t read_number(const std::string& text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check<ValueError>(error == std::errc() && end == text.data() + text.size() && value >= 0, "'", text, "' is no size");
  return value;
}

/// "s77=64" as the name of a size and its number, or "64" where there is one size alone.
std::pair<std::string, int64_t> read_size(const std::string& text, const std::map<std::string, int64_t>& sizes) {
  size_t at = text.find('=');
  std::string name = text.substr(0, at == std::string::npos ? 0 : at),
              number = at == std::string::npos ? text : text.substr(at + 1);
  if (at == std::string::npos && sizes.size() == 1) name = sizes.begin()->first;
  std::string known, advice;
  for (const auto& [size, _] : sizes) known += (known.empty() ? "" : ", ") + size;
  if (sizes.size() == 1) advice = ", and a number alone is enough";
  check<ValueError>(!sizes.empty(), "the program has no dynamic sizes, and ", text, " was given");
  check<ValueError>(!name.empty(), "a size is given as NAME=NUMBER, not ", text, "; the program has ", known);
  check<ValueError>(sizes.contains(name), "the program has no size ", name, "; it has ", known, advice);
  return {name, read_number(number)};
}

/// The sizes that were given, by the program's symbols, and the example's or the least possible of all others. A
/// program with one symbol needs no name.
void choose_sizes(const ExportedProgram& program, const std::vector<std::string>& given, ProgramCost& cost) {
  std::map<std::string, int64_t> free;
  if (program.shape_env)
    for (const sym::Symbol& s : program.shape_env->symbols())
      if (s.backed && !s.replacement)
        free[s.name] = s.expression->has_hint() ? s.expression->hint_int() : static_cast<int64_t>(s.range.lower);
  std::set<std::string> named;
  for (const std::string& text : given) {
    auto [name, number] = read_size(text, free);
    check<ValueError>(named.insert(name).second, "the size ", name, " is given twice");
    free[name] = number;
  }
  if (!program.shape_env) return;
  for (const sym::Symbol& s : program.shape_env->symbols())
    if (auto found = free.find(s.name); found != free.end()) {
      cost.bindings.set(s.expression, found->second);
      cost.sizes.emplace_back(s.name, found->second);
    }
}

int64_t size_of(const ExportedProgram& program, SymInt size, const sym::Bindings& bindings) {
  if (!size.is_symbolic()) return size.value();
  std::optional<int64_t> value = program.shape_env->evaluate(size, bindings);
  check<ValueError>(value.has_value(), "the size ", size, " of an input has no value for the sizes given");
  return *value;
}

/// What the program is called with: fake tensors of the sizes that were chosen, the numbers of the example.
std::vector<Value> make_inputs(const ExportedProgram& program, FakeMode& mode, const sym::Bindings& bindings) {
  std::vector<Value> inputs;
  std::vector<fx::Node*> placeholders = program.graph().placeholders();
  for (size_t i = 0; i < program.signature.inputs.size(); ++i) {
    const InputSpec& spec = program.signature.inputs[i];
    if (spec.kind == InputKind::ConstantInput) inputs.push_back(spec.value);
    if (spec.kind != InputKind::UserInput) continue;
    const Value& example = placeholders.at(i)->meta.val;
    if (example.tag() == Value::Tag::SymInt) {
      inputs.emplace_back(size_of(program, example.to_sym_int(), bindings));
    } else if (example.is_tensor()) {
      const Tensor& t = example.tensor_ref();
      SymShape sizes, strides;
      for (SymInt s : t.sym_sizes()) sizes.push_back(size_of(program, s, bindings));
      for (SymInt s : t.sym_strides()) strides.push_back(size_of(program, s, bindings));
      inputs.emplace_back(mode->make(TensorSpec(sizes, strides, t.dtype(), t.device())));
    } else {
      inputs.push_back(example);
    }
  }
  return inputs;
}

/// The program over fake weights; parameters require gradients where it is trained.
ExportedProgram fake_weights(ExportedProgram program, FakeMode& mode, bool training) {
  auto is_parameter = [&](const std::string& name) {
    for (const InputSpec& input : program.signature.inputs)
      if (input.kind == InputKind::Parameter && input.target == name) return true;
    return false;
  };
  for (NamedTensors* list : {&program.state, &program.constants})
    for (auto& [name, tensor] : *list) {
      tensor = mode.from_tensor(tensor.detach());
      if (training && is_parameter(name) && tensor.is_floating_point()) tensor.requires_grad_();
    }
  return program;
}

Tensor loss_of(const std::vector<Value>& outputs) {
  Tensor loss;
  for (const Value& value : outputs)
    value.each_tensor([&](TensorImpl* impl) {
      Tensor t{IntrusivePtr<TensorImpl>(impl)};
      if (t.requires_grad()) loss = loss.defined() ? loss.add(t.sum()) : t.sum();
    });
  check<ValueError>(loss.defined(), "no result of the program has a gradient: it cannot be trained");
  return loss;
}

int64_t storage_bytes(const NamedTensors& tensors) {
  std::map<const StorageImpl*, int64_t> seen;
  for (const auto& [_, t] : tensors) seen[t.storage().get()] = t.storage()->bytes().guard_int();
  int64_t sum = 0;
  for (const auto& [_, bytes] : seen) sum += bytes;
  return sum;
}

/// Runs the graph, each call inside the scope of its module.
std::vector<Value> run_forward(const ExportedProgram& program, const std::vector<Value>& inputs, CostTrace& trace,
                               ProgramCost& cost) {
  IntrusivePtr<fx::GraphModule> module = unlift(program);
  fx::Interpreter interpreter(module);
  interpreter.on_call([&](fx::NodeCall& call) {
    const auto& modules = call.node().meta.modules;
    trace.enter_scope(modules && !modules->frames().empty() ? modules->frames().back().path : "");
    struct Leave {
      CostTrace& trace;
      ~Leave() { trace.leave_scope(); }
    } leave{trace};
    Value result = call.run();
    cost.nodes.emplace_back(call.node().name(), trace.operation_count());
    return result;
  });
  return interpreter.run(inputs);
}

}  // namespace

ProgramCost cost_of(const ExportedProgram& original, const ProgramCostOptions& options) {
  check_operators(original);
  ProgramCost cost;
  choose_sizes(original, options.sizes, cost);
  FakeMode mode({.allow_non_fake_inputs = true});
  auto scope = mode.enter();
  ExportedProgram program = fake_weights(original, mode, options.training);
  std::vector<Value> inputs = make_inputs(original, mode, cost.bindings);
  InputCheck(original).run(inputs);
  auto trace = make_counted<CostTrace>(CostTrace::Counts::All);
  for (const NamedTensors* list : {&program.state, &program.constants})
    for (const auto& [_, tensor] : *list) trace->hold(tensor);
  for (const Value& input : inputs)
    if (input.is_tensor()) trace->hold(input.tensor_ref());
  trace->start();
  {
    EnterMode counting(trace);
    trace->begin("forward");
    SetGradEnabled gradients(options.training);
    Tensor loss;
    {
      std::vector<Value> outputs = run_forward(program, inputs, *trace, cost);
      if (options.training) loss = loss_of(outputs);
    }
    if (options.training) {
      trace->begin("backward");
      loss.backward();
    }
  }
  trace->stop();
  cost.report = trace->report();
  cost.weights = storage_bytes(program.state);
  cost.constants = storage_bytes(program.constants);
  return cost;
}

}  // namespace umbra
