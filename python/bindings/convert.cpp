// Single values between Python and C++: by the type a schema asks for on the way in, by what they are on the way out.
#include "arguments.h"
#include "dispatch/host_lock.h"
#include "generator.h"
#include "lock.h"
#include "numpy_arrays.h"
#include "operators.h"
#include "sym/low_numbers.h"
#include "tensor_type.h"
#include "torch_function.h"
#include "umbra/dispatch/dispatcher.h"
#include "umbra/graph/operator_value.h"
#include "umbra/jit/trace.h"
#include "values.h"

namespace umbra::python {

namespace {

using Base = SchemaType::Base;

bool is_numpy_number(PyObject* object) {
  return std::string_view(type_name(object)).starts_with("numpy.") && !is_numpy_array(object);
}
bool is_numpy_bool(PyObject* object) { return std::string_view(type_name(object)).starts_with("numpy.bool"); }

// A number that C++ sees through Python's protocols: NumPy's scalars; for sizes, anything with an index.
bool has_index(PyObject* object) {
  PyNumberMethods* number = Py_TYPE(object)->tp_as_number;
  return number && number->nb_index;
}
bool has_float(PyObject* object) {
  PyNumberMethods* number = Py_TYPE(object)->tp_as_number;
  return number && number->nb_float;
}

Scalar item_of(const Tensor& tensor) {
  static const Operator& item = get_operator("aten::_local_scalar_dense");
  Value frame[1] = {Value::borrow(tensor)};
  item.call(frame);
  return frame[0].to_scalar();
}

/// A tensor that may stand for a number. Not one that requires a gradient: it would be lost without a word.
bool is_single(PyObject* object) {
  return is_tensor(object) && tensor_of(object).dim() == 0 && !tensor_of(object).requires_grad();
}

int64_t long_value(PyObject* object) {
  int overflow = 0;
  int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
  check<ValueError>(!overflow, "Overflow when unpacking long long");
  return value;
}

/// An integer as an operand, of 64 bits with or without a sign.
Scalar operand_value(PyObject* object) {
  int overflow = 0;
  int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (!overflow) return value;
  uint64_t large = PyLong_AsUnsignedLongLong(object);
  if (PyErr_Occurred()) throw nb::python_error();
  return large;
}

bool read_tensor(PyObject* object, bool numbers, Value& out, Scratch& scratch) {
  if (is_tensor(object)) {
    if (!is_plain_tensor_type(Py_TYPE(object))) scratch.saw_subclass = true;
    out = Value::borrow(tensor_of(object));
    return true;
  }
  Scalar number;
  if (!numbers || !read_scalar(object, number)) return false;
  out = Value(wrapped_number(number));
  return true;
}

bool read_double(PyObject* object, Value& out) {
  if (PyFloat_Check(object)) {
    out = Value(PyFloat_AS_DOUBLE(object));
    return true;
  }
  if (PyLong_CheckExact(object)) {
    double value = PyLong_AsDouble(object);
    if (PyErr_Occurred()) throw nb::python_error();
    out = Value(value);
    return true;
  }
  Scalar number;
  if (PyComplex_Check(object) || !read_scalar(object, number) || number.is_complex()) return false;
  out = number.is_symbolic() ? Value(number.to_sym_float()) : Value(number.to_double());
  return true;
}

bool read_bool(PyObject* object, Value& out) {
  if (PyBool_Check(object)) out = Value(object == Py_True);
  else if (is_sym_bool(object)) out = Value(SymBool(node_of(object)));
  else if (is_numpy_bool(object)) out = Value(PyObject_IsTrue(object) == 1);
  else return false;
  return true;
}

bool is_sequence(PyObject* object) { return PyTuple_Check(object) || PyList_Check(object); }

/// An element of a list of plain ints: the operator says what is wrong with one that is no size.
bool read_element(PyObject* object, SymInt& out) {
  if (!PyLong_CheckExact(object)) return read_int(object, out);
  out = sym::plain_number(long_value(object));
  return true;
}

/// Lists have sizes and positions: so low a number is out of every range, and which one it is makes no difference.
constexpr int64_t kLowest = -(int64_t{1} << 62);
bool is_below_sizes(PyObject* object) {
  int overflow = 0;
  return PyLong_CheckExact(object) && PyLong_AsLongLongAndOverflow(object, &overflow) < kLowest && overflow == 0;
}

bool read_int_list(PyObject* object, bool plain, int list_size, Value& out, Scratch& scratch) {
  auto read = plain ? read_element : read_int;
  SymShape* list = scratch.next_list();
  SymShape overflow;
  SymShape& to = list ? *list : overflow;
  SymInt value;
  if (is_sequence(object)) {
    PyObject** items = PySequence_Fast_ITEMS(object);
    for (Py_ssize_t i = 0, n = PySequence_Fast_GET_SIZE(object); i < n; ++i) {
      if (!plain && is_below_sizes(items[i])) value = kLowest;
      else if (!read(items[i], value)) return false;
      to.push_back(value);
    }
  } else if (list_size > 0 && read(object, value)) {
    to.assign(static_cast<size_t>(list_size), value);
  } else {
    return false;
  }
  out = list ? Value::borrow(SymIntArrayRef(to)) : Value(to.vec());
  return true;
}

bool read_tensor_list(PyObject* object, bool optional, Value& out, Scratch& scratch) {
  if (scratch.split_tensors && is_tensor(object) && tensor_of(object).dim() > 0) {
    out = Value(tensor_of(object).unbind(0));
    return true;
  }
  if (!is_sequence(object)) return false;
  PyObject** items = PySequence_Fast_ITEMS(object);
  size_t count = static_cast<size_t>(PySequence_Fast_GET_SIZE(object));
  std::vector<Tensor> tensors(count);
  for (size_t i = 0; i < count; ++i) {
    if (items[i] == Py_None && optional) continue;
    if (!is_tensor(items[i])) {
      if (i == 0 || class_has_torch_function(Py_TYPE(items[i]))) return false;  // a Proxy takes the whole call
      fail<TypeError>("expected Tensor as element ", i, " in argument 0, but got ", short_type_name(Py_TYPE(items[i])));
    }
    if (!is_plain_tensor_type(Py_TYPE(items[i]))) scratch.saw_subclass = true;
    tensors[i] = tensor_of(items[i]);
  }
  out = Value(std::move(tensors));  // None is an undefined tensor
  return true;
}

template <class T, class F> bool read_list(PyObject* object, Value& out, F&& one) {
  if (!is_sequence(object)) return false;
  std::vector<T> values;
  PyObject** items = PySequence_Fast_ITEMS(object);
  for (Py_ssize_t i = 0, n = PySequence_Fast_GET_SIZE(object); i < n; ++i) {
    Value v;
    if (!one(items[i], v)) return false;
    if constexpr (std::is_same_v<T, double>) values.push_back(v.to_double());
    else if constexpr (std::is_same_v<T, bool>) values.push_back(v.to_bool());
    else values.push_back(std::move(v));
  }
  out = Value(std::move(values));
  return true;
}

/// What `read` makes of the object; false where that is nothing.
template <class T> bool read_as(PyObject* object, Value& out, bool (*read)(PyObject*, T&)) {
  T value;
  if (!read(object, value)) return false;
  out = Value(std::move(value));
  return true;
}

bool read_scalar_value(PyObject* object, Value& out) { return read_as<Scalar>(object, out, read_scalar); }

bool read_list_of(PyObject* object, const SchemaType& type, Value& out, Scratch& scratch) {
  switch (type.base) {
    case Base::Int:
    case Base::SymInt: return read_int_list(object, type.base == Base::Int, type.list_size, out, scratch);
    case Base::Tensor: return read_tensor_list(object, type.element_optional, out, scratch);
    case Base::Float:
      if (type.list_size > 0 && !is_sequence(object) && read_double(object, out)) {
        out = Value(std::vector<double>(static_cast<size_t>(type.list_size), out.to_double()));
        return true;
      }
      return read_list<double>(object, out, read_double);
    case Base::Bool: {
      if (!read_list<bool>(object, out, read_bool)) return false;
      size_t size = out.bool_list().size();
      // Lists of four are for accelerators' operators alone, whose kernels nobody asks here.
      bool fits = type.list_size <= 0 || type.list_size == 4 || size == static_cast<size_t>(type.list_size);
      check(fits, "Tried to convert a List with ", size, " elements to a fixed-size array of size ", type.list_size);
      return true;
    }
    case Base::Scalar: return read_list<Value>(object, out, read_scalar_value);
    default: {
      SchemaType element = type;
      element.list = false;
      element.optional = type.element_optional;
      return read_list<Value>(object, out,
                              [&](PyObject* o, Value& v) { return read_value(o, element, v, scratch, false); });
    }
  }
}

}  // namespace

bool read_int(PyObject* object, SymInt& out) {
  if (PyLong_CheckExact(object)) {
    out = long_value(object);
    return true;
  }
  if (is_sym_int(object)) {
    out = sym_int_of(object);
    return true;
  }
  if (is_tensor(object)) {
    const Tensor& t = tensor_of(object);
    if (!t.sym_numel().same(1) || !is_integral(t.dtype(), false)) return false;
    jit::Trace* trace = jit::active_trace();
    out = trace && trace->on ? trace->integer(t) : item_of(t).to_sym_int();
    return true;
  }
  if (PyBool_Check(object) || !has_index(object) || is_sym_bool(object)) return false;
  PyObject* index = PyNumber_Index(object);
  if (!index && is_numpy_array(object)) {  // no array of a single integer
    PyErr_Clear();
    return false;
  }
  out = long_value(owned(index).ptr());
  return true;
}

bool read_scalar(PyObject* object, Scalar& out) {
  if (PyFloat_Check(object)) out = Scalar(PyFloat_AS_DOUBLE(object));
  else if (PyBool_Check(object)) out = Scalar(object == Py_True);
  else if (PyLong_Check(object)) out = operand_value(object);
  else if (PyComplex_Check(object))
    out = Scalar(std::complex<double>(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)));
  else if (is_sym_int(object)) out = Scalar(sym_int_of(object));
  else if (is_sym_float(object)) out = Scalar(SymFloat(node_of(object)));
  else if (is_sym_bool(object)) out = Scalar(SymBool(node_of(object)));
  else if (is_single(object)) {
    jit::Trace* trace = jit::active_trace();
    out = trace && trace->on ? trace->scalar(tensor_of(object)) : item_of(tensor_of(object));
  } else if (!is_numpy_number(object)) return false;  // others may have an operator of their own for tensors
  else if (is_numpy_bool(object)) out = Scalar(PyObject_IsTrue(object) == 1 ? 1.0 : 0.0);  // as torch reads it
  else if (has_index(object)) out = operand_value(owned(PyNumber_Index(object)).ptr());
  else if (std::string_view(type_name(object)).starts_with("numpy.complex")) {
    Py_complex c = PyComplex_AsCComplex(object);
    if (PyErr_Occurred()) throw nb::python_error();
    out = Scalar(std::complex<double>(c.real, c.imag));
  } else if (has_float(object)) {
    out = Scalar(PyFloat_AsDouble(owned(PyNumber_Float(object)).ptr()));
  } else {
    return false;
  }
  return true;
}

namespace {

/// An integer. One that may be symbolic, a size, may be a tensor of one element; others have no dimensions.
bool read_number(PyObject* object, bool may_be_symbolic, Value& out) {
  if (PyLong_CheckExact(object)) {  // any int64; a size is told by who asks for it
    out = Value(long_value(object));
    return true;
  }
  if (!may_be_symbolic && is_tensor(object) && tensor_of(object).dim() != 0) return false;
  return read_as<SymInt>(object, out, read_int);
}

}  // namespace

bool read_value(PyObject* object, const SchemaType& type, Value& out, Scratch& scratch, bool numbers) {
  if (object == Py_None && type.optional) {
    out = Value();
    return true;
  }
  if (type.list) return read_list_of(object, type, out, scratch);
  switch (type.base) {
    case Base::Tensor: return read_tensor(object, numbers, out, scratch);
    case Base::Int: return read_number(object, false, out);
    case Base::SymInt: return read_number(object, true, out);
    case Base::Float:
    case Base::SymFloat: return read_double(object, out);
    case Base::Bool:
    case Base::SymBool: return read_bool(object, out);
    case Base::Scalar:
    case Base::Complex: return read_scalar_value(object, out);
    case Base::String:
      if (!PyUnicode_Check(object)) return false;
      out = Value(std::string(text_of(object)));
      return true;
    case Base::Device: return read_as<Device>(object, out, read_device);
    case Base::DType: return read_as<DType>(object, out, read_dtype);
    case Base::Layout: return read_as<Layout>(object, out, read_layout);
    case Base::MemoryFormat:
      if (Py_TYPE(object) != g_memory_format_type) return false;
      out = Value(static_cast<MemoryFormat>(constant_of(object)));
      return true;
    case Base::Generator: return read_as<GeneratorPointer>(object, out, read_generator);
    default: out = read_any(object); return true;
  }
}

Value read_any(PyObject* object) {
  if (object == Py_None) return Value();
  if (is_tensor(object)) return Value(tensor_of(object));
  if (PyUnicode_Check(object)) return Value(std::string(text_of(object)));
  if (PyBool_Check(object)) return Value(object == Py_True);
  if (PyLong_Check(object)) return Value(long_value(object));
  if (PyFloat_Check(object)) return Value(PyFloat_AS_DOUBLE(object));
  if (is_sym_int(object)) return Value(sym_int_of(object));
  if (is_sym_float(object)) return Value(SymFloat(node_of(object)));
  if (is_sym_bool(object)) return Value(SymBool(node_of(object)));
  if (PyComplex_Check(object))
    return Value(std::complex<double>(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)));
  if (Py_TYPE(object) == g_dtype_type) return Value(static_cast<DType>(constant_of(object)));
  if (Layout layout; read_layout(object, layout)) return Value(layout);
  if (Py_TYPE(object) == g_memory_format_type) return Value(static_cast<MemoryFormat>(constant_of(object)));
  if (Py_TYPE(object) == g_device_type) return Value(reinterpret_cast<PyDevice*>(object)->value);
  GeneratorPointer generator;
  if (read_generator(object, generator)) return Value(std::move(generator));
  if (is_sequence(object)) {
    std::vector<Value> values;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
      values.push_back(read_any(PySequence_Fast_GET_ITEM(object, i)));
    return Value(std::move(values));
  }
  if (const Operator* op = operator_of(object)) return fx::operator_value(*op);
  return Value::object(make_counted<PythonObject>(object));
}

Value read_result(PyObject* object, const SchemaType& type) {
  Scratch scratch;
  Value value;
  if (object == Py_None && !(type.list && !type.optional)) return value;
  // A number would be taken for a tensor where an argument is read; a result is what the schema says.
  bool fits = !type.is_tensor() || PyObject_TypeCheck(object, g_tensor_type);
  if (!fits || !read_value(object, type, value, scratch, true))
    fail("Unable to cast ", str_of(object), " to ", to_string(type));
  return Value(value);  // a copy owns what it refers to
}

PyObject* wrap(const Value& value) {
  auto list = [](size_t count, auto&& item) {
    nb::object out = owned(PyList_New(static_cast<Py_ssize_t>(count)));
    for (size_t i = 0; i < count; ++i) PyList_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), checked(item(i)));
    return out.release().ptr();
  };
  using Tag = Value::Tag;
  switch (value.tag()) {
    case Tag::None: return Py_NewRef(Py_None);
    case Tag::Tensor: return wrap(value.tensor_ref());
    case Tag::Int: return PyLong_FromLongLong(value.to_int());
    case Tag::SymInt: return wrap(value.to_sym_int());
    case Tag::Double: return PyFloat_FromDouble(value.to_double());
    case Tag::SymFloat: return wrap(value.to_sym_float());
    case Tag::Bool: return PyBool_FromLong(value.to_bool());
    case Tag::SymBool: return wrap(value.to_sym_bool());
    case Tag::UInt:
    case Tag::Complex: return wrap(value.to_scalar());
    case Tag::String: return make_text(value.to_string()).release().ptr();
    case Tag::Device: return wrap(value.to_device());
    case Tag::DType: return wrap(value.to_dtype());
    case Tag::Layout: return wrap(value.to_layout());
    case Tag::MemoryFormat: return wrap(value.to_memory_format());
    case Tag::Generator: return wrap_generator(value.to_generator());
    case Tag::IntList: return list(value.int_list().size(), [&](size_t i) { return wrap(value.int_list()[i]); });
    case Tag::DoubleList:
      return list(value.double_list().size(), [&](size_t i) { return PyFloat_FromDouble(value.double_list()[i]); });
    case Tag::BoolList: {
      std::vector<bool> bits = value.bool_list();
      return list(bits.size(), [&](size_t i) { return PyBool_FromLong(bits[i]); });
    }
    case Tag::TensorList:
      return list(value.tensor_list().size(), [&](size_t i) { return wrap(value.tensor_list()[i]); });
    case Tag::List: return list(value.list().size(), [&](size_t i) { return wrap(value.list()[i]); });
    case Tag::Object:
      if (auto* object = dynamic_cast<PythonObject*>(value.object())) return Py_NewRef(object->get());
      if (const Operator* op = fx::operator_in(value)) return wrap(*op);
      if (const std::string* missing = fx::missing_operator_in(value)) return make_text(*missing).release().ptr();
      fail<TypeError>("a C++ object that Python does not know");
  }
  return Py_NewRef(Py_None);
}

PyObject* wrap_results(const Operator& op, Value* frame) {
  size_t count = op.return_count();
  auto take = [](Value& v) { return v.is_tensor() ? wrap(v.take_tensor()) : wrap(v); };
  if (count == 1) return take(frame[0]);
  if (count == 0) return Py_NewRef(Py_None);
  nb::object out = owned(PyTuple_New(static_cast<Py_ssize_t>(count)));
  for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), checked(take(frame[i])));
  return out.release().ptr();
}

void call_operator(const Operator& op, Value* frame) {
  if (!is_long(op, frame)) return op.call(frame);
  WithoutLock unlocked;
  op.call(frame);
}

PythonObject::~PythonObject() {
  if (!Py_IsInitialized()) return;
  WithLock lock;
  Py_DECREF(object_);
}

}  // namespace umbra::python
