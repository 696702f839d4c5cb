#include "fake.h"

#include "tensor_type.h"
#include "umbra/dispatch/dispatcher.h"
#include "values.h"

namespace umbra::python {

namespace {

/// A dimension's policy as Python describes it: ("dynamic", dim name, least, most).
sym::SymbolOptions dimension(nb::handle description) {
  sym::SymbolOptions options;
  nb::tuple fields = nb::borrow<nb::tuple>(description);
  std::string policy = nb::cast<std::string>(fields[0]);
  options.policy = policy == "static"    ? sym::Policy::Static
                   : policy == "dynamic" ? sym::Policy::Dynamic
                                         : sym::Policy::Duck;
  if (fields.size() > 1) options.dim = nb::cast<std::string>(fields[1]);
  if (fields.size() > 3) {
    sym::Range range;
    if (!fields[2].is_none()) range.lower = nb::cast<int64_t>(fields[2]);
    if (!fields[3].is_none()) range.upper = nb::cast<int64_t>(fields[3]);
    options.range = range;
  }
  return options;
}

Tensor from_tensor(const FakeModeObject& self, const Tensor& real, const std::string& source, nb::handle dims) {
  if (dims.is_none() && source.empty()) return self.mode->from_tensor(real);
  SymbolicContext context{source, {}};
  if (dims.is_none()) {
    for (int64_t i = 0; i < real.dim(); ++i) context.dims.emplace_back();
  } else {
    for (nb::handle d : nb::borrow<nb::sequence>(dims)) context.dims.push_back(dimension(d));
  }
  return self.mode->from_tensor(real, &context);
}

}  // namespace

void bind_fake(nb::module_& m) {
  nb::class_<FakeModeObject>(m, "_FakeMode")
      .def(
          "__init__",
          [](FakeModeObject* self, std::optional<ShapeEnvObject> env, bool allow_non_fake_inputs,
             bool allow_scalar_outputs, bool allow_dynamic_output_shapes) {
            FakeOptions options{.shape_env = env ? env->env : nullptr,
                                .allow_non_fake_inputs = allow_non_fake_inputs,
                                .allow_scalar_outputs = allow_scalar_outputs,
                                .allow_dynamic_output_shapes = allow_dynamic_output_shapes};
            new (self) FakeModeObject{make_counted<FakeModeImpl>(std::move(options))};
          },
          nb::arg("shape_env").none(), nb::arg("allow_non_fake_inputs"), nb::arg("allow_scalar_outputs"),
          nb::arg("allow_dynamic_output_shapes"))
      .def_prop_ro("_cdata", [](const FakeModeObject& f) { return reinterpret_cast<uintptr_t>(f.mode.get()); })
      .def("enter", [](const FakeModeObject& f) { push_mode(f.mode); })
      .def("leave", [](const FakeModeObject& f) { pop_mode(f.mode.get()); })
      .def("from_tensor", &from_tensor, nb::arg("tensor"), nb::arg("source") = "", nb::arg("dims") = nb::none())
      .def("clear_memo", [](const FakeModeObject& f) { f.mode->clear_memo(); })
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
      .def_prop_rw(
          "allow_scalar_outputs", [](const FakeModeObject& f) { return f.mode->options().allow_scalar_outputs; },
          [](const FakeModeObject& f, bool v) { f.mode->mutable_options().allow_scalar_outputs = v; });
  auto wrap_mode = [](FakeModeImpl* mode) -> nb::object {
    return mode ? nb::cast(FakeModeObject{IntrusivePtr<FakeModeImpl>(mode)}) : nb::none();
  };
  m.def("_fake_mode_of", [wrap_mode](const Tensor& t) { return wrap_mode(t.is_fake() ? fake_mode_of(t) : nullptr); });
  m.def("_active_fake_mode", [wrap_mode] {
    Mode* mode = active_mode(DispatchKey::Fake);
    return wrap_mode(mode ? static_cast<FakeState*>(mode)->mode() : nullptr);
  });
  m.def("_fake_constant", [](const Tensor& t) -> nb::object {
    const Tensor* constant = t.is_fake() ? fake_constant(t) : nullptr;
    return constant ? nb::steal(wrap(*constant)) : nb::none();
  });
}

}  // namespace umbra::python
