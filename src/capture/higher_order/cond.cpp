// cond: one of two functions, chosen by a tensor.
#include <algorithm>

#include "capture/higher_order/layers.h"
#include "capture/higher_order/metadata.h"
#include "umbra/capture/needs_symbols.h"
#include "umbra/fake/cost.h"
#include "umbra/generated/functions.h"

namespace umbra {

namespace {

enum { kPredicate, kTrue, kFalse, kOperands };

bool is_true(const Value& predicate) {
  if (!predicate.is_tensor()) return predicate.to_bool();
  const Tensor& t = predicate.tensor_ref();
  check(t.numel() == 1, "Expected pred to be bool or single-element tensor, but got a tensor of ", t.numel(),
        " elements");
  return t.item().to_bool();
}

std::vector<Value> operands(const FunctionCall& call, size_t) { return call.list(kOperands); }

std::vector<Value> run(const FunctionCall& call) {
  return call.run_function(is_true(call.argument(kPredicate)) ? 0 : 1, call.list(kOperands));
}

template <class T> void check_same(const char* what, const T& a, const T& b) {
  if (!(a == b))
    fail<UserError>("When merging two branches' output in torch.cond,  expected same ", what, " but got ", a, " and ",
                    b, ".");
}

void check_same_kind(const Value& a, const Value& b, size_t i) {
  bool tensors = a.is_tensor() && b.is_tensor();
  check<UserError>(tensors || (is_integer(a) && is_integer(b)),
                   "torch.cond: unsupported branch return type (constant non-int)\n"
                   "  Explanation: Constants returned from branches must be ints; result ",
                   i, " is ", tag_name(a.tag()), " in the true branch and ", tag_name(b.tag()), " in the false branch");
  if (!tensors) return;
  const Tensor &x = a.tensor_ref(), &y = b.tensor_ref();
  check_same("dtype", x.dtype(), y.dtype());
  check_same("device", x.device(), y.device());
  check_same("dim", x.dim(), y.dim());
}

/// The dimensions from the one whose elements lie closest, those of one element left out.
std::vector<int64_t> order_of_dims(const Tensor& t) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (to_string(t.sym_sizes()[d]) != "1") dims.push_back(d);
  std::ranges::stable_sort(dims, [&](int64_t a, int64_t b) { return t.sym_strides()[a] < t.sym_strides()[b]; });
  return dims;
}

/// The program that follows takes one order for granted.
void check_order(const Tensor& x, const Tensor& y) {
  std::string of_true = to_string(x.sym_strides()), of_false = to_string(y.sym_strides());
  check(of_true == of_false || order_of_dims(x) == order_of_dims(y),
        "The sorted order of strides of the two branches' output doesn't match. this indicates the contiguousness of "
        "the two branches are different. True branch has stride ",
        of_true, " but false branch has stride ", of_false,
        ".Consider using contiguous() to make the two branches have the same contiguousness.");
}

/// What two branches give for one result, of which nobody can say which it will be. Numbers and sizes that differ are
/// told by the run alone: symbols, where there is an environment to have them.
class Merge {
 public:
  explicit Merge(const FunctionCall& call) : env_(symbols_for(call)) {}

  Value of(const Value& a, const Value& b) const {
    if (!a.is_tensor()) return Value(either("number", a.to_sym_int(), b.to_sym_int(), false));
    const Tensor &x = a.tensor_ref(), &y = b.tensor_ref();
    SymShape sizes(x.sym_sizes());
    bool same = true;
    for (int64_t d = 0; d < x.dim(); ++d) {
      sizes[d] = either("size", x.sym_sizes()[d], y.sym_sizes()[d], true);
      same &= sizes[d].raw() == x.sym_sizes()[d].raw();
    }
    if (same) {
      check_order(x, y);
      return fresh({a})[0];
    }
    check<NotImplementedError>(x.is_contiguous() && y.is_contiguous(),
                               "torch.cond: branches that give tensors of different sizes must give contiguous ones");
    return Value(fake_mode_of(x)->make(TensorSpec(sizes, x.dtype(), x.device())));
  }

 private:
  SymInt either(const char* what, SymInt a, SymInt b, bool size) const {
    if (a.raw() == b.raw() || to_string(a) == to_string(b)) return a;
    check<NeedsSymbols>(env_, "torch.cond: branches that give another ", what, ", ", a, " and ", b,
                        ", cannot be captured without symbolic shapes; capture with tracing_mode=\"symbolic\"");
    sym::Range x = env_->bound_range(a), y = env_->bound_range(b);
    return env_->create_unbacked(x.unite(y), size);
  }
  sym::ShapeEnv* env_;
};

std::vector<Value> results(const FunctionCall& call, const std::vector<std::vector<Value>>& of) {
  check<UserError>(of[0].size() == of[1].size(), "Unmatched number of outputs from cond() branches: true branch gives ",
                   of[0].size(), ", false branch gives ", of[1].size());
  Merge merge(call);
  forget_memory(of[1]);
  std::vector<Value> out;
  for (size_t i = 0; i < of[0].size(); ++i) {
    check_same_kind(of[0][i], of[1][i], i);
    out.push_back(merge.of(of[0][i], of[1][i]));
  }
  return out;
}

/// Both functions run, one after the other.
std::vector<Value> rehearse(const FunctionCall& call, CostTrace& trace) {
  CostTrace::OneOf dearer(trace);
  std::vector<std::vector<Value>> of{call.run_function(0, call.list(kOperands))};
  forget_memory(of[0]);
  dearer.next();
  of.push_back(call.run_function(1, call.list(kOperands)));
  return results(call, of);
}

/// Both functions run, and each element of the batch takes its own.
std::vector<Value> run_undecided(const FunctionCall& call) {
  std::vector<std::vector<Value>> of{call.run_function(0, call.list(kOperands)),
                                     call.run_function(1, call.list(kOperands))};
  check<UserError>(of[0].size() == of[1].size(), "Unmatched number of outputs from cond() branches: true branch gives ",
                   of[0].size(), ", false branch gives ", of[1].size());
  Tensor predicate = call.argument(kPredicate).tensor().reshape({}).to(DType::Bool);
  std::vector<Value> out;
  for (size_t i = 0; i < of[0].size(); ++i) {
    check_same_kind(of[0][i], of[1][i], i);
    if (!of[0][i].is_tensor()) {
      check_same("number", to_string(of[0][i].to_sym_int()), to_string(of[1][i].to_sym_int()));
      out.push_back(of[0][i]);
      continue;
    }
    const Tensor &x = of[0][i].tensor_ref(), &y = of[1][i].tensor_ref();
    check_same("size", to_string(x.sym_sizes()), to_string(y.sym_sizes()));
    out.push_back(Value(where(predicate, x, y)));
  }
  return out;
}

bool has_unknown_size(const Value& v) {
  if (!v.is_tensor()) return false;
  SymIntArrayRef sizes = v.tensor_ref().sym_sizes();
  return std::any_of(sizes.begin(), sizes.end(), [](SymInt s) { return !s.has_hint(); });
}

/// A cond of gradients. Those of the branches are recorded at once, while what they refer to is there.
FunctionBackward gradient(const FunctionCall& call, const std::vector<Value>& results) {
  std::vector<Value> inputs = call.list(kOperands), weights;
  std::vector<size_t> wanted = requiring_gradients(inputs), given = differentiable(results);
  check<NotImplementedError>(std::none_of(results.begin(), results.end(), has_unknown_size) ||
                                 std::any_of(inputs.begin(), inputs.end(), has_unknown_size),
                             "torch.cond: the gradient of branches that give tensors of different sizes cannot be "
                             "captured yet; detach what they are given, or use no_grad");
  for (size_t i : given) weights.push_back(results[i]);
  Value of_true = function_value(function_gradient(call, 0, inputs, wanted, weights, given), true);
  Value of_false = function_value(function_gradient(call, 1, inputs, wanted, weights, given), true);
  return [=](const FunctionCall& saved, const std::vector<Tensor>& incoming) {
    std::vector<Value> operands = saved.list(kOperands), all = operands;
    for (size_t i : given) all.push_back(Value(incoming[i]));
    std::vector<Value> found =
        FunctionCall(saved.op(), {saved.argument(kPredicate), of_true, of_false, Value(std::move(all))}).call();
    std::vector<Tensor> gradients = gradients_of(operands, wanted, [&](size_t k, size_t) { return found[k].tensor(); });
    if (saved.argument(kPredicate).is_tensor()) gradients.emplace(gradients.begin());
    return gradients;
  };
}

const RegisterHigherOrder kCond({
    .schema = "cond(Any pred, Callable true_fn, Callable false_fn, Any[] operands) -> Any[]",
    .graphs = {"true_graph_", "false_graph_"},
    .operands = kOperands,
    .inputs = operands,
    .run = run,
    .results = results,
    .rehearse = rehearse,
    .gradient = gradient,
    .run_undecided = run_undecided,
});

}  // namespace

std::vector<Value> cond(const Value& predicate, const ValueFunction& true_function, const ValueFunction& false_function,
                        const std::vector<Value>& operands) {
  check(predicate.is_tensor() || predicate.is_scalar(), "Expected pred to be bool or tensor, but got ",
        tag_name(predicate.tag()));
  FunctionCall call(*kCond.op,
                    {predicate, function_value(true_function), function_value(false_function), Value(operands)});
  // A relation of sizes is decided where it can be: a captured program decides it in each run.
  bool decided = !predicate.is_tensor() && !(predicate.is_symbolic() && is_captured(call));
  return decided ? (predicate.to_bool() ? true_function : false_function)(operands) : call.call();
}

}  // namespace umbra
