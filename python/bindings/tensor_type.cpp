// The Tensor type: how its objects are made, found again and let go.
//
// An object holds its impl. When the last Python reference goes while C++ still holds the impl, a plain object simply
// dies (the next one cannot be told from it). One with attributes, weak references or a class of the user's is kept:
// the impl becomes its owner, until Python sees the tensor again or the impl dies.
#include "tensor_type.h"

#include "hooks.h"
#include "lock.h"
#include "properties.h"

namespace umbra::python {

PyTypeObject* g_tensor_type;
PyTypeObject* g_fake_tensor_type;

namespace {

PyTensor* cast(PyObject* self) { return reinterpret_cast<PyTensor*>(self); }

bool has_state(PyObject* self) {
  return cast(self)->attributes || cast(self)->weak_references || !is_plain_tensor_type(Py_TYPE(self));
}

// CPython calls a finalizer once in an object's life; an object that was kept needs it again.
void forget_finalized(PyObject* self) {
  constexpr uintptr_t kFinalized = 1;
  reinterpret_cast<uintptr_t*>(self)[-1] &= ~kFinalized;
}

void finalize(PyObject* self) {
  TensorImpl* impl = cast(self)->impl;
  if (!impl || impl->use_count() <= 1 || !has_state(self)) return;
  Py_INCREF(self);  // the impl's, from now on
  impl->set_python_object(self, /*owned=*/true);
  cast(self)->impl = nullptr;
  impl->release();
}

// Python sees the tensor again: the object takes its impl back and hands over the reference that the impl had.
PyObject* take_back(TensorImpl* impl) {
  auto* self = static_cast<PyObject*>(impl->python_object());
  impl->retain();
  cast(self)->impl = impl;
  impl->set_python_object(self);
  forget_finalized(self);
  return self;
}

// The impl of a kept object has died.
void release_kept(void* object) {
  if (!Py_IsInitialized()) return;
  WithLock lock;
  auto* self = static_cast<PyObject*>(object);
  cast(self)->impl = nullptr;
  Py_DECREF(self);
}

void drop_impl(PyTensor* self) {
  if (TensorImpl* impl = std::exchange(self->impl, nullptr)) {
    if (impl->python_object() == self) impl->set_python_object(nullptr);
    impl->release();
  }
}

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (has_state(self)) {
    if (is_plain_tensor_type(type) && PyObject_CallFinalizerFromDealloc(self) < 0) return;  // kept
    if (cast(self)->weak_references) PyObject_ClearWeakRefs(self);
    PyObject_GC_UnTrack(self);
    Py_CLEAR(cast(self)->attributes);
  }
  if (PyObject_GC_IsTracked(self)) PyObject_GC_UnTrack(self);
  drop_impl(cast(self));
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

bool stands_for_history(PyObject* self) { return cast(self)->impl && cast(self)->impl->use_count() == 1; }

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  // What others hold in C++ comes back with its attributes: these are then not the object's own to lose.
  if (cast(self)->impl && !stands_for_history(self)) return 0;
  Py_VISIT(cast(self)->attributes);
  return cast(self)->impl ? visit_history(cast(self)->impl, visit, arg) : 0;
}

int clear(PyObject* self) {
  Py_CLEAR(cast(self)->attributes);
  if (stands_for_history(self)) clear_history(cast(self)->impl);
  return 0;
}

// Only an object with attributes or hooks can be part of a cycle: the collector hears of it with the first one.
int set_attribute(PyObject* self, PyObject* name, PyObject* value) {
  int status = PyObject_GenericSetAttr(self, name, value);
  if (cast(self)->attributes && !PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
  return status;
}

PyObject* allocate(PyTypeObject* type) {
  if (is_plain_tensor_type(type)) {
    auto* self = PyObject_GC_New(PyTensor, type);
    if (!self) throw nb::python_error();
    self->weak_references = self->attributes = nullptr;
    self->impl = nullptr;
    return reinterpret_cast<PyObject*>(self);
  }
  return checked(type->tp_alloc(type, 0));
}

PyObject* attach(PyObject* self, TensorImpl* impl) {
  cast(self)->impl = impl;
  impl->set_python_object(self);
  return self;
}

PyTypeObject* class_of(TensorImpl* impl) {
  return impl->keys().has(DispatchKey::Fake) ? g_fake_tensor_type : g_tensor_type;
}

// Tensor(...) as torch has it: from sizes or data. The work is done in Python, where it is rarely called.
PyObject* construct(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    nb::object legacy = nb::module_::import_("umbra._old_constructor").attr("construct");
    nb::object tuple = owned(PyTuple_New(PyTuple_GET_SIZE(args) + 1));
    PyTuple_SET_ITEM(tuple.ptr(), 0, Py_NewRef(reinterpret_cast<PyObject*>(type)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
      PyTuple_SET_ITEM(tuple.ptr(), i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
    return checked(PyObject_Call(legacy.ptr(), tuple.ptr(), kwargs));
  });
}

// What the objects stand for and the attributes they have; their classes are exchanged in Python.
void exchange(nb::handle first, nb::handle second) {
  for (nb::handle object : {first, second}) expect_tensor(object.ptr(), "_exchange_tensors");
  PyTensor *a = cast(first.ptr()), *b = cast(second.ptr());
  std::swap(a->impl, b->impl);
  std::swap(a->attributes, b->attributes);
  for (nb::handle object : {first, second}) {
    PyTensor* self = cast(object.ptr());
    if (self->impl) self->impl->set_python_object(self);
    if (self->attributes && !PyObject_GC_IsTracked(object.ptr())) PyObject_GC_Track(object.ptr());
  }
}

// object.__init__ refuses arguments that __new__ has taken already.
int accept_arguments(PyObject*, PyObject*, PyObject*) { return 0; }

Py_hash_t hash(PyObject* self) { return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(self)); }

PyMemberDef g_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyTensor, weak_references), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(PyTensor, attributes), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyTypeObject* make_type(PyObject* module, const char* name, std::vector<PyType_Slot> slots, PyTypeObject* base) {
  slots.push_back({0, nullptr});
  PyType_Spec spec = {name, sizeof(PyTensor), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                      slots.data()};
  return add_type(module, spec, base);
}

}  // namespace

PyObject* wrap_as(PyTypeObject* type, const Tensor& tensor) {
  if (auto* object = static_cast<PyObject*>(tensor.impl()->python_object())) {
    check(PyType_IsSubtype(Py_TYPE(object), type), "Creating a new Tensor subclass ", short_type_name(type),
          " but the raw Tensor object is already associated to a python object of type ",
          short_type_name(Py_TYPE(object)), " which is not a subclass of the requested type");
    return wrap(tensor);
  }
  PyObject* self = allocate(type);
  tensor.impl()->retain();
  return attach(self, tensor.impl());
}

PyObject* wrap(const Tensor& tensor) {
  TensorImpl* impl = tensor.impl();
  if (!impl) Py_RETURN_NONE;
  if (void* object = impl->python_object())
    return impl->owns_python_object() ? take_back(impl) : Py_NewRef(static_cast<PyObject*>(object));
  return wrap_as(class_of(impl), tensor);
}

PyObject* wrap(Tensor&& tensor) {
  TensorImpl* impl = tensor.impl();
  if (!impl || impl->python_object()) return wrap(static_cast<const Tensor&>(tensor));
  PyObject* self = allocate(class_of(impl));
  IntrusivePtr<TensorImpl>& pointer = reinterpret_cast<IntrusivePtr<TensorImpl>&>(tensor);
  return attach(self, pointer.leak());
}

void track(const Tensor& tensor) {
  auto* object = static_cast<PyObject*>(tensor.impl()->python_object());
  if (object && !PyObject_GC_IsTracked(object)) PyObject_GC_Track(object);
}

const Tensor& expect_tensor(PyObject* object, const char* what) {
  if (!is_tensor(object)) fail<TypeError>(what, ": expected a Tensor, not ", short_type_name(Py_TYPE(object)));
  return tensor_of(object);
}

void bind_tensor_type(nb::module_& m) {
  TensorImpl::release_python_object = release_kept;
  std::vector<PyType_Slot> slots = {
      {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
      {Py_tp_finalize, reinterpret_cast<void*>(finalize)},
      {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(clear)},
      {Py_tp_members, g_members},
      {Py_tp_setattro, reinterpret_cast<void*>(set_attribute)},
      {Py_tp_new, reinterpret_cast<void*>(construct)},
      {Py_tp_init, reinterpret_cast<void*>(accept_arguments)},
      {Py_tp_hash, reinterpret_cast<void*>(hash)},
  };
  add_tensor_slots(slots);
  g_tensor_type = make_type(m.ptr(), "umbra.Tensor", std::move(slots), nullptr);
  g_fake_tensor_type = make_type(m.ptr(), "umbra._subclasses.fake_tensor.FakeTensor",
                                 {
                                     {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
                                     {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                                     {Py_tp_clear, reinterpret_cast<void*>(clear)},
                                 },
                                 g_tensor_type);
  m.def("_exchange_tensors", &exchange);
  m.def("_use_count", [](nb::handle object) { return expect_tensor(object.ptr(), "_use_count").impl()->use_count(); });
  m.attr("TensorBase") = nb::handle(reinterpret_cast<PyObject*>(g_tensor_type));
}

}  // namespace umbra::python
