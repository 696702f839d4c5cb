// Operators that users define in Python, and the kernels that they give them.
#include "umbra/dispatch/library.h"

#include "autograd.h"
#include "dispatch_mode.h"
#include "misc.h"
#include "operators.h"
#include "umbra/dispatch/dispatcher.h"

namespace umbra::python {

namespace {

/// A Python function as an operator's kernel: arguments by position, keyword-only ones by name.
GenericFunction generic(nb::handle callable) {
  return [function = Callable(callable)](const Operator& op, ArrayRef<Value> arguments) {
    nb::gil_scoped_acquire lock;
    auto [args, kwargs] = wrap_arguments(op, arguments.data());
    nb::object result = owned(PyObject_Call(function.get(), args.ptr(), kwargs.ptr()));
    std::vector<Value> out(op.frame_size());
    store_results(op, result.ptr(), out.data());
    out.resize(op.return_count());
    return out;
  };
}

KernelKey key_of(const std::string& name) { return name == "Fake" ? KernelKey::Fake : parse_kernel_key(name); }

Library make_library(const std::string& space, const std::string& kind) {
  return Library(space, kind == "DEF"    ? Library::Kind::Define
                        : kind == "IMPL" ? Library::Kind::Implement
                                         : Library::Kind::Fragment);
}

TagSet read_tags(const std::vector<std::string>& names) {
  TagSet tags;
  for (const std::string& name : names) {
    std::optional<Tag> tag = find_tag(name);
    check<ValueError>(tag.has_value(), "there is no tag '", name, "'");
    tags.add(*tag);
  }
  return tags;
}

/// `with _C._AutoDispatchBelowAutograd():` calls skip autograd.
struct BelowAutograd {
  DispatchState before;
  void enter() {
    before = dispatch_state();
    dispatch_state().exclude |= DispatchKey::Autograd;
  }
  void leave(nb::args) { dispatch_state() = before; }
};

}  // namespace

void bind_library(nb::module_& m) {
  nb::class_<Library>(m, "_Library")
      .def("__init__", [](Library* self, const std::string& space,
                          const std::string& kind) { new (self) Library(make_library(space, kind)); })
      .def("define",
           [](Library& self, const std::string& schema, const std::vector<std::string>& tags) {
             return nb::steal(wrap(self.define(schema, read_tags(tags))));
           })
      .def("impl", [](Library& self, const std::string& name, nb::handle function,
                      const std::string& key) { self.implement_generic(name, generic(function), key_of(key)); })
      .def("fall_through",
           [](Library& self, const std::string& name, const std::string& key) { self.fall_through(name, key_of(key)); })
      .def("reset", &Library::reset);
  m.def("_is_differentiable", [](const std::string& name) {
    const Operator& op = get_operator(name);
    if (!op.definition().gradients.empty() || op.is_composite()) return true;
    for (KernelKey key : {KernelKey::Autograd, KernelKey::AutogradCPU, KernelKey::AutogradCUDA, KernelKey::AutogradMeta,
                          KernelKey::CompositeImplicitAutograd})
      if (has_library_kernel(op, key)) return true;
    return false;
  });
  nb::class_<BelowAutograd>(m, "_AutoDispatchBelowAutograd")
      .def(nb::init<>())
      .def("__enter__", &BelowAutograd::enter)
      .def("__exit__", &BelowAutograd::leave);
}

}  // namespace umbra::python
