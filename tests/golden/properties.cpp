// What holds of every operator, whatever it computes: in-place and out variants give what the operator gives; results
// depend neither on how inputs lie in memory nor on the number of threads, beyond rounding; a captured call gives what
// the call gave.
#include "levels.h"
#include "umbra/autograd/saved_tensor.h"
#include "umbra/capture/make_fx.h"

namespace umbra::golden {
namespace {

/// Values of a record are compared where the operator fixes them.
bool is_fixed(const Operator& op, const Json& record) {
  const Operator& source = op.functional() ? *op.functional() : op;
  return record["deterministic"] && !op.definition().random && !source.definition().random;
}

bool is_skipped(const Json& record, size_t output) {
  auto skip = record.value("skip_outputs", std::vector<size_t>());
  return std::find(skip.begin(), skip.end(), output) != skip.end();
}

}  // namespace

void check_same(const std::vector<Tensor>& got, const std::vector<Tensor>& want, const Json& record,
                const std::string& what) {
  if (got.size() != want.size()) throw Mismatch(concat(what, ": ", got.size(), " tensors, not ", want.size()));
  for (size_t i = 0; i < want.size(); ++i) {
    std::string which = concat(what, ": output ", i);
    if (got[i].defined() != want[i].defined()) throw Mismatch(which + ": there or not");
    if (!want[i].defined()) continue;
    if (got[i].dtype() != want[i].dtype() || !(got[i].sizes() == want[i].sizes()))
      throw Mismatch(
          concat(which, ": ", got[i].dtype(), " ", got[i].sizes(), ", not ", want[i].dtype(), " ", want[i].sizes()));
    if (!is_skipped(record, i)) check_close(got[i], want[i], record["tol"], which);
  }
}

namespace {

std::vector<Tensor> run(const Operator& op, const Json& record, const std::vector<Tensor>& tensors) {
  return flat_tensors(op(build_arguments(op, record, tensors)));
}

// ---- variants ----

void check_inplace_variant(const Operator& op, const Json& record, std::vector<Value> arguments, const Tensor& want) {
  const Tensor self = arguments[0].tensor();
  if (!(self.sizes() == want.sizes()) || self.dtype() != want.dtype()) return;
  arguments[0] = Value(self.clone());
  Tensor written = arguments[0].tensor();
  std::vector<Tensor> got = flat_tensors((*op.inplace())(std::move(arguments)));
  check_same(got, {want}, record, "in place");
  check_same({written}, {want}, record, "what was written in place");
}

void check_out_variant(const Operator& variant, const Json& record, std::vector<Value> arguments,
                       const std::vector<Tensor>& want, bool sized) {
  std::vector<Tensor> outs;
  for (const Tensor& t : want)
    outs.push_back(sized ? empty(t.sym_sizes(), {.dtype = t.dtype()}) : empty({0}, {.dtype = t.dtype()}));
  for (const Tensor& t : outs) arguments.emplace_back(t);
  variant(std::move(arguments));
  check_same(outs, want, record, concat(variant.name(), sized ? "" : " with outputs that grow"));
}

// ---- layouts ----

/// The same elements in other memory: dimensions in the reverse order, gaps between the elements, an offset.
Tensor laid_otherwise(const Tensor& t) {
  std::vector<int64_t> strides(t.sizes().size());
  int64_t step = 2, offset = 3;
  for (size_t d = 0; d < strides.size(); ++d) {
    strides[d] = step;
    step *= std::max<int64_t>(t.sizes()[d], 1);
  }
  Tensor memory = zeros({step + offset}, {.dtype = t.dtype()});
  Tensor out = memory.as_strided(t.sym_sizes(), as_sym(strides), offset);
  out.copy_(t);
  return out;
}

bool reads_memory(const Operator& op) {
  const Operator& source = op.functional() ? *op.functional() : op;
  return source.is_view() || source.has_tag(Tag::AddressesMemory) || source.has_tag(Tag::ViewCopy) ||
         source.schema().name == "as_strided_scatter" || source.schema().name == "_unsafe_view";
}

}  // namespace

bool check_variants(const Operator& op, const Group& group, const Json& record) {
  if (op.is_mutable() || op.is_view() || !is_fixed(op, record) || record["out_tensors"].empty()) return false;
  std::vector<Value> arguments = build_arguments(op, record, build_tensors(group, record, false));
  std::vector<Tensor> want = flat_tensors(op(arguments));
  bool any = false;
  if (op.inplace() && arguments[0].is_tensor()) {
    check_inplace_variant(op, record, arguments, want.at(0));
    any = true;
  }
  for (const Operator* variant : operator_overloads(op.schema().space + "::" + op.schema().name)) {
    if (variant->functional() != &op || !variant->has_out() || op.schema().returns[0].type.list) continue;
    bool all = std::all_of(want.begin(), want.end(), [](const Tensor& t) { return t.defined(); });
    if (!all || want.size() != op.return_count()) continue;
    for (bool sized : {true, false}) check_out_variant(*variant, record, arguments, want, sized);
    any = true;
  }
  return any;
}

bool check_layout(const Operator& op, const Group& group, const Json& record) {
  if (op.is_mutable() || reads_memory(op) || !is_fixed(op, record) || record["tensors"].empty()) return false;
  std::vector<Tensor> tensors = build_tensors(group, record, false), others;
  std::vector<Tensor> want = run(op, record, tensors);
  for (const Tensor& t : tensors) others.push_back(laid_otherwise(t));
  check_same(run(op, record, others), want, record, "inputs that lie otherwise");
  int threads = get_num_threads();
  set_num_threads(threads == 1 ? 2 : 1);
  check_same(run(op, record, tensors), want, record, "another number of threads");
  set_num_threads(threads);
  return true;
}

bool check_replay(const Operator& op, const Group& group, const Json& record) {
  if (!is_fixed(op, record) || record["tensors"].empty()) return false;
  std::vector<Tensor> tensors = build_tensors(group, record, false), captured = build_tensors(group, record, false),
                      given = build_tensors(group, record, false);
  std::vector<Tensor> want = run(op, record, tensors);
  ValueFunction call = [&](const std::vector<Value>& inputs) {
    std::vector<Tensor> values;
    for (const Value& v : inputs) values.push_back(v.tensor());
    return op(build_arguments(op, record, values));
  };
  IntrusivePtr<fx::GraphModule> module;
  try {
    module = make_fx(call, std::vector<Value>(captured.begin(), captured.end()));
  } catch (const Error& e) {  // what depends on data is refused, by its name
    if (std::string(e.what()).find("value out of a tracing tensor") != std::string::npos) return false;
    throw;
  }
  Value replayed = module->call(std::vector<Value>(given.begin(), given.end()));
  std::vector<Tensor> got;
  replayed.each_tensor([&](TensorImpl* t) { got.emplace_back(IntrusivePtr<TensorImpl>(t)); });
  std::erase_if(want, [](const Tensor& t) { return !t.defined(); });
  check_same(got, want, record, "replayed");
  if (record.value("skip_outputs", Json::array()).empty()) check_same(given, tensors, record, "inputs afterwards");
  return true;
}

bool check_hooks(const Operator& op, const Group& group, const Json& record) {
  std::vector<Tensor> kept;
  std::vector<int> asked;
  autograd::WithSavedTensorHooks hooks({[&](const Tensor& t) {
                                          kept.push_back(t.clone());
                                          asked.push_back(0);
                                          return Value(static_cast<int64_t>(kept.size()) - 1);
                                        },
                                        [&](const Value& place) {
                                          ++asked[static_cast<size_t>(place.to_int())];
                                          return kept[static_cast<size_t>(place.to_int())];
                                        }});
  bool checked = check_gradient(op, group, record);
  for (int times : asked)
    if (times > 1) throw Mismatch(concat("a saved tensor is unpacked ", times, " times in one backward pass"));
  return check_tangent(op, group, record) || checked;
}

}  // namespace umbra::golden
