#include "fake.h"

#include <unordered_set>

#include "arguments.h"
#include "construct.h"
#include "operators.h"
#include "tensor_type.h"
#include "umbra/dispatch/dispatcher.h"
#include "umbra/fake/cache_info.h"
#include "umbra/fake/cost.h"
#include "values.h"

namespace umbra::python {

namespace {

/// A dimension's policy as Python describes it: ("dynamic", dim name, least, most); a "kept" one must not become a
/// number.
sym::SymbolOptions dimension(nb::handle description) {
  sym::SymbolOptions options;
  nb::tuple fields = nb::borrow<nb::tuple>(description);
  std::string policy = nb::cast<std::string>(fields[0]);
  options.policy = policy == "static"    ? sym::Policy::Static
                   : policy == "dynamic" ? sym::Policy::Dynamic
                                         : sym::Policy::Duck;
  options.marked_dynamic = policy == "kept";
  if (policy == "kept") options.policy = sym::Policy::Dynamic;
  if (fields.size() > 1) options.dim = nb::cast<std::string>(fields[1]);
  if (fields.size() > 3) {
    sym::Range range;
    if (!fields[2].is_none()) range.lower = nb::cast<int64_t>(fields[2]);
    if (!fields[3].is_none()) range.upper = nb::cast<int64_t>(fields[3]);
    options.range = range;
  }
  return options;
}

/// `dims`: a policy for each dimension, or a size that is there already; `strides`: a policy, or None where it follows.
Tensor from_tensor(const ConverterObject& self, const FakeModeObject& mode, const Tensor& real,
                   const std::string& source, nb::handle dims, nb::handle strides) {
  if (dims.is_none()) return self.converter->from_tensor(*mode.mode, real);
  SymbolicContext context{source, {}, {}, {}};
  for (nb::handle d : nb::borrow<nb::sequence>(dims)) {
    SymInt given;
    bool is_given = !nb::isinstance<nb::tuple>(d) && read_int(d.ptr(), given);
    context.dims.push_back(is_given ? sym::SymbolOptions() : dimension(d));
    context.given.push_back(is_given ? std::optional(given) : std::nullopt);
  }
  if (!strides.is_none())
    for (nb::handle d : nb::borrow<nb::sequence>(strides))
      context.strides.push_back(d.is_none() ? std::nullopt : std::optional(dimension(d)));
  return self.converter->from_tensor(*mode.mode, real, &context);
}

nb::tuple cache_info() {
  FakeCacheInfo info = fake_cache_info();
  nb::dict bypasses;
  for (const auto& [reason, count] : info.bypasses) bypasses[reason.c_str()] = count;
  return nb::make_tuple(info.hits, info.misses, bypasses, info.size);
}

/// (key, reason): what a call's metadata follow from, and why that is not all, or None.
nb::tuple call_key(const FakeModeObject& mode, const std::string& name, nb::handle arguments) {
  const Operator* op = find_operator(name);
  check<ValueError>(op, "there is no operator ", name);
  std::vector<Value> values;
  for (nb::handle argument : nb::borrow<nb::sequence>(arguments)) values.push_back(read_any(argument.ptr()));
  std::string bypass, key = fake_call_key(*op, *mode.mode, values, bypass);
  return nb::make_tuple(nb::bytes(key.data(), key.size()), bypass.empty() ? nb::none() : nb::object(nb::cast(bypass)));
}

void bind_converter(nb::module_& m) {
  nb::class_<ConverterObject>(m, "_FakeConverter")
      .def("__init__", [](ConverterObject* self) { new (self) ConverterObject{make_counted<FakeConverter>()}; })
      .def("from_tensor", &from_tensor, nb::arg("mode"), nb::arg("tensor"), nb::arg("source") = "",
           nb::arg("dims") = nb::none(), nb::arg("strides") = nb::none())
      .def("remember",
           [](const ConverterObject& c, const Tensor& real, const Tensor& fake) { c.converter->remember(real, fake); })
      .def("find",
           [](const ConverterObject& c, const Tensor& real) -> nb::object {
             Tensor fake = c.converter->find(real);
             return fake.defined() ? nb::cast(fake) : nb::none();
           })
      .def("clear", [](const ConverterObject& c) { c.converter->clear(); })
      .def("tensors",
           [](const ConverterObject& c) {
             nb::list out;
             for (const auto& [real, fake] : c.converter->tensors()) out.append(nb::make_tuple(real, fake));
             return out;
           })
      .def("storages", [](const ConverterObject& c) {
        nb::list out;
        for (const auto& [real, fake] : c.converter->storages())
          out.append(nb::make_tuple(reinterpret_cast<uintptr_t>(real.get()), reinterpret_cast<uintptr_t>(fake.get())));
        return out;
      });
}

/// A cost trace behind a Python object.
struct CostObject {
  IntrusivePtr<CostTrace> trace;
};

nb::dict by_name(const std::map<std::string, int64_t>& values) {
  nb::dict out;
  for (const auto& [name, value] : values) out[name.c_str()] = value;
  return out;
}

/// The report as plain data; `timeline` only where it is asked for.
nb::dict report_data(const CostObject& c, bool timeline) {
  CostReport r = c.trace->report();
  nb::dict out, ends;
  out["peak"] = r.peak;
  out["flops"] = r.flops();
  out["flops_by_module"] = by_name(r.flops_by_scope());
  out["flops_by_operator"] = by_name(r.flops_by_operator());
  out["operators"] = r.operations.size();
  for (size_t i = 1; i < r.phases.size(); ++i) ends[r.phases[i].c_str()] = r.phase_ends[i];
  out["phase_ends"] = ends;
  const CostOperation* at = r.peak_operation();
  out["peak_operator"] = at ? nb::object(nb::cast(std::string(at->name))) : nb::none();
  out["peak_module"] = at ? nb::object(nb::cast(r.scopes[static_cast<size_t>(at->scope)])) : nb::none();
  out["peak_phase"] = at ? nb::object(nb::cast(r.phases[static_cast<size_t>(at->phase)])) : nb::none();
  if (!timeline) return out;
  nb::list points;
  for (const MemoryPoint& p : r.timeline) points.append(p.bytes);
  out["timeline"] = points;
  return out;
}

std::string page(const CostObject& c, const std::string& title, nb::handle summary) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (nb::handle row : nb::borrow<nb::sequence>(summary))
    rows.emplace_back(nb::cast<std::string>(row[0]), nb::cast<std::string>(row[1]));
  return cost_page(c.trace->report(), title, rows);
}

/// The bytes behind tensors; what some of them share counts once.
int64_t storage_bytes_of(nb::sequence tensors) {
  std::unordered_set<const StorageImpl*> seen;
  int64_t sum = 0;
  for (nb::handle object : tensors) {
    const StorageImpl* storage = tensor_of(object.ptr()).storage().get();
    if (seen.insert(storage).second && storage->bytes().has_hint()) sum += storage->bytes().hint();
  }
  return sum;
}

void bind_cost(nb::module_& m) {
  nb::class_<CostObject>(m, "_CostTrace")
      .def("__init__",
           [](CostObject* self, bool with_data) {
             auto counts = with_data ? CostTrace::Counts::WithData : CostTrace::Counts::All;
             new (self) CostObject{make_counted<CostTrace>(counts)};
           })
      .def("start",
           [](const CostObject& c) {
             c.trace->start();
             push_mode(c.trace);
           })
      .def("stop",
           [](const CostObject& c) {
             pop_mode(c.trace.get());
             c.trace->stop();
           })
      .def("hold", [](const CostObject& c, const Tensor& t) { c.trace->hold(t); })
      .def("begin", [](const CostObject& c, const std::string& phase) { c.trace->begin(phase); })
      .def("enter_scope", [](const CostObject& c, const std::string& name) { c.trace->enter_scope(name); })
      .def("leave_scope", [](const CostObject& c) { c.trace->leave_scope(); })
      .def_prop_ro("bytes_in_use", [](const CostObject& c) { return c.trace->bytes_in_use(); })
      .def("report", &report_data, nb::arg("timeline") = false)
      .def("page", &page);
  m.def("_storage_bytes", &storage_bytes_of);
}

/// The options of a mode, by the names that FakeTensorMode has for them.
FakeOptions read_options(std::optional<ShapeEnvObject> env, nb::dict given) {
  FakeOptions options{.shape_env = env ? env->env : nullptr};
  for (auto [name, value] : given) {
    std::string text = nb::cast<std::string>(name);
    bool on = nb::cast<bool>(value);
    if (text == "allow_non_fake_inputs") options.allow_non_fake_inputs = on;
    else if (text == "allow_scalar_outputs") options.allow_scalar_outputs = on;
    else if (text == "allow_dynamic_output_shapes") options.allow_dynamic_output_shapes = on;
    else if (text == "allow_meta") options.allow_meta = on;
    else if (text == "propagate_real_tensors") options.propagate_real_tensors = on;
    else if (text == "counts_calls") options.counts_calls = on;
    else fail<TypeError>("a fake mode has no option ", text);
  }
  return options;
}

}  // namespace

void bind_fake(nb::module_& m) {
  nb::class_<FakeModeObject>(m, "_FakeMode")
      .def(
          "__init__",
          [](FakeModeObject* self, std::optional<ShapeEnvObject> env, nb::kwargs options) {
            new (self) FakeModeObject{make_counted<FakeModeImpl>(read_options(std::move(env), options))};
          },
          nb::arg("shape_env").none(), nb::arg("options"))
      .def_prop_ro("_cdata", [](const FakeModeObject& f) { return reinterpret_cast<uintptr_t>(f.mode.get()); })
      .def("enter", [](const FakeModeObject& f) { push_mode(f.mode); })
      .def("leave", [](const FakeModeObject& f) { pop_mode(f.mode.get()); })
      .def_prop_ro("converter", [](const FakeModeObject& f) { return ConverterObject{f.mode->converter()}; })
      .def("with_constant",
           [](const FakeModeObject& f, const Tensor& value) { return fake_with_constant(*f.mode, value); })
      .def_prop_ro("shape_env",
                   [](const FakeModeObject& f) -> nb::object {
                     if (!f.mode->shape_env()) return nb::none();
                     return nb::cast(ShapeEnvObject{IntrusivePtr<sym::ShapeEnv>(f.mode->shape_env())});
                   })
      .def_prop_rw(
          "allow_non_fake_inputs", [](const FakeModeObject& f) { return f.mode->options().allow_non_fake_inputs; },
          [](const FakeModeObject& f, bool v) { f.mode->mutable_options().allow_non_fake_inputs = v; })
      .def_prop_ro("allow_meta", [](const FakeModeObject& f) { return f.mode->options().allow_meta; })
      .def_prop_ro("propagate_real_tensors",
                   [](const FakeModeObject& f) { return f.mode->options().propagate_real_tensors; })
      .def_prop_rw(
          "allow_scalar_outputs", [](const FakeModeObject& f) { return f.mode->options().allow_scalar_outputs; },
          [](const FakeModeObject& f, bool v) { f.mode->mutable_options().allow_scalar_outputs = v; });
  auto wrap_mode = [](FakeModeImpl* mode) -> nb::object {
    return mode ? nb::cast(FakeModeObject{IntrusivePtr<FakeModeImpl>(mode)}) : nb::none();
  };
  m.def("_fake_mode_of", [wrap_mode](const Tensor& t) { return wrap_mode(fake_mode_of(t)); });
  m.def("_active_fake_mode", [wrap_mode] {
    Mode* mode = active_mode(DispatchKey::Fake);
    return wrap_mode(mode ? static_cast<FakeState*>(mode)->mode() : nullptr);
  });
  m.def("_fake_constant", [](const Tensor& t) -> nb::object {
    const Tensor* constant = t.is_fake() ? fake_constant(t) : nullptr;
    return constant ? nb::steal(wrap(*constant)) : nb::none();
  });
  m.def("_set_fake_device", [](const Tensor& t, Device device) {
    check<TypeError>(t.is_fake(), "only a fake tensor can be said to be on another device");
    t.impl()->remove_key(backend_key(t.device()));
    t.impl()->set_device(device);
    t.impl()->add_key(backend_key(device));
  });
  m.def("_fake_real", [](const Tensor& t) -> nb::object {
    const Tensor* real = fake_real(t);
    return real ? nb::steal(wrap(*real)) : nb::none();
  });
  bind_converter(m);
  bind_cost(m);
  m.def("_fake_cache_info", &cache_info);
  m.def("_fake_cache_clear", &clear_fake_cache_info);
  m.def("_fake_cache_crosscheck", &set_fake_cache_crosscheck);
  m.def("_fake_cache_crosschecked", &fake_cache_crosscheck);
  m.def("_fake_call_key", &call_key);
}

}  // namespace umbra::python
