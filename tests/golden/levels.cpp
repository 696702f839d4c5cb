#include "levels.h"

#include <cxxabi.h>

#include "umbra/autograd/forward.h"

namespace umbra::golden {

namespace {

std::vector<int64_t> ints(const Json& json) { return json.get<std::vector<int64_t>>(); }
bool contains_zero(const std::vector<int64_t>& sizes) {
  return std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
}

void check_metadata(const Tensor& t, const Json& want, const std::string& what) {
  std::string dtype = name(t.dtype());
  if (dtype != want["dtype"].get<std::string>())
    throw Mismatch(what + ": dtype " + dtype + ", expected " + want["dtype"].get<std::string>());
  std::vector<int64_t> sizes = ints(want["sizes"]);
  if (!(t.sizes() == IntArrayRef(sizes)))
    throw Mismatch(what + ": sizes " + to_string(t.sizes()) + ", expected " + want["sizes"].dump());
  if (!want.contains("strides") || contains_zero(sizes)) return;
  std::vector<int64_t> strides = ints(want["strides"]);
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 1 && t.strides()[d] != strides[d])
      throw Mismatch(what + ": strides " + to_string(t.strides()) + ", expected " + want["strides"].dump());
}

bool close(double a, double b, double size, double rtol, double atol) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  if (!std::isfinite(size)) size = 0;
  return std::isfinite(a) && std::isfinite(b) && std::fabs(a - b) <= atol + rtol * size;
}

}  // namespace

void check_close(const Tensor& got, const Tensor& want, const Json& tolerance, const std::string& what) {
  DType wide = want.is_complex() || got.is_complex()                 ? DType::Complex128
               : want.is_floating_point() || got.is_floating_point() ? DType::Float64
                                                                     : DType::Int64;
  auto plain = [&](const Tensor& t) { return t.detach().resolve_conj().resolve_neg().to(wide).contiguous(); };
  Tensor a = plain(got), b = plain(want);
  double rtol = tolerance[0], atol = tolerance[1];
  auto differ = [&](int64_t i) { throw Mismatch(concat(what, ": element ", i, " of ", a.numel(), " differs")); };
  for (int64_t i = 0; i < a.numel(); ++i) {
    if (wide == DType::Int64) {
      if (a.data<int64_t>()[i] != b.data<int64_t>()[i]) differ(i);
    } else if (wide == DType::Float64) {
      double x = a.data<double>()[i], y = b.data<double>()[i];
      if (!close(x, y, std::fabs(y), rtol, atol))
        throw Mismatch(concat(what, ": element ", i, " of ", a.numel(), ": ", x, ", expected ", y));
    } else {
      std::complex<double> x = a.data<std::complex<double>>()[i], y = b.data<std::complex<double>>()[i];
      double size = std::abs(y);
      if (!close(x.real(), y.real(), size, rtol, atol) || !close(x.imag(), y.imag(), size, rtol, atol)) differ(i);
    }
  }
}

namespace {

void check_values(const Tensor& got, const std::string& bytes, DType dtype, const std::vector<int64_t>& sizes,
                  const Json& tolerance, const std::string& what) {
  if (!(got.sizes() == IntArrayRef(sizes))) throw Mismatch(what + ": shape " + to_string(got.sizes()));
  check_close(got, dense_tensor(bytes, dtype, sizes), tolerance, what);
}

void check_plain(const Json& want, const Value& got, const std::string& what) {
  if (want.is_object() && (want.contains("tensor"))) {
    if (!got.is_tensor()) throw Mismatch(what + ": no tensor");
  } else if (want.is_object() && want.contains("float")) {
    double w = to_value(want, {SchemaType::Base::Float}, {}).to_double(), g = got.to_double();
    if (!(g == w || (g != g && w != w) || std::fabs(g - w) <= 1e-5 * std::fabs(w)))
      throw Mismatch(concat(what, ": ", g, ", expected ", w));
  } else if (want.is_boolean()) {
    if (!got.is_bool() || got.to_bool() != want.get<bool>()) throw Mismatch(what + ": " + to_string(got));
  } else if (want.is_number_integer() && got.tag() == Value::Tag::DType) {
    // Types are recorded by PyTorch's numbers, which ours are up to the bools.
    int64_t ours = static_cast<int64_t>(got.to_dtype()), theirs = got.to_dtype() == DType::BFloat16 ? 15 : ours;
    if (theirs != want.get<int64_t>()) throw Mismatch(what + ": " + to_string(got));
  } else if (want.is_number_integer()) {
    if (got.is_bool() || got.to_int() != want.get<int64_t>()) throw Mismatch(what + ": " + to_string(got));
  }
}

bool same_storage(const Tensor& a, const Tensor& b) { return a.storage() == b.storage(); }

std::string python_name(const std::exception& e) {
  int status = 0;
  char* text = abi::__cxa_demangle(typeid(e).name(), nullptr, nullptr, &status);
  std::string name = text ? text : typeid(e).name();
  std::free(text);
  name = name.substr(name.rfind(':') == std::string::npos ? 0 : name.rfind(':') + 1);
  if (name == "LinAlgError") return "_LinAlgError";  // linalg.LinAlgError, by the name of its class
  return name == "Error" ? "RuntimeError" : name;
}

bool is_kind(const std::exception& e, const std::string& wanted) {
  if (python_name(e) == wanted) return true;
  if (wanted == "RuntimeError") return python_name(e) == "NotImplementedError" || python_name(e) == "OutOfMemoryError";
  return false;
}

}  // namespace

bool check_forward(const Operator& op, const Group& group, const Json& record) {
  std::vector<Tensor> tensors = build_tensors(group, record, true);
  std::vector<Value> results = op(build_arguments(op, record, tensors));
  if (record["deterministic"])
    for (size_t i = 0; i < record["outputs"].size(); ++i)
      if (!record["outputs"][i].is_array()) check_plain(record["outputs"][i], results.at(i), concat("result ", i));
  std::vector<Tensor> flat = flat_tensors(results);
  if (flat.size() != record["out_tensors"].size())
    throw Mismatch(concat(flat.size(), " output tensors, expected ", record["out_tensors"].size()));
  std::vector<size_t> skip = record.value("skip_outputs", std::vector<size_t>());
  for (size_t i = 0; i < flat.size(); ++i) {
    const Json& want = record["out_tensors"][i];
    std::string what = concat("output ", i);
    check_metadata(flat[i], want, what);
    if (!want["aliases"].is_null()) {
      if (!same_storage(flat[i], tensors.at(want["aliases"])))
        throw Mismatch(what + ": does not share the storage of its input");
      if (flat[i].numel() && flat[i].storage_offset() != want["storage_offset"].get<int64_t>())
        throw Mismatch(what + ": storage offset");
    } else if (flat[i].numel()) {
      for (const Tensor& t : tensors)
        if (same_storage(flat[i], t)) throw Mismatch(what + ": shares an input's storage, and should not");
    }
    if (want.contains("data") && std::find(skip.begin(), skip.end(), i) == skip.end())
      check_values(flat[i], group.blob(want["data"]), dtype_from_name(want["dtype"]), ints(want["sizes"]),
                   record["tol"], what);
  }
  for (const Json& m : record.value("mutated", Json::array())) {
    size_t input = m["input"];
    Json want = m;
    want["dtype"] = record["tensors"][input]["dtype"];
    check_metadata(tensors[input], want, concat("input ", input, " afterwards"));
    if (m.contains("data") && skip.empty())
      check_values(tensors[input], group.blob(m["data"]), dtype_from_name(want["dtype"]), ints(m["sizes"]),
                   record["tol"], concat("input ", input, " afterwards"));
  }
  return true;
}

namespace {

std::vector<size_t> written_inputs(const Json& record) {
  std::vector<size_t> out;
  for (const Json& m : record.value("mutated", Json::array())) out.push_back(m["input"]);
  return out;
}
bool has(const std::vector<size_t>& list, size_t i) { return std::find(list.begin(), list.end(), i) != list.end(); }

bool any_nonzero(const Tensor& t) {
  Tensor flags = t.detach().resolve_conj().resolve_neg().ne(0).contiguous();
  for (int64_t i = 0; i < flags.numel(); ++i)
    if (flags.data<bool>()[i]) return true;
  return false;
}

}  // namespace

bool check_gradient(const Operator& op, const Group& group, const Json& record) {
  if (!record.contains("grad")) return false;
  const Json& g = record["grad"];
  std::vector<Tensor> leaves = build_tensors(group, record, false), arguments, wanted;
  std::vector<size_t> positions, written = written_inputs(record);
  for (size_t i = 0; i < leaves.size(); ++i) {
    bool differentiable = is_differentiable(leaves[i].dtype());
    if (differentiable) {
      leaves[i] = leaves[i].detach().requires_grad_();
      positions.push_back(i);
      wanted.push_back(leaves[i]);
    }
    arguments.push_back(differentiable && has(written, i) ? leaves[i].clone() : leaves[i]);
  }
  if (g.contains("error")) {
    try {
      std::vector<Tensor> outs, ones;
      for (Tensor& t : flat_tensors(op(build_arguments(op, record, arguments))))
        if (t.requires_grad()) outs.push_back(t), ones.push_back(ones_like(t));
      autograd::grad(outs, wanted, ones, {}, true);
    } catch (const std::exception&) {
      return true;
    }
    throw Mismatch("differentiation succeeded, expected " + g["error"].get<std::string>());
  }
  std::vector<Tensor> outs = flat_tensors(op(build_arguments(op, record, arguments))), used, cotangents;
  for (size_t i = 0; i < outs.size() && i < g["cotangents"].size(); ++i) {
    if (g["cotangents"][i].is_null()) continue;
    if (!outs[i].requires_grad()) throw Mismatch(concat("output ", i, " does not require grad"));
    const Json& d = record["out_tensors"][i];
    used.push_back(outs[i]);
    cotangents.push_back(dense_tensor(group.blob(g["cotangents"][i]), dtype_from_name(d["dtype"]), ints(d["sizes"])));
  }
  std::vector<Tensor> got = autograd::grad(used, wanted, cotangents, {}, true);
  for (size_t k = 0; k < got.size(); ++k) {
    const Json& want = g["inputs"][positions[k]];
    std::string what = concat("gradient of input ", positions[k]);
    if (want.is_null()) {
      if (got[k].defined() && any_nonzero(got[k])) throw Mismatch(what + ": a gradient, expected none");
      continue;
    }
    if (!got[k].defined()) {
      if (any_nonzero(dense_tensor(group.blob(want["data"]), dtype_from_name(want["dtype"]), ints(want["sizes"]))))
        throw Mismatch(what + ": none, expected one");
      continue;
    }
    check_metadata(got[k], {{"dtype", want["dtype"]}, {"sizes", want["sizes"]}}, what);
    check_values(got[k], group.blob(want["data"]), dtype_from_name(want["dtype"]), ints(want["sizes"]), g["tol"], what);
  }
  return true;
}

bool check_tangent(const Operator& op, const Group& group, const Json& record) {
  if (!record.contains("jvp")) return false;
  const Json& j = record["jvp"];
  std::vector<size_t> written = written_inputs(record);
  autograd::DualLevel level;
  std::vector<Tensor> duals = build_tensors(group, record, false);
  for (size_t i = 0; i < duals.size(); ++i) {
    if (j["tangents"][i].is_null()) continue;
    const Json& d = record["tensors"][i];
    Tensor tangent = dense_tensor(group.blob(j["tangents"][i]), dtype_from_name(d["dtype"]), ints(d["sizes"]));
    duals[i] = autograd::make_dual(has(written, i) ? duals[i].clone() : duals[i], tangent);
  }
  std::vector<Tensor> outs = flat_tensors(op(build_arguments(op, record, duals)));
  for (size_t i = 0; i < outs.size() && i < j["outputs"].size(); ++i) {
    if (j["outputs"][i].is_null()) continue;
    const Json& d = record["out_tensors"][i];
    Tensor tangent = autograd::unpack_dual(outs[i]).tangent;
    std::string bytes = group.blob(j["outputs"][i]), what = concat("tangent of output ", i);
    if (!tangent.defined()) {
      if (any_nonzero(dense_tensor(bytes, dtype_from_name(d["dtype"]), ints(d["sizes"]))))
        throw Mismatch(what + ": none");
      continue;
    }
    check_values(tangent, bytes, dtype_from_name(d["dtype"]), ints(d["sizes"]), j["tol"], what);
  }
  return true;
}

bool check_fake(const Operator& op, const Group& group, const Json& record) {
  const Json& f = record["fake"];
  std::string status = f["status"];
  static const std::vector<std::string> kExceptions{"DataDependentOutputException", "DynamicOutputShapeException",
                                                    "UnsupportedOperatorException"};
  if (status == "unstable") return false;
  if (status == "raises" &&
      std::find(kExceptions.begin(), kExceptions.end(), f["type"].get<std::string>()) == kExceptions.end())
    return false;
  std::vector<Tensor> tensors = build_tensors(group, record, true), fakes, outs;
  FakeMode mode;
  try {
    auto scope = mode.enter();
    for (const Tensor& t : tensors) fakes.push_back(mode.from_tensor(t));
    outs = flat_tensors(op(build_arguments(op, record, fakes)));
  } catch (const std::exception& e) {
    if (status == "raises" && is_kind(e, f["type"])) return true;
    throw Mismatch("raised " + python_name(e) + ": " + e.what());
  }
  if (status == "raises") throw Mismatch("no exception, expected " + f["type"].get<std::string>());
  const Json& want = f.contains("outputs") ? f["outputs"] : record["out_tensors"];
  if (outs.size() != want.size()) throw Mismatch(concat(outs.size(), " output tensors, expected ", want.size()));
  for (size_t i = 0; i < outs.size(); ++i) check_metadata(outs[i], want[i], concat("fake output ", i));
  return true;
}

bool check_error(const Operator& op, const Group& group, const Json& record) {
  std::string wanted = record["error"]["type"];
  try {
    std::vector<Tensor> tensors = build_tensors(group, record, true);
    op(build_arguments(op, record, tensors));
  } catch (const std::exception& e) {
    if (is_kind(e, wanted)) return true;
    throw Mismatch("raised " + python_name(e) + ", expected " + wanted + ": " + e.what());
  }
  throw Mismatch("no exception, expected " + wanted);
}

}  // namespace umbra::golden
