// Functionalisation: an operator that writes does the same, and refuses the same in the same words, when its writes are
// taken out of the program. The records' calls, and those calls with one thing made wrong, are run both ways.
#include <cstring>

#include "levels.h"
#include "umbra/capture/functionalize.h"

namespace umbra::golden {
namespace {

constexpr int kChangedCalls = 4;

/// What one run left behind.
struct Run {
  std::string error;
  std::vector<Tensor> results, inputs;
};

Run run(const Operator& op, const Json& record, std::vector<Tensor> tensors, bool functional) {
  Run out;
  out.inputs = std::move(tensors);
  manual_seed(1);
  ValueFunction call = [&](const std::vector<Value>& inputs) {
    std::vector<Tensor> given;
    for (const Value& v : inputs) given.push_back(v.tensor());
    return op(build_arguments(op, record, given));
  };
  try {
    out.results = flat_tensors((functional ? functionalize(call) : call)({out.inputs.begin(), out.inputs.end()}));
  } catch (const std::bad_alloc&) {
    out.error = "no memory";
  } catch (const std::exception& e) {
    out.error = concat(typeid(e).name(), ": ", e.what());
  }
  return out;
}

/// Equal to the last bit, nan included.
bool same_contents(const Tensor& a, const Tensor& b) {
  Tensor x = a.resolve_conj().resolve_neg().contiguous(), y = b.resolve_conj().resolve_neg().contiguous();
  size_t bytes = static_cast<size_t>(x.numel() * x.item_size());
  return bytes == 0 || std::memcmp(x.raw_data(), y.raw_data(), bytes) == 0;
}

void compare(const std::vector<Tensor>& eager, const std::vector<Tensor>& functional, bool values, const char* what) {
  if (eager.size() != functional.size()) throw Mismatch(concat(functional.size(), " ", what, "s, not ", eager.size()));
  for (size_t i = 0; i < eager.size(); ++i) {
    const Tensor &a = eager[i], &b = functional[i];
    if (a.dtype() != b.dtype() || !(a.sizes() == b.sizes()))
      throw Mismatch(concat(what, " ", i, ": ", b.dtype(), " ", b.sizes(), ", not ", a.dtype(), " ", a.sizes()));
    if (values && !same_contents(a, b)) throw Mismatch(concat(what, " ", i, ": other values"));
  }
}

void run_both_ways(const Operator& op, const Json& record, bool values, const std::vector<Tensor>& tensors,
                   const std::vector<Tensor>& again, const char* what) {
  Run eager = run(op, record, tensors, false), functional = run(op, record, again, true);
  // What functionalisation cannot carry it refuses, and says so.
  if (functional.error.find("cannot be captured") != std::string::npos) return;
  if (eager.error != functional.error)
    throw Mismatch(concat(what, " gave '", functional.error, "', with data '", eager.error, "'"));
  if (!eager.error.empty()) return;
  compare(eager.results, functional.results, values, "result");
  compare(eager.inputs, functional.inputs, values, "input");
}

}  // namespace

bool check_functional(const Operator& op, const Group& group, const Json& record) {
  if (!op.is_mutable()) return false;
  bool values = record.value("deterministic", true);
  run_both_ways(op, record, values, build_tensors(group, record, false), build_tensors(group, record, false),
                "the call");
  for (int i = 0; i < kChangedCalls; ++i) {
    std::string seed = concat(record["id"].get<std::string>(), i);
    Json changed = {{"args", record["args"]}, {"kwargs", record["kwargs"]}}, same = changed;
    std::vector<Tensor> tensors = build_tensors(group, record, false), again = build_tensors(group, record, false);
    make_wrong(seed, changed, tensors);
    make_wrong(seed, same, again);
    run_both_ways(op, changed, values, tensors, again, "the changed call");
  }
  return true;
}

}  // namespace umbra::golden
