#include "estimate.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

#include "umbra/fake/cost.h"
#include "umbra/umbra.h"

namespace umbra {

namespace {

/// The sizes that were given, by the program's symbols, and the example's or the least possible of all others. With one
/// symbol alone any name is its own.
sym::Bindings read_sizes(const ExportedProgram& program, const std::vector<std::string>& given) {
  std::map<std::string, int64_t> free;
  if (program.shape_env)
    for (const sym::Symbol& s : program.shape_env->symbols())
      if (s.backed && !s.replacement)
        free[s.name] = s.expression->has_hint() ? s.expression->hint_int() : static_cast<int64_t>(s.range.lower);
  for (const std::string& text : given) {
    size_t at = text.find('=');
    detail::check<ValueError>(at != std::string::npos, "a size is given as NAME=NUMBER, not ", text);
    std::string name = free.size() == 1 ? free.begin()->first : text.substr(0, at);
    auto found = free.find(name);
    if (found == free.end()) {
      std::string names;
      for (const auto& [known, _] : free) names += " " + known;
      detail::fail<ValueError>("the program has no size ", name, "; it has", names.empty() ? " none" : names);
    }
    found->second = std::stoll(text.substr(at + 1));
  }
  sym::Bindings bindings;
  if (program.shape_env)
    for (const sym::Symbol& s : program.shape_env->symbols())
      if (auto found = free.find(s.name); found != free.end()) {
        bindings.set(s.expression, found->second);
        std::printf("%-12s %s = %lld\n", "Size", s.name.c_str(), static_cast<long long>(found->second));
      }
  return bindings;
}

int64_t size_of(const ExportedProgram& program, SymInt size, const sym::Bindings& bindings) {
  if (!size.is_symbolic()) return size.value();
  std::optional<int64_t> value = program.shape_env->evaluate(size, bindings);
  detail::check<ValueError>(value.has_value(), "the size ", size, " of an input has no value for the sizes given");
  return *value;
}

/// What the program is called with: fake tensors of the sizes that were chosen, the numbers of the example.
std::vector<Value> make_inputs(const ExportedProgram& program, FakeMode& mode, const sym::Bindings& bindings) {
  std::vector<Value> inputs;
  std::vector<fx::Node*> placeholders;
  for (fx::Node* node : program.graph().nodes())
    if (node->op() == fx::Op::Placeholder) placeholders.push_back(node);
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
      if (t.requires_grad()) loss = loss.defined() ? loss + t.sum() : t.sum();
    });
  detail::check<ValueError>(loss.defined(), "no result of the program has a gradient: it cannot be trained");
  return loss;
}

std::string amount(double value, double base, const char* units, const char* unit) {
  size_t power = 0;
  for (; value >= base && units[power + 1]; ++power) value /= base;
  char text[64];
  std::snprintf(text, sizeof text, "%.4g ", value);
  return (power ? text + std::string(1, units[power]) : text) + unit;
}

int64_t storage_bytes(const NamedTensors& tensors) {
  std::map<const StorageImpl*, int64_t> seen;
  for (const auto& [_, t] : tensors) seen[t.storage().get()] = t.storage()->bytes().guard_int();
  int64_t sum = 0;
  for (const auto& [_, bytes] : seen) sum += bytes;
  return sum;
}

}  // namespace

void estimate_program(const std::string& path, const EstimateOptions& options) {
  ExportedProgram original = load(path);
  sym::Bindings bindings = read_sizes(original, options.sizes);
  FakeMode mode({.allow_non_fake_inputs = true});
  auto scope = mode.enter();
  ExportedProgram program = fake_weights(original, mode, options.training);
  std::vector<Value> inputs = make_inputs(original, mode, bindings);
  ExportedModule module(program);
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
      std::vector<Value> outputs = module.run(inputs);
      if (options.training) loss = loss_of(outputs);
    }
    if (options.training) {
      trace->begin("backward");
      loss.backward();
    }
  }
  trace->stop();
  CostReport report = trace->report();
  const CostOperation* at = report.peak_operation();
  auto bytes = [](int64_t value) { return amount(static_cast<double>(value), 1000, " KMGTPE", "B"); };
  std::vector<std::pair<std::string, std::string>> rows = {{"Weights", bytes(storage_bytes(program.state))},
                                                           {"Constants", bytes(storage_bytes(program.constants))}};
  for (const auto& [name, value] : rows) std::printf("%-12s %s\n", name.c_str(), value.c_str());
  std::printf("%-12s %s, at %s\n", "Peak", bytes(report.peak).c_str(),
              at ? std::string(at->name).c_str() : "the start");
  std::printf("%-12s %s\n", "Operations", amount(static_cast<double>(report.flops()), 1000, " KMGTPE", "FLOP").c_str());
  if (options.plot.empty()) return;
  std::ofstream file(options.plot);
  file << cost_page(report, path, rows);
  detail::check(file.good(), "cannot write ", options.plot);
}

}  // namespace umbra
