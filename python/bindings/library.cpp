// Operators that users define in Python, and the kernels that they give them.
#include "umbra/dispatch/library.h"

#include <unordered_map>

#include "autograd.h"
#include "dispatch_mode.h"
#include "misc.h"
#include "operators.h"
#include "umbra/dispatch/dispatcher.h"

namespace umbra::python {

namespace {

/// A Python function as an operator's kernel: arguments by position, keyword-only ones by name.
GenericFunction generic(const Operator& op, nb::handle callable) {
  return [&op, function = Callable(callable)](ArrayRef<Value> arguments) {
    nb::gil_scoped_acquire lock;
    auto [args, kwargs] = wrap_arguments(op, arguments.data());
    nb::object result = owned(PyObject_Call(function.get(), args.ptr(), kwargs.ptr()));
    std::vector<Value> out(op.frame_size());
    store_results(op, result.ptr(), out.data());
    out.resize(op.return_count());
    return out;
  };
}

/// Python kernels at autograd's layer, by operator.
std::unordered_map<const Operator*, GenericFunction>& autograd_kernels() {
  static auto* kernels = new std::unordered_map<const Operator*, GenericFunction>;
  return *kernels;
}

void autograd_layer(const Operator& op, DispatchKeySet, Value* frame) {
  std::vector<Value> results = autograd_kernels().at(&op)(ArrayRef<Value>(frame, op.argument_count()));
  for (size_t i = 0; i < results.size(); ++i) frame[i] = std::move(results[i]);
}

Operator& find(const std::string& name) {
  size_t colons = name.find("::");
  check(colons != std::string::npos, "an operator is named 'namespace::name', got '", name, "'");
  return Library(name.substr(0, colons)).find(name);
}

/// `with _C._BelowAutograd():` calls skip autograd.
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
  m.def("_define_operator",
        [](const std::string& space, const std::string& schema, const std::vector<std::string>& tags) {
          Operator& op = Library(space).define(schema);
          for (const std::string& name : tags) {
            std::optional<Tag> tag = find_tag(name);
            check<ValueError>(tag.has_value(), "there is no tag '", name, "'");
            op.mutable_definition().tags.add(*tag);
          }
          return nb::steal(wrap(op));
        });
  m.def("_implement", [](const std::string& name, nb::handle function) {
    Operator& op = find(name);
    Library(op.schema().space).implement_generic(op.name(), generic(op, function));
  });
  m.def("_implement_fake", [](const std::string& name, nb::handle function) {
    Operator& op = find(name);
    Library(op.schema().space).fake_generic(op.name(), generic(op, function));
  });
  m.def("_implement_composite", [](const std::string& name, nb::handle function) {
    Operator& op = find(name);
    Library(op.schema().space).composite_generic(op.name(), generic(op, function));
  });
  m.def("_implement_autograd", [](const std::string& name, nb::handle function) {
    Operator& op = find(name);
    autograd_kernels()[&op] = generic(op, function);
    op.set_layer_kernel(DispatchKey::Autograd, autograd_layer);
  });
  m.def("_has_implementation", [](const std::string& name, const std::string& kind) {
    const Definition& d = find(name).definition();
    if (kind == "fake") return static_cast<bool>(d.fake) || static_cast<bool>(d.meta) || static_cast<bool>(d.composite);
    return d.real.any() || d.kernels.any() || static_cast<bool>(d.composite) || static_cast<bool>(d.view);
  });
  nb::class_<BelowAutograd>(m, "_BelowAutograd")
      .def(nb::init<>())
      .def("__enter__", &BelowAutograd::enter)
      .def("__exit__", &BelowAutograd::leave);
}

}  // namespace umbra::python
