// Operators that users define in Python, and the kernels that they give them.
#include "umbra/dispatch/library.h"

#include "autograd.h"
#include "dispatch_mode.h"
#include "misc.h"
#include "operators.h"
#include "umbra/dispatch/batching.h"
#include "umbra/dispatch/dispatcher.h"
#include "umbra/transform/tracked.h"

namespace umbra::python {

namespace {

/// A Python function as an operator's kernel: arguments by position, keyword-only ones by name.
GenericFunction generic(nb::handle callable) {
  return [function = Callable(callable)](const Operator& op, ArrayRef<Value> arguments) {
    WithLock lock;
    auto [args, kwargs] = wrap_arguments(op, arguments.data());
    nb::object result = owned(PyObject_Call(function.get(), args.ptr(), kwargs.ptr()));
    std::vector<Value> out(op.frame_size());
    store_results(op, result.ptr(), out.data());
    out.resize(op.return_count());
    return out;
  };
}

/// A batching rule written in Python: `rule(dims, size, randomness, args, kwargs)` gives results and their dimensions.
struct BatchRule {
  const Operator* op;
  Callable function;
};

nb::object dim_of(const Batched& b) { return b.is_batched() ? nb::cast(b.dim) : nb::none(); }

/// An argument without its batch dimension's wrapper; says where that dimension is.
Value unwrap_batched(const Value& argument, nb::list& dims) {
  if (argument.is_tensor()) {
    Batched b = Batched::of(argument.tensor_ref());
    dims.append(dim_of(b));
    return Value(b.value);
  }
  if (!argument.is_tensor_list()) {
    dims.append(nb::none());
    return argument;
  }
  nb::list inner;
  std::vector<Tensor> values;
  for (const Tensor& t : argument.tensor_list()) {
    Batched b = t.defined() ? Batched::of(t) : Batched();
    inner.append(dim_of(b));
    values.push_back(b.value);
  }
  dims.append(inner);
  return Value(std::move(values));
}

/// A result with the batch dimension that a rule says it has.
Tensor wrap_result(const Tensor& t, nb::handle dim) {
  if (!t.defined() || dim.is_none()) return t;
  check<TypeError>(nb::isinstance<nb::int_>(dim), "a batching rule gives ints and None as out_dims, got ",
                   nb::str(dim.type()).c_str());
  int64_t place = nb::cast<int64_t>(dim);
  check<IndexError>(place >= -t.dim() && place < t.dim(), "a batching rule says that dimension ", place,
                    " of its result is the mapped one, and the result has ", t.dim());
  return Batched(t, wrap_dim(place, t.dim())).wrap();
}

Value wrap_batched(const Value& result, nb::handle dim) {
  if (result.is_tensor()) return Value(wrap_result(result.tensor_ref(), dim));
  if (!result.is_tensor_list()) return result;
  std::vector<Tensor> out;
  size_t i = 0;
  for (const Tensor& t : result.tensor_list())
    out.push_back(wrap_result(t, nb::isinstance<nb::sequence>(dim) ? nb::handle(nb::object(dim[i++])) : dim));
  return Value(std::move(out));
}

void run_batch_rule(const void* context, Value* frame) {
  const auto& rule = *static_cast<const BatchRule*>(context);
  const Operator& op = *rule.op;
  WithLock lock;
  constexpr const char* randomness[] = {"error", "different", "same"};
  nb::list dims;
  Frame values(op);
  for (size_t i = 0; i < op.argument_count(); ++i) values[i] = unwrap_batched(frame[i], dims);
  auto [args, kwargs] = wrap_arguments(op, values.data());
  nb::object answer = nb::handle(rule.function.get())(
      dims, nb::steal(wrap(batch_scope().size)), randomness[static_cast<int>(batch_scope().randomness)], args, kwargs);
  std::vector<Value> out(op.frame_size());
  store_results(op, nb::object(answer[0]).ptr(), out.data());
  for (size_t i = 0; i < op.return_count(); ++i) frame[i] = wrap_batched(out[i], nb::object(answer[1][i]));
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

/// `_C._AutoDispatchBelowAutograd()`: calls skip autograd, that of the transform whose level is innermost as well: the
/// level would send them back to autograd.
struct BelowAutograd : ScopedExclusion {
  BelowAutograd() : ScopedExclusion(keys()) {}
  static DispatchKeySet keys() {
    const auto& levels = transform::level_stack();
    bool tracked = !levels.empty() && dynamic_cast<const transform::TrackedLevel*>(levels.back().get());
    return tracked ? DispatchKeySet(DispatchKey::Autograd) | DispatchKey::Level : DispatchKey::Autograd;
  }
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
  // Gives what takes the rule back.
  m.def("_register_batch_rule", [](const std::string& name, nb::handle function) {
    const Operator& op = get_operator(name);
    auto& batch = const_cast<Operator&>(op).mutable_definition().batch;
    auto before = batch;
    batch = {run_batch_rule, new BatchRule{&op, Callable(function)}};
    return nb::cpp_function([name, before] {
      if (const Operator* found = find_operator(name))
        const_cast<Operator&>(*found).mutable_definition().batch = before;
    });
  });
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
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", &BelowAutograd::leave);
}

}  // namespace umbra::python
