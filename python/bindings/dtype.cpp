// dtype, layout and memory_format, and the limits of dtypes (finfo, iinfo).
#include <fmt/format.h>
#include <nanobind/operators.h>

#include <cmath>
#include <limits>

#include "umbra/core/half.h"
#include "values.h"

namespace umbra::python {

PyTypeObject* g_dtype_type;
PyTypeObject* g_layout_type;
PyTypeObject* g_memory_format_type;

namespace {

PyObject* g_dtypes[kDTypeCount];
PyObject* g_layouts[kLayoutCount];
PyObject* g_memory_formats[4];

DType dtype_of(PyObject* self) { return static_cast<DType>(constant_of(self)); }

template <class T> PyObject* repr(PyObject* self) {
  return guarded([&] { return make_text(to_string(static_cast<T>(constant_of(self)))).release().ptr(); });
}

// Pickled by name: what torch.float32 is in its module.
template <class T> PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&] { return make_text(to_string(static_cast<T>(constant_of(self))).substr(6)).release().ptr(); });
}

PyObject* is_floating_point(PyObject* self, void*) { return PyBool_FromLong(is_floating(dtype_of(self))); }
PyObject* is_complex_dtype(PyObject* self, void*) { return PyBool_FromLong(is_complex(dtype_of(self))); }
PyObject* is_signed(PyObject* self, void*) {
  DType t = dtype_of(self);
  bool is_unsigned = t == DType::UInt8 || t == DType::UInt16 || t == DType::UInt32 || t == DType::UInt64 ||
                     t == DType::Bool || t == DType::Float8E8M0FNU;
  return PyBool_FromLong(!is_unsigned);
}
PyObject* item_size_of(PyObject* self, void*) { return PyLong_FromLongLong(item_size(dtype_of(self))); }
PyObject* to_real(PyObject* self, PyObject*) { return wrap(real_type(dtype_of(self))); }
PyObject* to_complex(PyObject* self, PyObject*) {
  return guarded([&] {
    DType t = dtype_of(self);
    check(!is_integral(t, true), "Unknown Complex ScalarType for ", kernel_name(t));
    return wrap(complex_type(t));
  });
}

PyGetSetDef g_dtype_properties[] = {
    {"is_floating_point", is_floating_point, nullptr, nullptr, nullptr},
    {"is_complex", is_complex_dtype, nullptr, nullptr, nullptr},
    {"is_signed", is_signed, nullptr, nullptr, nullptr},
    {"itemsize", item_size_of, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef g_dtype_methods[] = {
    {"to_real", to_real, METH_NOARGS, nullptr},
    {"to_complex", to_complex, METH_NOARGS, nullptr},
    {"__reduce__", reduce<DType>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
template <class T>
PyMethodDef g_constant_methods[] = {
    {"__reduce__", reduce<T>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyTypeObject* make_type(PyObject* module, const char* name, reprfunc repr, PyMethodDef* methods,
                        PyGetSetDef* properties) {
  PyType_Slot slots[] = {{Py_tp_repr, reinterpret_cast<void*>(repr)},
                         {Py_tp_methods, methods},
                         {properties ? Py_tp_getset : 0, properties},
                         {0, nullptr}};
  PyType_Spec spec = {name, sizeof(PyConstant), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  return add_type(module, spec);
}

template <class T> PyObject* make_constant(nb::module_& m, PyTypeObject* type, T value) {
  auto* self = PyObject_New(PyConstant, type);
  if (!self) throw nb::python_error();
  self->value = static_cast<int>(value);
  auto* object = reinterpret_cast<PyObject*>(self);
  m.attr(to_string(value).substr(6).c_str()) = nb::handle(object);
  return object;
}

// ---- limits ----

struct FloatLimits {
  double eps, max, smallest_normal, resolution;
  double min = -max;
};

FloatLimits float_limits(DType t) {
  switch (real_type(t)) {
    case DType::Float64:
      return {std::numeric_limits<double>::epsilon(), std::numeric_limits<double>::max(),
              std::numeric_limits<double>::min(), 1e-15};
    case DType::Float16: return {std::ldexp(1, -10), 65504, std::ldexp(1, -14), 1e-3};
    case DType::BFloat16: return {std::ldexp(1, -7), std::ldexp(1.9921875, 127), std::ldexp(1, -126), 1e-2};
    case DType::Float8E4M3: return {std::ldexp(1, -3), 448, std::ldexp(1, -6), 1};
    case DType::Float8E5M2: return {std::ldexp(1, -2), 57344, std::ldexp(1, -14), 1};
    case DType::Float8E4M3FNUZ: return {std::ldexp(1, -3), 240, std::ldexp(1, -7), 1};
    case DType::Float8E5M2FNUZ: return {std::ldexp(1, -2), 57344, std::ldexp(1, -15), 1};
    case DType::Float8E8M0FNU: return {1, std::ldexp(1, 127), std::ldexp(1, -127), 1, std::ldexp(1, -127)};
    default:
      return {std::numeric_limits<float>::epsilon(), std::numeric_limits<float>::max(),
              std::numeric_limits<float>::min(), 1e-6};
  }
}

struct FInfo {
  DType dtype;
  FloatLimits limits;
  bool operator==(const FInfo& other) const { return dtype == other.dtype; }
};
struct IInfo {
  DType dtype;
  bool operator==(const IInfo& other) const { return dtype == other.dtype; }
  int bits() const { return static_cast<int>(8 * item_size(dtype)); }
  bool is_signed() const { return dtype >= DType::Int8 && dtype <= DType::Int64; }
  nb::object min() const {
    return is_signed() ? owned(PyLong_FromLongLong(std::numeric_limits<int64_t>::min() >> (64 - bits()))) : nb::int_(0);
  }
  nb::object max() const {
    uint64_t all = ~uint64_t{0} >> (64 - bits());
    return owned(PyLong_FromUnsignedLongLong(is_signed() ? all >> 1 : all));
  }
};

DType dtype_argument(nb::handle object, const char* what) {
  DType t;
  if (!read_dtype(object.ptr(), t))
    fail<TypeError>(what, "(): argument 'type' (position 1) must be torch.dtype, not ",
                    short_type_name(Py_TYPE(object.ptr())));
  return t;
}

void bind_limits(nb::module_& m) {
  nb::class_<FInfo>(m, "finfo")
      .def(
          "__init__",
          [](FInfo* self, nb::object type) {
            DType t = type.is_none() ? default_dtype() : dtype_argument(type, "finfo");
            check<TypeError>(is_floating(t) || is_complex(t),
                             "torch.finfo() requires a floating point input type. Use "
                             "torch.iinfo to handle 'torch.finfo'");
            new (self) FInfo{real_type(t), float_limits(t)};
          },
          nb::arg("type").none() = nb::none())
      .def(nb::self == nb::self)
      .def("__hash__", [](const FInfo& f) { return static_cast<int64_t>(f.dtype); })
      .def_prop_ro("bits", [](const FInfo& f) { return 8 * item_size(f.dtype); })
      .def_prop_ro("eps", [](const FInfo& f) { return f.limits.eps; })
      .def_prop_ro("max", [](const FInfo& f) { return f.limits.max; })
      .def_prop_ro("min", [](const FInfo& f) { return f.limits.min; })
      .def_prop_ro("tiny", [](const FInfo& f) { return f.limits.smallest_normal; })
      .def_prop_ro("smallest_normal", [](const FInfo& f) { return f.limits.smallest_normal; })
      .def_prop_ro("resolution", [](const FInfo& f) { return f.limits.resolution; })
      .def_prop_ro("dtype", [](const FInfo& f) { return name(f.dtype); })
      .def("__repr__", [](const FInfo& f) {
        return fmt::format(
            "finfo(resolution={:g}, min={:g}, max={:g}, eps={:g}, smallest_normal={:g}, tiny={:g}, dtype={})",
            f.limits.resolution, f.limits.min, f.limits.max, f.limits.eps, f.limits.smallest_normal,
            f.limits.smallest_normal, name(f.dtype));
      });
  nb::class_<IInfo>(m, "iinfo")
      .def(
          "__init__",
          [](IInfo* self, nb::object type) {
            check<TypeError>(!type.is_none(), "iinfo() missing 1 required positional arguments: \"type\"");
            DType t = dtype_argument(type, "iinfo");
            check<TypeError>(t != DType::Bool, "torch.bool is not supported by torch.iinfo");
            check<TypeError>(is_integral(t, false),
                             "torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'");
            new (self) IInfo{t};
          },
          nb::arg("type").none() = nb::none())
      .def(nb::self == nb::self)
      .def("__hash__", [](const IInfo& i) { return static_cast<int64_t>(i.dtype); })
      .def_prop_ro("bits", &IInfo::bits)
      .def_prop_ro("min", &IInfo::min)
      .def_prop_ro("max", &IInfo::max)
      .def_prop_ro("dtype", [](const IInfo& i) { return name(i.dtype); })
      .def("__repr__", [](const IInfo& i) {
        return fmt::format("iinfo(min={:g}, max={:g}, dtype={})", nb::cast<double>(nb::float_(i.min())),
                           nb::cast<double>(nb::float_(i.max())), name(i.dtype));
      });
}

}  // namespace

PyObject* wrap(DType value) { return Py_NewRef(g_dtypes[static_cast<int>(value)]); }
PyObject* wrap(Layout value) { return Py_NewRef(g_layouts[static_cast<int>(value)]); }
PyObject* wrap(MemoryFormat value) { return Py_NewRef(g_memory_formats[static_cast<int>(value)]); }

bool read_layout(PyObject* object, Layout& out) {
  if (Py_TYPE(object) != g_layout_type) return false;
  out = static_cast<Layout>(constant_of(object));
  return true;
}

bool read_dtype(PyObject* object, DType& out) {
  if (Py_TYPE(object) == g_dtype_type) {
    out = static_cast<DType>(constant_of(object));
    return true;
  }
  auto* type = reinterpret_cast<PyTypeObject*>(object);
  if (type == &PyFloat_Type) out = DType::Float64;
  else if (type == &PyLong_Type) out = DType::Int64;
  else if (type == &PyBool_Type) out = DType::Bool;
  else if (type == &PyComplex_Type) out = DType::Complex128;
  else return false;
  return true;
}

void bind_dtype(nb::module_& m) {
  g_dtype_type = make_type(m.ptr(), "umbra.dtype", repr<DType>, g_dtype_methods, g_dtype_properties);
  g_layout_type = make_type(m.ptr(), "umbra.layout", repr<Layout>, g_constant_methods<Layout>, nullptr);
  g_memory_format_type =
      make_type(m.ptr(), "umbra.memory_format", repr<MemoryFormat>, g_constant_methods<MemoryFormat>, nullptr);
  for (int i = 0; i < kDTypeCount; ++i) g_dtypes[i] = make_constant(m, g_dtype_type, static_cast<DType>(i));
  for (int i = 0; i < kLayoutCount; ++i) g_layouts[i] = make_constant(m, g_layout_type, static_cast<Layout>(i));
  for (int i = 0; i < 4; ++i)
    g_memory_formats[i] = make_constant(m, g_memory_format_type, static_cast<MemoryFormat>(i));
  bind_limits(m);
  m.def(
      "get_default_dtype", [] { return nb::steal(wrap(default_dtype())); },
      "The type of floating point tensors that nobody gave one.");
  m.def(
      "set_default_dtype",
      [](nb::object dtype) {
        DType t;
        check<TypeError>(read_dtype(dtype.ptr(), t),
                         "invalid dtype object: only floating-point types are supported as the default type");
        set_default_dtype(t);
      },
      "The type of floating point tensors that nobody gave one.");
}

}  // namespace umbra::python
