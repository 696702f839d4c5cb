#include "transform.h"

#include "lock.h"
#include "tensor_type.h"
#include "umbra/autograd/autograd.h"
#include "umbra/core/warning.h"
#include "umbra/transform/derivatives.h"
#include "umbra/transform/tracked.h"
#include "umbra/transform/vmap.h"
#include "values.h"

namespace umbra::python {

namespace {

using transform::Level;
using transform::TrackedLevel;
using transform::VmapLevel;

/// A level that Python enters, in a `with`.
struct LevelObject {
  IntrusivePtr<Level> level;

  TrackedLevel& tracked() const { return dynamic_cast<TrackedLevel&>(*level); }
  VmapLevel& vmap() const { return dynamic_cast<VmapLevel&>(*level); }
};

Randomness read_randomness(const std::string& name) {
  if (name == "error") return Randomness::Error;
  return name == "same" ? Randomness::Same : Randomness::Different;
}

SymInt read_size(nb::handle size) {
  SymInt out;
  check<TypeError>(read_int(size.ptr(), out), "the size of a batch is a number");
  return out;
}

/// ("grad" or "batched", level, batch dimension, value) of a wrapper, None of any other tensor.
nb::object describe(const Tensor& tensor) {
  if (const BatchedState* state = batched_state(tensor.impl(), nullptr)) {
    auto& level = static_cast<const Level&>(*state->level);
    return nb::make_tuple("batched", level.ended() ? -2 : level.depth(), state->dim, state->value);
  }
  if (!transform::is_tracked(tensor.impl())) return nb::none();
  const auto& state = static_cast<const transform::TrackedState&>(*tensor.impl()->layer_state());
  return nb::make_tuple("grad", state.level->ended() ? -2 : state.level->depth(), nb::none(), state.value);
}

/// A batched tensor of the level that stands at a place of the stack (counted from 1); of one that runs nowhere where
/// there is none.
Tensor add_batch_dim(const Tensor& value, int64_t dim, int64_t depth) {
  check<IndexError>(dim >= -value.dim() && dim < value.dim(), "Dimension out of range (expected to be in range of [",
                    -value.dim(), ", ", value.dim() - 1, "], but got ", dim, ")");
  if (dim < 0) dim += value.dim();
  const auto& stack = transform::level_stack();
  IntrusivePtr<Level> level;
  if (depth >= 1 && depth <= static_cast<int64_t>(stack.size())) level = stack[static_cast<size_t>(depth - 1)];
  else level = make_counted<VmapLevel>(value.sym_sizes()[static_cast<size_t>(dim)], Randomness::Error);
  check(dynamic_cast<VmapLevel*>(level.get()), "_add_batch_dim: the level ", depth, " is no vmap");
  return make_batched(value, dim, level);
}

/// The thread outside a level, to call functions there.
struct OutsideObject {
  TrackedLevel::Outside outside;
};

void bind_levels(nb::module_& m) {
  m.def("_grad_level", [] { return LevelObject{make_counted<TrackedLevel>(TrackedLevel::Kind::Reverse)}; });
  m.def("_jvp_level", [] { return LevelObject{make_counted<TrackedLevel>(TrackedLevel::Kind::Forward)}; });
  m.def("_vmap_level", [](nb::handle size, const std::string& randomness) {
    return LevelObject{make_counted<VmapLevel>(read_size(size), read_randomness(randomness))};
  });
  nb::class_<LevelObject>(m, "_Level")
      .def("__enter__",
           [](nb::handle self) {
             transform::push_level(nb::cast<LevelObject&>(self).level);
             return nb::borrow(self);
           })
      .def("__exit__", [](LevelObject& l, nb::args) { transform::pop_level(l.level.get()); })
      .def_prop_ro("depth", [](LevelObject& l) { return l.level->depth(); })
      .def("unwrap", [](LevelObject& l, const Tensor& t) { return l.level->unwrap(t); })
      // grad, vjp, jvp
      .def("wrap", [](LevelObject& l, const Tensor& t) { return l.tracked().wrap(t); })
      .def("differentiable", [](LevelObject& l, const Tensor& t) { return transform::differentiable(l.tracked(), t); })
      .def("dual", [](LevelObject& l, const Tensor& primal,
                      const Tensor& tangent) { return transform::make_dual(l.tracked(), primal, tangent); })
      .def("tangent", [](LevelObject& l, const Tensor& t) { return transform::tangent(l.tracked(), t); })
      .def("pull",
           [](LevelObject& l, const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
              const std::vector<Tensor>& cotangents, bool retain_graph, bool create_graph) {
             return transform::pull(outputs, inputs, cotangents, *l.level,
                                    {.retain_graph = retain_graph, .create_graph = create_graph});
           })
      .def("outside", [](LevelObject& l) { return OutsideObject{l.tracked().outside_now()}; })
      .def("owns", [](LevelObject& l, const Tensor& t) { return l.tracked().owns(t.impl()); })
      .def_prop_ro("kind",
                   [](LevelObject& l) {
                     if (auto* tracked = dynamic_cast<TrackedLevel*>(l.level.get()))
                       return tracked->dual_level() ? "jvp" : "grad";
                     return dynamic_cast<VmapLevel*>(l.level.get()) ? "vmap" : "functionalize";
                   })
      // vmap
      .def_prop_ro("size", [](LevelObject& l) { return nb::steal(wrap(l.vmap().size())); })
      .def_prop_ro("randomness",
                   [](LevelObject& l) {
                     constexpr const char* names[] = {"error", "different", "same"};
                     return names[static_cast<int>(l.vmap().randomness())];
                   })
      .def("call_outside",
           [](LevelObject&, nb::handle function) {
             transform::WithoutLevel off;
             return owned(PyObject_CallNoArgs(function.ptr()));
           })
      .def("batch", [](LevelObject& l, const Tensor& t, int64_t dim) { return l.vmap().wrap(t, dim); })
      .def("is_batched", [](LevelObject& l, const Tensor& t) { return l.vmap().value(t).is_batched(); })
      .def("batch_dim",
           [](LevelObject& l, const Tensor& t) -> std::optional<int64_t> {
             Batched b = l.vmap().value(t);
             return b.is_batched() ? std::optional(b.dim) : std::nullopt;
           })
      .def(
          "result", [](LevelObject& l, const Tensor& t, std::optional<int64_t> dim) { return l.vmap().result(t, dim); },
          nb::arg("tensor"), nb::arg("dim").none());
}

}  // namespace

void bind_transform(nb::module_& m) {
  bind_levels(m);
  nb::class_<OutsideObject>(m, "_OutsideLevel").def("call", [](OutsideObject& o, nb::handle function) {
    nb::object result;
    transform::run_outside(o.outside, [&] { result = owned(PyObject_CallNoArgs(function.ptr())); });
    return result;
  });
  m.def("_level_count", [] { return transform::level_stack().size(); });
  m.def("_innermost_level", []() -> nb::object {
    const auto& stack = transform::level_stack();
    return stack.empty() ? nb::none() : nb::cast(LevelObject{stack.back()});
  });
  m.def("_describe_wrapper", &describe);
  m.def("_add_batch_dim", &add_batch_dim);
  m.def("_set_warns_always", &set_warns_always);
  set_warning_handler([](const std::string& text) {
    WithLock lock;
    if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0) throw nb::python_error();
  });
}

}  // namespace umbra::python
