// Ahead-of-time autograd of every record: the compiled call gives what the call gives, writes what it writes, shares
// memory as it does, and has its gradients. With sizes that are numbers and sizes that are symbols; each twice, so that
// the second call runs what the first captured.
#include "levels.h"
#include "umbra/aot/compile.h"
#include "umbra/autograd/autograd.h"

namespace umbra::golden {
namespace {

/// What one call left behind. An error's text, where it ended in one.
struct Run {
  std::string error;
  bool refused = false;
  std::vector<Tensor> results, inputs, gradients;
  std::vector<int> aliases;  // of each result: the input whose memory it shares, or -1
};

/// What comes back for a result: as recorded, or numbers between -1 and 1 that are the same in every run.
Tensor cotangent_of(const Tensor& t, const Group& group, const Json& record, size_t output) {
  const Json& g = record["grad"];
  if (g.contains("cotangents") && output < g["cotangents"].size() && !g["cotangents"][output].is_null())
    return dense_tensor(group.blob(g["cotangents"][output]), t.dtype(), {t.sizes().begin(), t.sizes().end()});
  Tensor places = arange(Scalar(t.numel()), {.dtype = DType::Float64});
  return (places * 0.7 + 1.1).sin().view(t.sizes()).to(t.dtype());
}

int alias_of(const Tensor& result, const std::vector<Tensor>& inputs) {
  if (!result.defined() || result.numel() == 0) return -1;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].storage() == result.storage()) return static_cast<int>(i);
  return -1;
}

/// What depends on data, and what functionalisation cannot carry, has no graph, and is refused by name.
bool is_refusal(const std::exception& e) {
  std::string text = e.what();
  return dynamic_cast<const DataDependentOutputException*>(&e) ||
         dynamic_cast<const UnsupportedOperatorException*>(&e) ||
         dynamic_cast<const DynamicOutputShapeException*>(&e) || dynamic_cast<const GuardOnDataDependentSymNode*>(&e) ||
         text.find("value out of a tracing tensor") != std::string::npos ||
         text.find("cannot be captured") != std::string::npos;
}

/// Calls the function on the record's inputs; where they are to be differentiated, they are leaves, and what is written
/// is a copy of one.
Run run(const ValueFunction& function, const Group& group, const Json& record, bool gradients) {
  Run out;
  std::vector<Tensor> leaves;
  manual_seed(3);
  for (const Tensor& t : build_tensors(group, record, !gradients)) {
    bool differentiable = gradients && is_differentiable(t.dtype());
    Tensor leaf = differentiable ? t.detach().requires_grad_() : t;
    if (differentiable) leaves.push_back(leaf);
    bool written = false;
    for (const Json& m : record.value("mutated", Json::array())) written |= m["input"] == out.inputs.size();
    out.inputs.push_back(differentiable && written ? leaf.clone() : leaf);
  }
  try {
    out.results = flat_tensors(function({out.inputs.begin(), out.inputs.end()}));
    for (const Tensor& t : out.results) out.aliases.push_back(alias_of(t, out.inputs));
    if (!gradients) return out;
    std::vector<Tensor> used, weights;
    std::vector<Tensor> given = out.results;
    given.insert(given.end(), out.inputs.begin(), out.inputs.end());
    for (size_t i = 0; i < given.size(); ++i)
      if (given[i].defined() && given[i].requires_grad() && !given[i].is_leaf())
        used.push_back(given[i]), weights.push_back(cotangent_of(given[i], group, record, i));
    if (!used.empty()) out.gradients = autograd::grad(used, leaves, weights, {}, true);
  } catch (const std::bad_alloc&) {
    out.error = "no memory";
  } catch (const std::exception& e) {
    out.error = e.what();
    out.refused = is_refusal(e);
  }
  return out;
}

void compare(const Run& got, const Run& want, const Json& record, const std::string& what) {
  if (got.error.empty() != want.error.empty())
    throw Mismatch(concat(what, " gave '", got.error, "', the call itself '", want.error, "'"));
  if (!want.error.empty()) return;
  check_same(got.results, want.results, record, what);
  for (size_t i = 0; i < want.results.size(); ++i) {
    if (got.aliases[i] != want.aliases[i])
      throw Mismatch(
          concat(what, ": output ", i, " shares memory with input ", got.aliases[i], ", not ", want.aliases[i]));
    if (!want.results[i].defined()) continue;
    if (got.results[i].requires_grad() != want.results[i].requires_grad())
      throw Mismatch(concat(what, ": output ", i, got.results[i].requires_grad() ? " requires" : " does not require",
                            " gradients"));
    for (int64_t d = 0; d < want.results[i].dim() && want.results[i].numel(); ++d)
      if (want.results[i].size(d) > 1 && got.results[i].stride(d) != want.results[i].stride(d))
        throw Mismatch(concat(what, ": output ", i, " has strides ", got.results[i].strides(), ", not ",
                              want.results[i].strides()));
  }
  Json other = {
      {"tol", record.contains("grad") && record["grad"].contains("tol") ? record["grad"]["tol"] : record["tol"]}};
  if (record.value("skip_outputs", Json::array()).empty())
    check_same(got.inputs, want.inputs, other, what + ", inputs afterwards");
  check_same(got.gradients, want.gradients, other, what + ", gradients");
}

}  // namespace

bool check_aot(const Operator& op, const Group& group, const Json& record) {
  if (!record["deterministic"] || record["tensors"].empty()) return false;
  ValueFunction call = [&](const std::vector<Value>& inputs) {
    std::vector<Tensor> values;
    for (const Value& v : inputs) values.push_back(v.tensor());
    std::vector<Tensor> results = flat_tensors(op(build_arguments(op, record, values)));
    return std::vector<Value>(results.begin(), results.end());
  };
  bool any = false;
  for (bool gradients : {false, true}) {
    if (gradients && !record.contains("grad")) continue;
    Run want = run(call, group, record, gradients);
    for (bool dynamic : {false, true}) {
      aot::CompiledFunction compiled = aot::compile(call, {.dynamic = dynamic});
      ValueFunction compiled_call = [&](const std::vector<Value>& inputs) { return compiled.run(inputs); };
      for (int time : {0, 1}) {
        Run got = run(compiled_call, group, record, gradients);
        if (want.error.empty() && got.refused) break;
        compare(got, want, record,
                concat(gradients ? "training" : "inference", dynamic ? ", symbolic" : "", time ? ", again" : ""));
        any = true;
      }
    }
  }
  return any;
}

}  // namespace umbra::golden
