// Tensor's attributes and the methods that tell of its metadata and memory.
#include "properties.h"

#include <unordered_set>

#include "autograd.h"
#include "autograd/wrapper_views.h"
#include "call.h"
#include "capture_frames.h"
#include "capture_watch.h"
#include "construct.h"
#include "conversions.h"
#include "functions.h"
#include "ops/view/contiguity.h"
#include "overridable.h"
#include "tensor_type.h"
#include "umbra/capture/tracer.h"
#include "umbra/core/sparse.h"
#include "umbra/core/warning.h"
#include "umbra/generated/functions.h"
#include "umbra/jit/trace.h"
#include "umbra/sym/shape_env.h"
#include "umbra/transform/vmap.h"
#include "values.h"

namespace umbra::python {

namespace {

// ---- tensor classes that say how they look ----

PyObject* g_answers = nullptr;  // {name: function}, once there is such a tensor (python/umbra/_metadata_policy.py)

/// Whether a tensor's class answers for it; `out` is then the answer, or null for an error.
bool answered(PyObject* self, const char* name, PyObject*& out, PyObject* const* args = nullptr, Py_ssize_t count = 0,
              PyObject* keywords = nullptr) {
  if (!g_answers || is_plain_tensor_type(Py_TYPE(self))) return false;
  std::vector<PyObject*> given{self};
  given.insert(given.end(), args, args + count + (keywords ? PyTuple_GET_SIZE(keywords) : 0));
  out = PyObject_Vectorcall(PyDict_GetItemString(g_answers, name), given.data(), static_cast<size_t>(count) + 1,
                            keywords);
  if (out != Py_NotImplemented) return true;
  Py_DECREF(out);
  return false;
}

// ---- attributes ----

PyObject* get_dtype(PyObject* self, void*) { return wrap(tensor_of(self).dtype()); }
PyObject* get_device(PyObject* self, void*) {
  if (PyObject * out; answered(self, "device", out)) return out;
  return property(self, [](const Tensor& t) { return wrap(t.device()); });
}
PyObject* get_layout(PyObject* self, void*) {
  if (PyObject * out; answered(self, "layout", out)) return out;
  return wrap(tensor_of(self).layout());
}
/// The trace that wants to know where numbers of this tensor go, or null.
jit::Trace* watching(const Tensor& t) {
  jit::Trace* trace = jit::active_trace();
  return trace && trace->on && !t.is_symbolic() ? trace : nullptr;
}
/// All sizes of a tensor; under a trace they are tensors that it knows.
PyObject* size_object(const Tensor& t) {
  jit::Trace* trace = watching(t);
  if (!trace) return wrap_size(t.sym_sizes());
  PyObject* size = checked(g_size_type->tp_alloc(g_size_type, t.dim()));
  for (int64_t d = 0; d < t.dim(); ++d) PyTuple_SET_ITEM(size, d, wrap(trace->size(t, d)));
  return size;
}
PyObject* get_shape(PyObject* self, void*) {
  if (PyObject * out; answered(self, "size", out)) return out;
  return property(self, [](const Tensor& t) { return size_object(t); });
}
PyObject* get_ndim(PyObject* self, void*) {
  if (PyObject * out; answered(self, "dim", out)) return out;
  return PyLong_FromLongLong(tensor_of(self).dim());
}
PyObject* get_item_size(PyObject* self, void*) { return PyLong_FromLongLong(tensor_of(self).item_size()); }
PyObject* get_nbytes(PyObject* self, void*) {
  return property(self, [](const Tensor& t) {
    check(t.layout() != Layout::SparseCoo,
          "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add the nbytes "
          "of the indices and values.  If you want the size of the  equivalent dense tensor, multiply numel() by "
          "element_size()");
    return wrap(t.sym_numel() * SymInt(t.item_size()));
  });
}
PyObject* get_version(PyObject* self, void*) {
  return property(self, [](const Tensor& t) {
    check(!t.impl()->is_inference(), "Inference tensors do not track version counter.");
    end_capture_of_question(t, "Tensor._version");
    return PyLong_FromLong(t.version());
  });
}
PyObject* get_cdata(PyObject* self, void*) { return PyLong_FromVoidPtr(tensor_of(self).impl()); }
PyObject* get_base(PyObject* self, void*) {
  return property(self, [](const Tensor& t) {
    end_capture_of_question(t, "Tensor._base");
    return wrap(ops::asked_view_base(t));
  });
}
template <DeviceType kType> PyObject* is_on(PyObject* self, void*) {
  if (PyObject * out; answered(self, "device", out)) {
    return guarded([&] {
      nb::object device = owned(out);
      return PyBool_FromLong(nb::cast<Device>(device).type == kType);
    });
  }
  return PyBool_FromLong(tensor_of(self).device().type == kType);
}
template <Layout kLayout> PyObject* has_layout(PyObject* self, void*) {
  return PyBool_FromLong(tensor_of(self).layout() == kLayout);
}
PyObject* always_false(PyObject*, void*) { return Py_NewRef(Py_False); }
PyObject* always_none(PyObject*, void*) { return Py_NewRef(Py_None); }

PyObject* get_real(PyObject* self, void*) {
  return property(self, [](const Tensor& t) { return wrap(call<"aten::real">(t)); });
}
PyObject* get_imag(PyObject* self, void*) {
  return property(self, [](const Tensor& t) {
    check<TypeError>(t.is_complex(), "imag is not implemented for tensors with non-complex dtypes.");
    return wrap(call<"aten::imag">(t));
  });
}
/// Writes a tensor or a number to one part of complex elements.
int set_part(PyObject* self, PyObject* value, Tensor (*part)(const Tensor&)) {
  return assignment(self, [&](const Tensor& t) {
    check<AttributeError>(value, "the parts of a tensor cannot be deleted");
    Tensor target = part(t);
    if (is_tensor(value)) return void(call<"aten::copy_">(target, tensor_of(value)));
    Scalar number;
    if (!read_scalar(value, number))
      fail<TypeError>("can't assign a ", short_type_name(Py_TYPE(value)), " to a torch.", kernel_name(target.dtype()),
                      "Tensor");
    call<"aten::fill_.Scalar">(target, number);
  });
}
int set_real(PyObject* self, PyObject* value, void*) {
  return set_part(self, value, [](const Tensor& t) { return call<"aten::real">(t); });
}
int set_imag(PyObject* self, PyObject* value, void*) {
  return set_part(self, value, [](const Tensor& t) { return call<"aten::imag">(t); });
}
PyObject* get_T(PyObject* self, void*) {
  return property(self, [](const Tensor& t) { return wrap(call<"aten::numpy_T">(t)); });
}
PyObject* get_mT(PyObject* self, void*) {
  return property(self, [](const Tensor& t) { return wrap(call<"aten::mT">(t)); });
}
PyObject* get_H(PyObject* self, void*) {
  return property(self, [](const Tensor& t) { return wrap(call<"aten::matrix_H">(t)); });
}
PyObject* get_mH(PyObject* self, void*) {
  return property(self, [](const Tensor& t) { return wrap(call<"aten::mH">(t)); });
}

PyGetSetDef get(const char* name, getter function) { return {name, function, nullptr, nullptr, nullptr}; }

// ---- methods ----

/// size(), size(dim), size(dim=1): a whole list, or one of its entries.
template <class All, class One>
PyObject* list_or_entry(PyObject* const* args, Py_ssize_t count, PyObject* keywords, const char* name, All&& all,
                        One&& one) {
  Py_ssize_t given = count + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
  if (given == 0 || args[0] == Py_None) return all();
  SymInt dim;
  check<TypeError>(given == 1, name, "() takes at most 1 argument (", given, " given)");
  if (!read_int(args[0], dim))
    fail<TypeError>(name, "(): argument 'dim' (position 1) must be int, not ", short_type_name(Py_TYPE(args[0])));
  return one(dim.guard_int());
}
PyObject* size(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  if (PyObject * out; answered(self, "size", out, args, count, keywords)) return out;
  return property(self, [&](const Tensor& t) {
    return list_or_entry(
        args, count, keywords, "size", [&] { return size_object(t); },
        [&](int64_t d) {
          SymInt size = t.sym_size(d);
          jit::Trace* trace = watching(t);
          return trace ? wrap(trace->size(t, d)) : wrap(size);
        });
  });
}
PyObject* stride(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  if (PyObject * out; answered(self, "stride", out, args, count, keywords)) return out;
  return property(self, [&](const Tensor& t) {
    check(!is_compressed(t.layout()), "Sparse CSR tensors do not have strides");
    ops::rely_on_layout(t);
    return list_or_entry(
        args, count, keywords, "stride", [&] { return wrap_tuple(t.sym_strides()); },
        [&](int64_t d) { return wrap(t.sym_stride(d)); });
  });
}
PyObject* dim(PyObject* self, PyObject*) { return get_ndim(self, nullptr); }
PyObject* numel(PyObject* self, PyObject*) {
  if (PyObject * out; answered(self, "numel", out)) return out;
  return property(self, [](const Tensor& t) {
    SymInt count = t.sym_numel();
    if (jit::Trace* trace = watching(t)) return wrap(trace->numel(t));
    note_numel(t, count);
    return wrap(count);
  });
}
PyObject* storage_offset(PyObject* self, PyObject*) {
  if (PyObject * out; answered(self, "storage_offset", out)) return out;
  return property(self, [](const Tensor& t) {
    ops::rely_on_layout(t);
    return wrap(t.sym_storage_offset());
  });
}
PyObject* element_size(PyObject* self, PyObject*) { return PyLong_FromLongLong(tensor_of(self).item_size()); }
constexpr const char* kNoPointer =
    "Cannot access data pointer of Tensor (e.g. FakeTensor, FunctionalTensor). If you're using "
    "torch.compile/export/fx, it is likely that we are erroneously tracing into a custom kernel. To fix this, please "
    "wrap the custom kernel into an opaque custom op. Please see the following for details: "
    "https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html";
PyObject* data_ptr(PyObject* self, PyObject*) {
  return property(self, [](const Tensor& t) {
    if (t.is_fake()) {
      check(!active_mode(DispatchKey::PreProxy) && !active_mode(DispatchKey::Proxy), kNoPointer);
      warn("data_ptr() of a FakeTensor is 0: it has no data. Wrap what needs a pointer in a custom operator.");
      return PyLong_FromLong(0);
    }
    bool elsewhere = t.is_meta() || t.keys().has(DispatchKey::Subclass);
    if (t.storage() && !t.storage()->has_data() && elsewhere) return PyLong_FromLong(0);
    check(t.storage() && t.storage()->has_data(), kNoPointer);
    return PyLong_FromVoidPtr(t.numel() ? t.raw_data() : nullptr);
  });
}
PyObject* is_contiguous(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  if (PyObject * out; answered(self, "is_contiguous", out, args, count, keywords)) return out;
  return property(self, [&](const Tensor& t) {
    check(!is_compressed(t.layout()), "Sparse CSR tensors do not have is_contiguous");
    Py_ssize_t given = count + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
    MemoryFormat format = MemoryFormat::Contiguous;
    if (given > 0) {
      bool by_name = keywords && PyTuple_GET_SIZE(keywords) > 0;
      check<TypeError>(given == 1 && (!by_name || text_of(PyTuple_GET_ITEM(keywords, 0)) == "memory_format"),
                       "is_contiguous() takes memory_format and nothing else");
      check<TypeError>(Py_TYPE(args[0]) == g_memory_format_type,
                       "is_contiguous(): argument 'memory_format' must be "
                       "torch.memory_format, not ",
                       short_type_name(Py_TYPE(args[0])));
      format = static_cast<MemoryFormat>(constant_of(args[0]));
    }
    bool answer = format == MemoryFormat::Contiguous ? ops::decide_contiguity(t) : t.is_contiguous(format);
    ops::rely_on_contiguity(t, answer && format == MemoryFormat::Contiguous);
    return PyBool_FromLong(answer);
  });
}
template <class F> PyObject* flag(PyObject* self, F&& body) {
  return property(self, [&](const Tensor& t) { return PyBool_FromLong(body(t)); });
}
PyObject* is_floating_point(PyObject* self, PyObject*) {
  return flag(self, [](const Tensor& t) { return t.is_floating_point(); });
}
PyObject* is_complex_tensor(PyObject* self, PyObject*) {
  return flag(self, [](const Tensor& t) { return t.is_complex(); });
}
PyObject* is_conj(PyObject* self, PyObject*) {
  return flag(self, [](const Tensor& t) { return t.is_conj(); });
}
PyObject* is_neg(PyObject* self, PyObject*) {
  return flag(self, [](const Tensor& t) { return t.is_neg(); });
}
PyObject* is_inference(PyObject* self, PyObject*) {
  return flag(self, [](const Tensor& t) {
    end_capture_of_question(t, "Tensor.is_inference()");
    return t.impl()->is_inference();
  });
}
PyObject* is_view(PyObject* self, PyObject*) {
  return flag(self, [](const Tensor& t) {
    end_capture_of_question(t, "Tensor._is_view()");
    return ops::asked_view_base(t).defined();
  });
}
/// The same view of another base.
PyObject* view_func(PyObject* self, PyObject* base) {
  return guarded([&] {
    const Tensor& view = tensor_of(self);
    Tensor on = tensor_of(base);
    if (const autograd::ViewReplay& replay = autograd::replay_of(view)) return wrap(replay(on));
    return wrap(as_strided(on, view.sym_sizes(), view.sym_strides(), view.sym_storage_offset()));
  });
}
PyObject* is_dense(PyObject* self, PyObject*) {
  return flag(self, [](const Tensor& t) { return t.is_non_overlapping_and_dense(); });
}
PyObject* get_device_index(PyObject* self, PyObject*) { return PyLong_FromLong(tensor_of(self).device().index); }
PyObject* no(PyObject*, PyObject*) { return Py_NewRef(Py_False); }

PyObject* item(PyObject* self, PyObject*) {
  return property(self, [](const Tensor& t) {
    if (!t.sym_numel().is_symbolic())
      check(t.sym_numel().value() == 1, "a Tensor with ", t.sym_numel(), " elements cannot be converted to Scalar");
    jit::warn_of_value("a Python number");
    return wrap(call_value<"aten::item">(t));
  });
}
PyObject* tolist(PyObject* self, PyObject*) {
  return property(self, [](const Tensor& t) {
    jit::warn_of_value("a Python list");
    end_capture_for(t, "Tensor.tolist()");
    check(!transform::is_batched_inside(t), "Cannot access data pointer of Tensor that doesn't have storage");
    return to_list(t);
  });
}
PyObject* numpy(PyObject* self, PyObject* args, PyObject* kwargs) {
  return property(self, [&](const Tensor& t) {
    PyObject* force = kwargs ? PyDict_GetItemString(kwargs, "force") : nullptr;
    Py_ssize_t others = PyTuple_GET_SIZE(args) + (kwargs ? PyDict_GET_SIZE(kwargs) : 0) - (force ? 1 : 0);
    check<TypeError>(others == 0 && (!force || PyBool_Check(force)), "numpy() takes force, a bool, and nothing else");
    jit::warn_of_value("a NumPy array");
    end_capture_for(t, "Tensor.numpy()");
    if (force != Py_True) return to_numpy(t);
    Tensor plain = call<"aten::resolve_neg">(call<"aten::resolve_conj">(call<"aten::detach">(t)));
    return to_numpy(call<"aten::to.dtype_layout">(plain, plain.dtype(), Layout::Strided, Device()));
  });
}

PyObject* repr(PyObject* self) {
  // A subclass may say what stands before the parenthesis; the rest is the tensor's.
  return guarded([&] {
    nb::object text = nb::module_::import_("umbra._tensor_str").attr("_str")(nb::handle(self));
    return text.release().ptr();
  });
}

std::vector<PyMethodDef> own_methods() {
  std::vector<PyMethodDef> methods = {
      method<"size", size>(),
      method<"stride", stride>(),
      method<"dim", dim>(),
      method<"ndimension", dim>(),
      method<"numel", numel>(),
      method<"nelement", numel>(),
      method<"storage_offset", storage_offset>(),
      method<"element_size", element_size>(),
      method<"data_ptr", data_ptr>(),
      method<"is_contiguous", is_contiguous>(),
      method<"is_floating_point", is_floating_point>(),
      method<"is_complex", is_complex_tensor>(),
      method<"is_conj", is_conj>(),
      method<"is_neg", is_neg>(),
      method<"is_inference", is_inference>(),
      method<"_is_view", is_view>(),
      {"_view_func", view_func, METH_O, nullptr},
      method<"is_non_overlapping_and_dense", is_dense>(),
      method<"get_device", get_device_index>(),
      method<"is_pinned", no>(),
      method<"item", item>(),
      method<"tolist", tolist>(),
      method<"numpy", numpy>(),
  };
  add_number_methods(methods);
  add_conversion_methods(methods);
  methods.push_back({nullptr, nullptr, 0, nullptr});
  return methods;
}

std::vector<PyGetSetDef> own_properties() {
  std::vector<PyGetSetDef> properties = {get("dtype", get_dtype),
                                         get("device", get_device),
                                         get("layout", get_layout),
                                         get("shape", get_shape),
                                         get("ndim", get_ndim),
                                         get("itemsize", get_item_size),
                                         get("nbytes", get_nbytes),
                                         get("_version", get_version),
                                         get("_cdata", get_cdata),
                                         get("_base", get_base),
                                         {"real", get_real, set_real, nullptr, nullptr},
                                         {"imag", get_imag, set_imag, nullptr, nullptr},
                                         get("T", get_T),
                                         get("mT", get_mT),
                                         get("H", get_H),
                                         get("mH", get_mH),
                                         get("is_cpu", is_on<DeviceType::CPU>),
                                         get("is_cuda", is_on<DeviceType::CUDA>),
                                         get("is_meta", is_on<DeviceType::Meta>),
                                         get("is_mps", is_on<DeviceType::MPS>),
                                         get("is_xpu", is_on<DeviceType::XPU>),
                                         get("is_sparse", has_layout<Layout::SparseCoo>),
                                         get("is_sparse_csr", has_layout<Layout::SparseCsr>),
                                         get("is_mkldnn", has_layout<Layout::Mkldnn>),
                                         get("is_quantized", always_false),
                                         get("is_nested", always_false),
                                         get("name", always_none)};
  add_autograd_properties(properties);
  make_overridable(properties);
  properties.push_back({"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr});
  properties.push_back({nullptr, nullptr, nullptr, nullptr, nullptr});
  return properties;
}

}  // namespace

void add_tensor_slots(std::vector<PyType_Slot>& slots) {
  static std::vector<PyMethodDef> methods = own_methods();
  static std::vector<PyGetSetDef> properties = own_properties();
  slots.push_back({Py_tp_methods, methods.data()});
  slots.push_back({Py_tp_getset, properties.data()});
  slots.push_back(slot(Py_tp_repr, unary_slot<"__repr__", repr>));
  add_number_slots(slots);
  add_index_slots(slots);
}

void add_operator_methods() {
  auto* type = reinterpret_cast<PyObject*>(g_tensor_type);
  std::unordered_set<std::string> done;
  for (const Operator* op : all_operators()) {
    const Schema& schema = op->schema();
    if (schema.space != "aten" || schema.arguments.empty() || op->has_out()) continue;
    const SchemaArgument& self = schema.arguments[0];
    if (self.name != "self" || !self.type.is_tensor() || !done.insert(schema.name).second) continue;
    nb::object name = make_text(schema.name);
    if (PyDict_Contains(g_tensor_type->tp_dict, name.ptr()) == 1) continue;  // the class has one of its own
    nb::object method = nb::steal(make_function("aten::" + schema.name, Reading::Method));
    checked(PyObject_SetAttr(type, name.ptr(), method.ptr()));
  }
  // Python's names of these are the methods themselves: what handlers are given of `-x`. Tensor keeps its fast slots.
  PyObject* members = g_tensor_type->tp_dict;
  for (auto [special, name] : {std::pair{"__neg__", "neg"}, {"__pos__", "positive"}, {"__abs__", "abs"}})
    checked(PyDict_SetItemString(members, special, PyDict_GetItemString(members, name)));
  PyType_Modified(g_tensor_type);
}

namespace {
/// The keys of a tensor by PyTorch's names, in its order.
std::string dispatch_key_set(nb::handle object) {
  const Tensor& t = tensor_of(object.ptr());
  std::string device = t.device().type == DeviceType::CPU    ? "CPU"
                       : t.device().type == DeviceType::CUDA ? "CUDA"
                       : t.device().type == DeviceType::Meta ? "Meta"
                                                             : "PrivateUse1";
  bool inner_python = t.is_fake() || t.keys().has(DispatchKey::Subclass), plain = !t.impl()->is_inference();
  std::string out = t.keys().has(DispatchKey::Sparse) ? (is_compressed(t.layout()) ? "SparseCsr" : "Sparse") : "";
  out += device;
  if (inner_python) out += ", Python";
  if (t.is_conj()) out += ", Conjugate";
  if (t.is_neg()) out += ", Negative";
  if (_is_zerotensor(t)) out += ", ZeroTensor";
  if (plain) out += ", ADInplaceOrView, Autograd" + device;
  if (device != "Meta") out += ", Autocast" + device;
  if (inner_python) out += ", PythonTLSSnapshot";
  return "DispatchKeySet(" + out + ")";
}
}  // namespace

void bind_properties(nb::module_& m) {
  m.def("_dispatch_key_set", &dispatch_key_set);
  m.def("_set_metadata_answers", [](nb::dict answers) { g_answers = answers.inc_ref().ptr(); });
  add_operator_methods();
  m.def("_set_conj", [](const Tensor& t, bool value) { t.impl()->set_conj(value); });
  m.def("_set_neg", [](const Tensor& t, bool value) { t.impl()->set_neg(value); });
}

}  // namespace umbra::python
