#include "autograd.h"

#include <atomic>

#include "arguments.h"
#include "autograd/hooks_off.h"
#include "autograd/stand_in.h"
#include "capture_frames.h"
#include "capture_watch.h"
#include "hooks.h"
#include "properties.h"
#include "tensor_type.h"
#include "umbra/aot/analysis.h"
#include "umbra/autograd/forward.h"
#include "umbra/capture/tracer.h"
#include "umbra/core/warning.h"
#include "umbra/dispatch/batching.h"
#include "umbra/transform/tracked.h"
#include "values.h"

namespace umbra::python {

namespace {

using autograd::BackwardOptions;

// ---- attributes ----

PyObject* get_requires_grad(PyObject* self, void*) {
  return property(self, [](const Tensor& t) { return PyBool_FromLong(t.requires_grad()); });
}
int set_requires_grad(PyObject* self, PyObject* value, void*) {
  return assignment(self, [&](const Tensor& t) {
    check(value && PyBool_Check(value), "requires_grad must be a bool");
    // The method lets a computed tensor be told again that it requires gradients; the attribute is a leaf's.
    check(t.is_leaf() || value == Py_False, "you can only change requires_grad flags of leaf variables.");
    check(value != Py_True || is_floating(t.dtype()) || t.is_complex(),
          "only Tensors of floating point and complex dtype can require gradients");
    end_capture_for(t, "Tensor.requires_grad");
    Tensor(t).requires_grad_(value == Py_True);
  });
}
/// What stands for a leaf while a function is analysed has a history, so that it can be written.
bool is_leaf(const Tensor& t) { return t.is_leaf() || aot::stands_for_leaf(t); }

PyObject* get_grad(PyObject* self, void*) {
  return property(self, [](const Tensor& t) {
    if (t.requires_grad()) end_capture_for(t, "Tensor.grad");
    Tensor grad = t.grad();
    if (!grad.defined() && t.requires_grad() && !is_leaf(t) && !autograd::retains_grad(t))
      warn(
          "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
          "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
          "Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure "
          "you access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more informations.");
    return wrap(grad);
  });
}
PyObject* get_grad_quietly(PyObject* self, void*) {
  return property(self, [](const Tensor& t) { return wrap(t.grad()); });
}
int set_grad(PyObject* self, PyObject* value, void*) {
  return assignment(self, [&](const Tensor& t) {
    end_capture_for(t, "Tensor.grad");
    if (!value || value == Py_None) return t.set_grad({});
    if (!is_tensor(value))
      fail<TypeError>("assigned grad expected to be a Tensor or None but got grad of type ",
                      short_type_name(Py_TYPE(value)));
    const Tensor& grad = tensor_of(value);
    check(grad.impl() != t.impl(), "can't assign Variable as its own grad");
    std::optional<DType> expected = autograd::grad_dtype(t);
    if (expected && grad.dtype() != *expected)
      fail("attempting to assign a gradient with dtype '", kernel_name(grad.dtype()), "' to a tensor with grad_dtype '",
           kernel_name(*expected),
           "'. The gradient must match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the "
           "tensor's "
           "grad_dtype attribute with a specific dtype, or None to allow any dtype. Set grad_dtype with caution. "
           "Diverging "
           "the dtypes of a tensor and its gradient may break downstream systems that assume they match.");
    check(grad.device().type == t.device().type, "attempting to assign a gradient with device type '",
          to_string(grad.device().type), "' to a tensor with device type '", to_string(t.device().type),
          "'. Please ensure that the gradient and the tensor are on the same device");
    check(grad.sym_sizes() == t.sym_sizes(), "attempting to assign a gradient of size '", to_string(grad.sym_sizes()),
          "' to a tensor of size '", to_string(t.sym_sizes()),
          "'. Please ensure that the gradient and the tensor are the same size");
    t.set_grad(grad);
  });
}
PyObject* get_grad_dtype(PyObject* self, void*) {
  return property(self, [](const Tensor& t) {
    std::optional<DType> dtype = autograd::grad_dtype(t);
    return dtype ? wrap(*dtype) : Py_NewRef(Py_None);
  });
}
int set_grad_dtype(PyObject* self, PyObject* value, void*) {
  return assignment(self, [&](const Tensor& t) {
    std::optional<DType> dtype;
    if (DType given; value && value != Py_None) {
      check(read_dtype(value, given), "grad_dtype must be a torch.dtype or None, but got ",
            short_type_name(Py_TYPE(value)));
      dtype = given;
    }
    if (const Tensor grad = t.grad(); dtype && t.is_leaf() && grad.defined() && grad.dtype() != *dtype)
      fail("Cannot set grad_dtype to '", kernel_name(*dtype), "' because there is already a gradient with dtype '",
           kernel_name(grad.dtype()),
           "'. Please clear the gradient (.grad = None) before changing grad_dtype, or ensure ",
           "the new grad_dtype matches the existing gradient's dtype.");
    autograd::set_grad_dtype(t, dtype);
  });
}
PyObject* get_grad_fn(PyObject* self, void*) {
  return property(self, [](const Tensor& t) {
    if (is_leaf(t)) return wrap_node({});
    end_capture_of_question(t, "Tensor.grad_fn");
    return wrap_node(autograd::grad_fn(t));
  });
}
PyObject* get_is_leaf(PyObject* self, void*) {
  return property(self, [](const Tensor& t) { return PyBool_FromLong(is_leaf(t)); });
}
PyObject* get_data(PyObject* self, void*) {
  return property(self, [](const Tensor& t) {
    check(!batched_state(t.impl(), nullptr), "accessing `data` under vmap transform is not allowed");
    return wrap(autograd::data_of(t));
  });
}
/// What is in the middle of a transform cannot be given other memory, nor lend its own.
void refuse_data_of_wrappers(const Tensor& t, const Tensor& value) {
  for (const Tensor* one : {&t, &value}) {
    check(!batched_state(one->impl(), nullptr), "mutating directly with `.data` under vmap transform is not allowed.");
    check(!transform::is_tracked(one->impl()),
          "mutating directly with `.data` inside functorch transform is not allowed.");
  }
}
int set_data(PyObject* self, PyObject* value, void*) {
  return assignment(self, [&](const Tensor& t) {
    check(value != nullptr, "Deleting tensor data is not allowed. Delete tensor instead!");
    if (!is_tensor(value))
      fail<TypeError>("Variable data has to be a tensor, but got ", short_type_name(Py_TYPE(value)));
    end_capture_for(t, "Tensor.data");
    refuse_data_of_wrappers(t, tensor_of(value));
    check(t.is_meta() == tensor_of(value).is_meta(),
          "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type.");
    autograd::set_data(t, tensor_of(value));
  });
}
PyObject* get_output_number(PyObject* self, void*) {
  return property(self, [](const Tensor& t) { return PyLong_FromLong(autograd::output_number(t)); });
}
PyObject* get_retains_grad(PyObject* self, void*) {
  return property(self, [](const Tensor& t) {
    end_capture_of_question(t, "Tensor.retains_grad");
    return PyBool_FromLong(autograd::retains_grad(t));
  });
}

// ---- the passes ----

/// Tensors, with None for those that are not given.
std::vector<Tensor> tensors_of(nb::handle list) {
  std::vector<Tensor> out;
  nb::object sequence = owned(PySequence_Fast(list.ptr(), "expected a sequence of tensors"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.ptr()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(sequence.ptr(), i);
    out.push_back(item == Py_None ? Tensor() : expect_tensor(item, "autograd"));
  }
  return out;
}

/// What stands for the tensor in the program that is being captured, or the tensor itself.
Tensor as_captured(const Tensor& tensor) {
  std::vector<Tensor> seen{tensor};
  autograd::see_as_captured(seen);
  return seen[0];
}

/// The edge of a tensor, or one that is given as (node, number of its output).
autograd::Edge edge_of(nb::handle object) {
  if (is_tensor(object.ptr())) {
    Tensor t = as_captured(tensor_of(object.ptr()));
    check(t.requires_grad(), "One of the differentiated Tensors does not require grad");
    return autograd::gradient_edge(t);
  }
  nb::tuple pair = nb::cast<nb::tuple>(object);
  IntrusivePtr<autograd::Node> node = node_of_object(nb::object(pair[0]).ptr());
  check<TypeError>(node.get() != nullptr, "autograd: expected a Tensor or a GradientEdge");
  return {std::move(node), nb::cast<uint32_t>(pair[1])};
}

std::vector<autograd::Edge> edges_of(nb::handle list) {
  std::vector<autograd::Edge> out;
  for (nb::handle item : nb::borrow<nb::sequence>(list)) out.push_back(edge_of(item));
  return out;
}

void warn_of_cycle() {
  static std::atomic<bool> warned{false};
  if (tells_once(warned))
    warn(
        "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
        "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you "
        "have to use this function, make sure to reset the .grad fields of your parameters to None after use to break "
        "the cycle and avoid the leak.");
}

void bind_passes(nb::module_& m) {
  m.def("_autograd_grad_of_edges",
        [](nb::handle outputs, nb::handle inputs, nb::handle grad_outputs, bool retain_graph, bool create_graph) {
          std::vector<autograd::Edge> from = edges_of(outputs), to = edges_of(inputs);
          std::vector<Tensor> weights = tensors_of(grad_outputs), result;
          {
            WithoutLock unlocked;
            result = autograd::grad_of_edges(from, weights, to, {retain_graph || create_graph, create_graph});
          }
          return tuple_of(result);
        });
  m.def("_autograd_grad", [](nb::handle outputs, nb::handle inputs, nb::handle grad_outputs, bool retain_graph,
                             bool create_graph, bool allow_unused) {
    std::vector<Tensor> from = tensors_of(outputs), to = tensors_of(inputs), weights = tensors_of(grad_outputs), result;
    {
      WithoutLock unlocked;
      result = autograd::grad(from, to, weights, {retain_graph, create_graph}, allow_unused);
    }
    return tuple_of(result);
  });
  m.def("_autograd_backward",
        [](nb::handle outputs, nb::handle grad_outputs, bool retain_graph, bool create_graph, nb::handle inputs) {
          std::vector<Tensor> from = tensors_of(outputs), weights = tensors_of(grad_outputs), to = tensors_of(inputs);
          if (create_graph) warn_of_cycle();
          WithoutLock unlocked;
          autograd::backward(from, weights, {retain_graph, create_graph}, to);
        });
  m.def("_autograd_backward_of_edges",
        [](nb::handle outputs, nb::handle inputs, nb::handle grad_outputs, bool retain_graph, bool create_graph) {
          std::vector<autograd::Edge> from = edges_of(outputs), to = edges_of(inputs);
          std::vector<Tensor> weights = tensors_of(grad_outputs);
          for (nb::handle input : nb::borrow<nb::sequence>(inputs))
            if (is_tensor(input.ptr())) tensor_of(input.ptr()).retain_grad();
          if (create_graph) warn_of_cycle();
          WithoutLock unlocked;
          autograd::backward_to_edges(from, weights, to, {retain_graph, create_graph});
        });
  m.def("_as_captured", &as_captured);
  m.def("_set_anomaly_detection", [](bool enabled, bool check_nan) {
    autograd::set_detect_anomaly({enabled, check_nan});
  });
  m.def(
      "is_anomaly_enabled",
      [] {
        end_capture_of_question("torch.is_anomaly_enabled()");
        return autograd::anomaly_detection().enabled;
      },
      "Whether backward passes tell which call an error belongs to.");
  m.def(
      "is_anomaly_check_nan_enabled", [] { return autograd::anomaly_detection().check_nan; },
      "Whether backward passes look for NaN, where anomalies are detected.");
  m.def("_requires_grad_", [](const Tensor& t, bool value) {
    end_capture_for(t, "Tensor.requires_grad_()");
    Tensor(t).requires_grad_(value);
  });
  m.def("_bump_version", [](const Tensor& t) { t.impl()->bump_version(); });
  m.def("_retain_grad", [](const Tensor& t) { t.retain_grad(); });
  m.def("_register_hook", [](const Tensor& t, nb::handle hook) {
    check(t.requires_grad(), "cannot register a hook on a tensor that doesn't require gradient");
    end_capture_for(t, "Tensor.register_hook()");
    // What a captured function closes over is an input of its program, whose hooks are the program's.
    Tensor here = as_captured(t);
    track(here);
    return autograd::register_hook(here, tensor_hook(hook));
  });
  m.def("_register_post_accumulate_grad_hook", [](const Tensor& t, nb::handle hook) {
    end_capture_for(t, "Tensor.register_post_accumulate_grad_hook()");
    check<NotImplementedError>(as_captured(t).is_same(t),
                               "Tensor.register_post_accumulate_grad_hook() in a captured function on a tensor that it "
                               "closes over: graphs set no gradients; register the hook outside");
    track(t);
    return autograd::register_post_accumulate_grad_hook(t, post_accumulate_hook(hook));
  });
  nb::class_<autograd::HookHandle>(m, "_HookHandle").def("remove", &autograd::HookHandle::remove);
}

// ---- switches ----

/// `with`-blocks keep the state that was there; Python's classes are thin around these.
void switch_gradients(bool enabled) {
  set_grad_enabled(enabled);
  if (Tracer* tracer = active_tracer(DispatchKey::PreProxy)) tracer->record_switch();
}

PyObject* set_grad_mode(PyObject*, PyObject* enabled) {
  if (!PyBool_Check(enabled)) {
    PyErr_Format(PyExc_TypeError, "set_grad_enabled(): argument 'enabled' (position 1) must be bool, not %s",
                 Py_TYPE(enabled)->tp_name);
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    switch_gradients(enabled == Py_True);
    Py_RETURN_NONE;
  });
}

// Stands in graphs, so that its text is seen: one of Python's own kind.
PyMethodDef g_set_grad_enabled = {"_set_grad_enabled", &set_grad_mode, METH_O, nullptr};

/// A method for classes that are made in Python, of no steps of Python's: no handler of a signal comes between.
template <class F> nb::object method_for_python(F&& function) {
  return owned(PyInstanceMethod_New(nb::cpp_function(std::forward<F>(function)).ptr()));
}

void bind_modes(nb::module_& m) {
  m.def("is_grad_enabled", &is_grad_enabled, "Whether calls are recorded for gradients.");
  m.attr("_set_grad_enabled") =
      nb::steal(PyCFunction_NewEx(&g_set_grad_enabled, nullptr, nb::str("umbra._C").release().ptr()));
  // _switching_gradients(to, before=None): a method that switches them to what one attribute says, and keeps what they
  // were in another.
  m.def(
      "_switching_gradients",
      [](nb::str to, nb::object before) {
        return method_for_python([to, before](nb::handle self, nb::args) {
          if (!before.is_none()) nb::setattr(self, before, nb::bool_(is_grad_enabled()));
          switch_gradients(nb::cast<bool>(nb::getattr(self, to)));
        });
      },
      nb::arg("to"), nb::arg("before") = nb::none());
  m.def("is_inference_mode_enabled", &is_inference_mode_enabled, "Whether this thread is inside of `inference_mode`.");
  nb::class_<InferenceMode>(m, "_InferenceMode").def(nb::init<bool>());
  m.def("_push_saved_tensor_hooks", [](nb::handle pack, nb::handle unpack) {
    autograd::push_saved_tensor_hooks(saved_tensor_hooks(pack, unpack));
  });
  m.def("_pop_saved_tensor_hooks", &autograd::pop_saved_tensor_hooks);
  m.def("_top_saved_tensor_hooks", [] {
    const autograd::SavedTensorHooks* top = autograd::top_saved_tensor_hooks();
    if (!top) return nb::object(nb::none());
    auto pack = [hook = top->pack](nb::handle tensor) {
      return nb::steal(wrap(hook(expect_tensor(tensor.ptr(), "a saved tensor hook"))));
    };
    auto unpack = [hook = top->unpack](nb::handle packed) {
      Value value = is_tensor(packed.ptr()) ? Value(tensor_of(packed.ptr()))
                                            : Value::object(make_counted<PythonObject>(packed.ptr()));
      return nb::steal(wrap(hook(value)));
    };
    return nb::object(nb::make_tuple(nb::cpp_function(pack), nb::cpp_function(unpack)));
  });
  m.def("_has_saved_tensor_hooks", &autograd::has_saved_tensor_hooks);
  m.def("_disable_saved_tensor_hooks",
        [](std::optional<std::string> message) { autograd::disable_saved_tensor_hooks(std::move(message)); });
  m.def("_saved_tensor_hooks_disabled", &autograd::saved_tensor_hooks_disabled);
}

void bind_forward_mode(nb::module_& m) {
  m.def("_enter_dual_level", &autograd::enter_dual_level);
  m.def("_exit_dual_level", &autograd::exit_dual_level, nb::arg("level") = -1);
  m.def("_is_fwd_grad_enabled", &autograd::forward_mode_enabled);
  m.def("_set_fwd_grad_enabled", &autograd::set_forward_mode_enabled);
  m.def(
      "_make_dual",
      [](const Tensor& primal, const Tensor& tangent, int level) {
        // The tangents would be computed below the tracer, and come out as constants.
        check<NotImplementedError>(!active_mode(DispatchKey::PreProxy),
                                   "make_dual in a program that is recorded above autograd (torch.export, make_fx with "
                                   "pre_dispatch) is not in Umbra yet; torch.func.jvp can be used there");
        return autograd::make_dual(primal, tangent, level);
      },
      nb::arg("primal"), nb::arg("tangent"), nb::arg("level") = -1);
  m.def(
      "_unpack_dual",
      [](const Tensor& t, int level) {
        autograd::Dual dual = autograd::unpack_dual(t, level);
        return nb::make_tuple(nb::steal(wrap(dual.primal)), nb::steal(wrap(dual.tangent)));
      },
      nb::arg("tensor"), nb::arg("level") = -1);
}

}  // namespace

void add_autograd_properties(std::vector<PyGetSetDef>& properties) {
  std::initializer_list<PyGetSetDef> own = {
      {"requires_grad", get_requires_grad, set_requires_grad, nullptr, nullptr},
      {"grad", get_grad, set_grad, nullptr, nullptr},
      {"_grad", get_grad_quietly, set_grad, nullptr, nullptr},
      {"grad_fn", get_grad_fn, nullptr, nullptr, nullptr},
      {"is_leaf", get_is_leaf, nullptr, nullptr, nullptr},
      {"grad_dtype", get_grad_dtype, set_grad_dtype, nullptr, nullptr},
      {"data", get_data, set_data, nullptr, nullptr},
      {"output_nr", get_output_number, nullptr, nullptr, nullptr},
      {"retains_grad", get_retains_grad, nullptr, nullptr, nullptr},
  };
  properties.insert(properties.end(), own);
}

void bind_autograd(nb::module_& m) {
  bind_passes(m);
  bind_modes(m);
  bind_forward_mode(m);
}

}  // namespace umbra::python
