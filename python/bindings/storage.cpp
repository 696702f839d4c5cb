// UntypedStorage: the memory behind tensors as Python sees it, and its bytes through the buffer protocol.
#include "construct.h"
#include "core/lent_memory.h"
#include "ops/view/contiguity.h"
#include "tensor_type.h"
#include "umbra/core/shared_memory.h"
#include "values.h"

namespace umbra::python {

namespace {

// ---- the buffer of a storage ----

struct PyStorageBuffer {
  PyObject_HEAD StorageImpl* storage;
};
PyTypeObject* g_buffer_type;

void deallocate_buffer(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  StorageImpl* storage = reinterpret_cast<PyStorageBuffer*>(self)->storage;
  take_back(*storage);
  storage->release();
  PyObject_Free(self);
  Py_DECREF(type);
}
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  StorageImpl* storage = reinterpret_cast<PyStorageBuffer*>(self)->storage;
  return guarded_int([&] {
    int64_t bytes = storage->bytes().guard_int();
    check(bytes == 0 || storage->has_data(), "a storage without data has no bytes to read");
    return PyBuffer_FillInfo(view, self, storage->data(), bytes, /*readonly=*/0, flags);
  });
}

/// The Python class.
struct StorageObject {
  Storage storage;
  bool of_wrapper = false;  // a tensor that keeps its elements elsewhere: there is nothing here to read or change

  void refuse_wrapper(const char* what) const {
    check(!of_wrapper, "Attempted to ", what, " on an invalid python storage.");
  }
};

int64_t bytes_of(const StorageObject& s) { return s.storage->bytes().guard_int(); }

std::string describe(const StorageObject& s) {
  std::string out;
  if (s.storage->has_data()) {
    auto* data = static_cast<const uint8_t*>(s.storage->data());
    int64_t shown = std::min<int64_t>(bytes_of(s), 1000);
    for (int64_t i = 0; i < shown; ++i) out += " " + std::to_string(data[i]) + "\n";
    if (shown < bytes_of(s)) out += " ...\n";
  } else {
    out = "...\n";
  }
  return out +
         concat("[torch.storage.UntypedStorage(device=", s.storage->device(), ") of size ", s.storage->bytes(), "]");
}

}  // namespace

PyObject* storage_buffer(const Storage& storage) {
  auto* self = PyObject_New(PyStorageBuffer, g_buffer_type);
  if (!self) throw nb::python_error();
  self->storage = storage.get();
  self->storage->retain();
  lend(*storage);
  return reinterpret_cast<PyObject*>(self);
}

void bind_storage(nb::module_& m) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(deallocate_buffer)},
                         {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                         {0, nullptr}};
  PyType_Spec spec = {"umbra._C.StorageBuffer", sizeof(PyStorageBuffer), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  g_buffer_type = add_type(m.ptr(), spec);

  auto make_empty = [](StorageObject* self, int64_t bytes, std::optional<Device> device) {
    check<ValueError>(bytes >= 0, "Storage size calculation overflowed with size=", bytes);
    Device place = device.value_or(Device());
    bool holds_data = place.type == DeviceType::CPU;
    new (self) StorageObject{holds_data ? StorageImpl::allocate(bytes) : StorageImpl::without_data(bytes, place)};
  };
  nb::class_<StorageObject>(m, "UntypedStorage", nb::dynamic_attr(), nb::is_weak_referenceable())
      .def("__init__", make_empty, nb::arg("size") = 0, nb::kw_only(), nb::arg("device") = nb::none())
      .def(
          "__init__",
          [make_empty](StorageObject* self, nb::handle values, std::optional<Device> device) {
            if (PyIndex_Check(values.ptr()) && !PySequence_Check(values.ptr()))  // an integer of NumPy's
              return make_empty(self, nb::cast<int64_t>(owned(PyNumber_Index(values.ptr()))), device);
            std::string kind = short_type_name(Py_TYPE(values.ptr()));
            check(PySequence_Check(values.ptr()), "torch.UntypedStorage(): Expected a sequence type, but got ", kind);
            nb::object list = owned(PySequence_List(values.ptr()));
            Py_ssize_t count = PyList_GET_SIZE(list.ptr());
            Device place = device.value_or(Device());
            Storage made =
                place.type == DeviceType::CPU ? StorageImpl::allocate(count) : StorageImpl::without_data(count, place);
            for (Py_ssize_t i = 0; i < count; ++i) {
              PyObject* item = PyList_GET_ITEM(list.ptr(), i);
              check(PyLong_Check(item), "torch.UntypedStorage(): tried to construct a storage from a sequence (", kind,
                    "), but one of the items was of type ", short_type_name(Py_TYPE(item)), " instead of int");
              if (made->has_data()) static_cast<uint8_t*>(made->data())[i] = static_cast<uint8_t>(PyLong_AsLong(item));
            }
            new (self) StorageObject{std::move(made)};
          },
          nb::arg("sequence"), nb::kw_only(), nb::arg("device") = nb::none())
      .def("data_ptr",
           [](const StorageObject& s) {
             s.refuse_wrapper("access the data pointer");
             return reinterpret_cast<uintptr_t>(s.storage->data());
           })
      .def("_refuse_wrapper", [](const StorageObject& s, const char* what) { s.refuse_wrapper(what); })
      .def("nbytes", [](const StorageObject& s) { return nb::steal(wrap(s.storage->bytes())); })
      .def("size", [](const StorageObject& s) { return nb::steal(wrap(s.storage->bytes())); })
      .def("__len__", &bytes_of)
      .def("element_size", [](const StorageObject&) { return 1; })
      .def("resizable", [](const StorageObject& s) { return s.storage->resizable() && !is_lent(*s.storage); })
      .def(
          "resize_",
          [](StorageObject& s, int64_t bytes) -> StorageObject& {
            s.refuse_wrapper("call resize_()");
            s.storage->resize(bytes);
            return s;
          },
          nb::rv_policy::none)
      .def("is_shared", [](const StorageObject& s) { return is_shared(*s.storage); })
      .def(
          "share_memory_",
          [](StorageObject& s) -> StorageObject& {
            s.storage->move_to(shared_memory());
            return s;
          },
          nb::rv_policy::none)
      .def("_shared_descriptor", [](const StorageObject& s) { return shared_descriptor(*s.storage); })
      .def_prop_ro("device", [](const StorageObject& s) { return s.storage->device(); })
      .def_prop_ro("_cdata", [](const StorageObject& s) { return reinterpret_cast<uintptr_t>(s.storage.get()); })
      .def(
          "__eq__",
          [](const StorageObject& a, nb::handle b) {
            return nb::isinstance<StorageObject>(b) && a.storage == nb::cast<const StorageObject&>(b).storage;
          },
          nb::arg().none())
      .def("__hash__", [](const StorageObject& s) { return reinterpret_cast<uintptr_t>(s.storage.get()); })
      .def("__getitem__",
           [](const StorageObject& s, int64_t i) {
             int64_t n = bytes_of(s);
             check<NotImplementedError>(s.storage->has_data(), "Not available for '", s.storage->device(),
                                        "' device type: the storage has no data");
             check<IndexError>(i >= -n && i < n, "index ", i, " out of range for storage of size ", n);
             return static_cast<const uint8_t*>(s.storage->data())[i < 0 ? i + n : i];
           })
      .def("_has_data", [](const StorageObject& s) { return s.storage->has_data() || s.storage->bytes().same(0); })
      .def("_buffer", [](const StorageObject& s) { return nb::steal(storage_buffer(s.storage)); })
      .def("__repr__", &describe);
  m.def("_untyped_storage", [](const Tensor& t) {
    ops::rely_on_layout(t);
    bool of_class = t.keys().has(DispatchKey::Subclass) && !t.is_meta() && t.storage() && !t.storage()->has_data();
    bool of_wrapper = of_class || t.keys().has(DispatchKey::Level) || t.keys().has(DispatchKey::Functionalize);
    return StorageObject{t.storage(), of_wrapper};
  });
  m.def("_shared_storage",
        [](int descriptor, int64_t bytes) { return StorageObject{shared_storage(descriptor, bytes)}; });
  m.def("_storage_id", [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.storage().get()); });
  m.def("_is_alias_of", [](const Tensor& a, const Tensor& b) {
    ops::rely_on_layout(a);
    return a.storage() == b.storage();
  });
  m.def("_set_storage", [](const Tensor& t, const StorageObject& s, int64_t offset, const std::vector<int64_t>& sizes,
                           const std::vector<int64_t>& strides) {
    t.impl()->set_storage(s.storage);
    t.impl()->set_geometry(as_sym(sizes), as_sym(strides), offset);
  });
}

}  // namespace umbra::python
