// vmap against a loop: the inputs of a record, each in two forms (as recorded, and with its elements in reverse order),
// stacked along different dimensions.
#include "umbra/transform/vmap.h"

#include "levels.h"
#include "umbra/core/warning.h"
#include "umbra/transform/transform.h"

namespace umbra::golden {

namespace {

using transform::Dims;

/// The same numbers in other places: indices stay in range, probabilities probable.
Tensor reversed(const Tensor& t) {
  if (t.numel() == 0) return t.clone();
  Tensor plain = t.resolve_conj().resolve_neg().contiguous();
  return plain.reshape({-1}).flip({0}).reshape(t.sym_sizes()).contiguous();
}

std::vector<Value> call(const Operator& op, const Json& record, const std::vector<Tensor>& tensors) {
  return op(build_arguments(op, record, tensors));
}

/// The inputs of one element of the batch.
std::vector<Tensor> element(const std::vector<Tensor>& whole, const Dims& dims, int64_t i) {
  std::vector<Tensor> out;
  for (size_t k = 0; k < whole.size(); ++k)
    out.push_back(dims[k] ? whole[k].select(*dims[k], i).clone() : whole[k].clone());
  return out;
}

struct Batch {
  std::vector<Tensor> tensors;
  Dims dims;
};

/// Gives the chosen tensors a batch dimension: in front, or behind all others.
Batch make_batch(const std::vector<Tensor>& tensors, const std::vector<bool>& chosen, bool last) {
  Batch out;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!chosen[i]) {
      out.tensors.push_back(tensors[i].clone());
      out.dims.push_back(std::nullopt);
      continue;
    }
    int64_t dim = last ? tensors[i].dim() : 0;
    Tensor plain = tensors[i].resolve_conj().resolve_neg();
    out.tensors.push_back(stack(std::vector<Tensor>{plain, reversed(tensors[i])}, dim).contiguous());
    out.dims.push_back(dim);
  }
  return out;
}

void compare(const Tensor& got, const Tensor& want, const Json& record, const std::string& what) {
  if (got.dtype() != want.dtype())
    throw Mismatch(concat(what, ": dtype ", name(got.dtype()), ", expected ", name(want.dtype())));
  if (!(got.sizes() == want.sizes()))
    throw Mismatch(concat(what, ": sizes ", to_string(got.sizes()), ", expected ", to_string(want.sizes())));
  if (got.numel() == 0) return;
  double rtol = record["tol"][0], atol = record["tol"][1];
  if (!is_differentiable(got.dtype())) rtol = atol = 0;
  bool wide = got.is_complex();
  Tensor a = got.resolve_conj().resolve_neg(), b = want.resolve_conj().resolve_neg();
  if (wide) a = view_as_real(a.to(DType::Complex128)), b = view_as_real(b.to(DType::Complex128));
  if (!allclose(a.to(DType::Float64), b.to(DType::Float64), std::max(rtol, 1e-6), std::max(atol, 1e-6), true))
    throw Mismatch(what + ": values differ");
}

/// Whether the error says that vmap does not do this.
bool is_refusal(const std::exception& e) {
  std::string text = e.what();
  return text.starts_with("vmap: We do not support") || text.starts_with("vmap: called random operation") ||
         text.starts_with("Batch norm got a batched tensor") ||
         text.find("stride(-1) must be 1") != std::string::npos ||
         text.find("last dimension with stride 1") != std::string::npos ||
         text.starts_with("vmap: It looks like you're calling") ||
         (text.starts_with("Batching rule not implemented") && text.find("could not generate") != std::string::npos);
}

bool check_one(const Operator& op, const Json& record, const std::vector<Tensor>& tensors,
               const std::vector<bool>& chosen, const std::vector<size_t>& written, bool last) {
  Batch batch = make_batch(tensors, chosen, last);
  std::vector<std::vector<Tensor>> want(2), inputs_after(2);
  for (int64_t i = 0; i < 2; ++i) {
    std::vector<Tensor> inputs = element(batch.tensors, batch.dims, i);
    try {
      want[i] = flat_tensors(call(op, record, inputs));
    } catch (const Error&) {
      return false;  // not every mix of forms is a call
    }
    for (size_t w : written) inputs_after[i].push_back(inputs[w]);
  }
  if (want[0].size() != want[1].size()) return false;
  for (size_t r = 0; r < want[0].size(); ++r)
    if (!want[0][r].defined() || !(want[0][r].sizes() == want[1][r].sizes())) return false;
  std::vector<Tensor> got;
  try {
    got = transform::vmap(
        [&](const std::vector<Tensor>& inputs) {
          std::vector<Tensor> out = flat_tensors(call(op, record, inputs));
          for (size_t w : written) out.push_back(inputs[w]);
          return out;
        },
        batch.tensors, batch.dims);
  } catch (const Error& e) {
    if (is_refusal(e)) return false;
    throw;
  }
  size_t results = got.size() - written.size();
  if (results != want[0].size()) throw Mismatch(concat(results, " results, expected ", want[0].size()));
  for (size_t r = 0; r < results; ++r)
    compare(got[r], stack(std::vector<Tensor>{want[0][r], want[1][r]}), record, concat("result ", r));
  for (size_t k = 0; k < written.size(); ++k) {
    std::vector<Tensor> after = {inputs_after[0][k], inputs_after[1][k]};
    const Tensor& whole = batch.tensors[written[k]];
    std::string what = concat("input ", written[k], " afterwards");
    compare(got[results + k], stack(after), record, what);
    // Where metadata was written, the batch may lie elsewhere in the caller's tensor.
    bool as_before = after[0].sizes() == tensors[written[k]].sizes();
    if (as_before) compare(whole, stack(after, *batch.dims[written[k]]), record, what);
  }
  return true;
}

}  // namespace

bool check_vmap(const Operator& op, const Group& group, const Json& record) {
  set_warning_handler([](const std::string&) {});
  if (!record["deterministic"] || op.has_out() || !record.value("skip_outputs", std::vector<size_t>()).empty())
    return false;
  for (const auto& r : op.schema().returns)
    if (!r.type.is_tensor() && !r.type.is_tensor_list()) return false;
  // Fused backward passes are given statistics of their input; mixed forms would not fit each other.
  if (op.definition().tangent_form) return false;
  // What reads by strides sees those of the batch, which are the recorded ones only where the batch is in front.
  bool by_strides = op.schema().find("stride") >= 0 && op.schema().find("size") >= 0;
  std::vector<Tensor> tensors = build_tensors(group, record, false);
  std::vector<size_t> written;
  for (const Json& m : record.value("mutated", Json::array())) written.push_back(m["input"]);
  bool any = false;
  // All of them, and each alone.
  for (size_t alone = 0; alone <= tensors.size(); ++alone) {
    if (alone < tensors.size() && tensors.size() == 1) continue;
    std::vector<bool> chosen(tensors.size(), alone == tensors.size());
    if (alone < tensors.size()) chosen[alone] = true;
    bool complete = !tensors.empty();
    for (size_t w : written) complete = complete && chosen[w];
    if (!complete) continue;
    for (bool last : {false, true}) {
      if (last && by_strides) continue;
      try {
        any |= check_one(op, record, tensors, chosen, written, last);
      } catch (const std::exception& e) {
        std::string which = alone == tensors.size() ? "all" : concat("input ", alone);
        throw Mismatch(concat(which, last ? ", behind: " : ", in front: ", e.what()));
      }
    }
  }
  return any;
}

}  // namespace umbra::golden
