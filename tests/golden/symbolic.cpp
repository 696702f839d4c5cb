// Records run on fake tensors whose sizes are symbols: what comes out has the sizes that a run on data has, once the
// symbols have their example's values.
#include <algorithm>

#include "levels.h"
#include "umbra/fake/fake_mode.h"

namespace umbra::golden {
namespace {

Tensor symbolic(const FakeMode& mode, const Tensor& real, size_t index) {
  SymbolicContext context{concat("L['x", index, "']"),
                          std::vector<sym::SymbolOptions>(static_cast<size_t>(real.dim()))};
  for (sym::SymbolOptions& dim : context.dims) dim.policy = sym::Policy::Dynamic;
  return mode.from_tensor(real, context);
}

// Sizes that only the run tells have no value to compare; they stand for any.
void check_hints(SymIntArrayRef got, const std::vector<int64_t>& want, SymIntArrayRef sizes, bool strides,
                 const std::string& what) {
  if (got.size() != want.size()) throw Mismatch(concat(what, ": ", got.size(), " dimensions, expected ", want.size()));
  for (size_t d = 0; d < want.size(); ++d) {
    if (!got[d].has_hint() || (strides && (!sizes[d].has_hint() || sizes[d].hint() <= 1))) continue;
    if (got[d].hint() != want[d])
      throw Mismatch(concat(what, " ", d, " is ", got[d], " = ", got[d].hint(), ", expected ", want[d]));
  }
}

bool is_refusal_by_name(const std::exception& e) {
  return dynamic_cast<const DataDependentOutputException*>(&e) ||
         dynamic_cast<const DynamicOutputShapeException*>(&e) ||
         dynamic_cast<const UnsupportedOperatorException*>(&e) || dynamic_cast<const NotImplementedError*>(&e) ||
         dynamic_cast<const GuardOnDataDependentSymNode*>(&e);
}

bool has_elements(SymIntArrayRef sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](SymInt s) { return !s.has_hint() || s.hint() > 0; });
}

}  // namespace

bool check_symbolic(const Operator& op, const Group& group, const Json& record) {
  std::string status = record["fake"]["status"];
  if (status != "ok" && status != "raises") return false;
  FakeMode mode(
      {.shape_env = make_counted<sym::ShapeEnv>(), .allow_scalar_outputs = true, .allow_dynamic_output_shapes = true});
  std::vector<Tensor> fakes, outs, tensors = build_tensors(group, record, true);
  try {
    auto scope = mode.enter();
    for (size_t i = 0; i < tensors.size(); ++i)
      fakes.push_back(tensors[i].defined() ? symbolic(mode, tensors[i], i) : tensors[i]);
    outs = flat_tensors(op(build_arguments(op, record, fakes)));
  } catch (const std::exception& e) {
    if (is_refusal_by_name(e) || status == "raises") return true;
    throw Mismatch(concat("raised: ", e.what()));
  }
  if (status == "raises") return true;       // a symbol stands for what only data tells
  const Json& want = record["out_tensors"];  // of the run on data: PyTorch's own fake runs give others in places
  if (outs.size() != want.size()) throw Mismatch(concat(outs.size(), " output tensors, expected ", want.size()));
  for (size_t i = 0; i < outs.size(); ++i) {
    if (want[i].is_null() || !outs[i].defined()) continue;
    std::string what = concat("output ", i);
    SymIntArrayRef sizes = outs[i].sym_sizes();
    check_hints(sizes, want[i]["sizes"].get<std::vector<int64_t>>(), sizes, false, what + ": size");
    if (want[i].contains("strides") && has_elements(sizes))
      check_hints(outs[i].sym_strides(), want[i]["strides"].get<std::vector<int64_t>>(), sizes, true,
                  what + ": stride");
  }
  return true;
}

}  // namespace umbra::golden
