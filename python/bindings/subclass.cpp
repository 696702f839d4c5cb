// Tensors of classes that users write: with data (_make_subclass), or as wrappers around other tensors.
#include "arguments.h"
#include "call.h"
#include "construct.h"
#include "dispatch_mode.h"
#include "misc.h"
#include "tensor_type.h"
#include "umbra/dispatch/dispatcher.h"
#include "values.h"

namespace umbra::python {

namespace {

PyTypeObject* expect_class(nb::handle cls) {
  bool good = PyType_Check(cls.ptr()) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls.ptr()), g_tensor_type);
  if (!good) fail<TypeError>("cls must be a type that derives from Tensor (got ", repr_of(cls.ptr()), ")");
  return reinterpret_cast<PyTypeObject*>(cls.ptr());
}

/// The object of a new tensor; calls on it come to the class if that has a __torch_dispatch__.
nb::object make_object(nb::handle cls, const Tensor& tensor) {
  PyTypeObject* type = expect_class(cls);
  if (has_dispatch_method(type)) {
    tensor.impl()->add_key(DispatchKey::Subclass);
    // Autograd is to see its views and writes from the first, as those of other tensors.
    if (!tensor.impl()->is_inference()) tensor.impl()->add_key(DispatchKey::Autograd);
  }
  return nb::steal(wrap_as(type, tensor));
}

nb::object make_subclass(nb::handle cls, const Tensor& data, bool requires_grad) {
  // Users' modes do not see that a tensor gets another class.
  Tensor alias = [&] {
    ExcludeKeys modes(DispatchKey::UserMode);
    return call<"aten::detach">(data);
  }();
  alias.impl()->set_view_base(nullptr);
  nb::object out = make_object(cls, alias);
  if (requires_grad) require_gradient(alias);
  return out;
}

std::vector<SymInt> read_ints(nb::handle object, const char* what) {
  Scratch scratch;
  Value value;
  SchemaType type{.base = SchemaType::Base::SymInt, .list = true};
  nb::object sequence = owned(PySequence_Tuple(object.ptr()));
  if (!read_value(sequence.ptr(), type, value, scratch, false))
    fail<TypeError>("_make_wrapper_subclass(): argument '", what, "' must be tuple of ints");
  return value.int_list().vec();
}

nb::object make_wrapper_subclass(nb::handle cls, nb::handle size, nb::dict options) {
  auto option = [&](const char* name) -> nb::object {
    return options.contains(name) ? nb::object(options[name]) : nb::object(nb::none());
  };
  std::vector<SymInt> sizes = read_ints(size, "size");
  for (const SymInt& length : sizes)
    check(length.is_symbolic() || length.value() >= 0, "Trying to create tensor with negative dimension ", length);
  nb::object strides_option = option("strides"), offset_option = option("storage_offset");
  SymShape contiguous = contiguous_strides(sizes);
  std::vector<SymInt> strides = strides_option.is_none() ? contiguous.vec() : read_ints(strides_option, "strides");
  check(strides.size() == sizes.size(), "dimensionality of sizes (", sizes.size(),
        ") must match dimensionality of strides (", strides.size(), ")");
  SymInt offset = 0;
  if (!offset_option.is_none()) read_int(offset_option.ptr(), offset);
  DType dtype = default_dtype();
  if (nb::object given = option("dtype"); !given.is_none())
    check<TypeError>(read_dtype(given.ptr(), dtype),
                     "_make_wrapper_subclass(): argument 'dtype' must be torch.dtype, not ",
                     short_type_name(Py_TYPE(given.ptr())));
  Device device;
  if (nb::object given = option("device"); !given.is_none()) read_device(given.ptr(), device);
  DispatchKey backend = device.type == DeviceType::CPU    ? DispatchKey::CPU
                        : device.type == DeviceType::Meta ? DispatchKey::Meta
                                                          : DispatchKey::CUDA;
  Storage storage = StorageImpl::without_data(storage_bytes(sizes, strides, offset, item_size(dtype)), device);
  auto impl = make_counted<TensorImpl>(std::move(storage), dtype, device, backend);
  impl->set_geometry(sizes, strides, offset);
  if (nb::object given = option("layout"); !given.is_none()) {
    Layout layout;
    check<TypeError>(read_layout(given.ptr(), layout),
                     "_make_wrapper_subclass(): argument 'layout' must be torch.layout, not ",
                     short_type_name(Py_TYPE(given.ptr())));
    impl->set_layout(layout);  // what it says of itself; its handler keeps the elements
  }
  Tensor tensor(std::move(impl));
  PyTypeObject* type = expect_class(cls);
  check<TypeError>(has_dispatch_method(type), short_type_name(type), " must define __torch_dispatch__");
  nb::object out = make_object(cls, tensor);
  nb::object requires_grad = option("requires_grad");
  if (!requires_grad.is_none() && nb::cast<bool>(requires_grad)) require_gradient(tensor);
  return out;
}

}  // namespace

void bind_subclass(nb::module_& m) {
  m.def("_make_subclass", &make_subclass, nb::arg("cls"), nb::arg("data"), nb::arg("require_grad") = false);
  m.def("_make_wrapper_subclass", &make_wrapper_subclass, nb::arg("cls"), nb::arg("size"), nb::arg("options"));
  m.def("_own_geometry", [](const Tensor& t) {
    return nb::make_tuple(nb::steal(wrap_size(t.sym_sizes())), nb::steal(wrap_tuple(t.sym_strides())));
  });
  // What the handler of a wrapper says of its sizes and strides (_metadata_policy.py).
  m.def("_set_wrapper_geometry", [](const Tensor& t, nb::handle sizes, nb::handle strides) {
    std::vector<SymInt> size = read_ints(sizes, "size"), stride = read_ints(strides, "strides");
    check(size.size() == stride.size(), "a tensor class gives ", size.size(), " sizes and ", stride.size(), " strides");
    check(!t.storage()->has_data(),
          "a tensor class with memory of its own says that its sizes are others than those of its memory");
    t.impl()->set_geometry(size, stride, t.sym_storage_offset());
  });
  // The same memory as a tensor of no class, which calls on it do not come back to.
  m.def("_plain_alias", [](const Tensor& t) {
    ExcludeKeys below(DispatchKeySet(DispatchKey::UserMode) | DispatchKey::Subclass | DispatchKey::Autograd);
    Tensor alias = call<"aten::detach">(t);
    alias.impl()->set_view_base(nullptr);
    return alias;
  });
  m.def("_as_subclass", [](const Tensor& t, nb::handle cls) {
    Tensor alias = call<"aten::alias">(t);
    return make_object(cls, alias);
  });
}

}  // namespace umbra::python
