#include "umbra/view/program_cost.h"

#include <charconv>
#include <map>
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

/// The sizes that were given, by the program's symbols, and the example's or the least possible of all others. With one
/// symbol alone any name is its own.
void choose_sizes(const ExportedProgram& program, const std::vector<std::string>& given, ProgramCost& cost) {
  std::map<std::string, int64_t> free;
  if (program.shape_env)
    for (const sym::Symbol& s : program.shape_env->symbols())
      if (s.backed && !s.replacement)
        free[s.name] = s.expression->has_hint() ? s.expression->hint_int() : static_cast<int64_t>(s.range.lower);
  std::string only;  // what the one symbol is called here
  for (const std::string& text : given) {
    size_t at = text.find('=');
    check<ValueError>(at != std::string::npos, "a size is given as NAME=NUMBER, not ", text);
    std::string name = text.substr(0, at);
    if (free.size() == 1) {
      check<ValueError>(only.empty() || only == name, "the program has one size alone, ", free.begin()->first,
                        ", and there are two names, ", only, " and ", name);
      only = std::exchange(name, free.begin()->first);
    }
    auto found = free.find(name);
    if (found == free.end()) {
      std::string names;
      for (const auto& [known, _] : free) names += " " + known;
      fail<ValueError>("the program has no size ", name, "; it has", names.empty() ? " none" : names);
    }
    found->second = read_number(text.substr(at + 1));
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
