// Methods, attributes and slots of Tensor that __torch_function__ may take over. Each is the plain C function behind a
// template that first offers the call: to the user's modes, and to the class of a tensor that is a subclass.
#pragma once

#include <algorithm>

#include "tensor_type.h"
#include "torch_function.h"

namespace umbra::python {

/// A name as a template argument: `method<"dim", dim>()`.
template <size_t N> struct MemberName {
  char text[N];
  constexpr MemberName(const char (&from)[N]) { std::copy_n(from, N, text); }
};

/// Whether anybody wants to hear of calls on this tensor: a mode, or its class.
inline bool may_be_overridden(PyObject* self) {
  return torch_function_modes_active() ||
         (!is_plain_tensor_type(Py_TYPE(self)) && class_has_torch_function(Py_TYPE(self)));
}

/// Offers the call of a member that Tensor has under this name; false where nobody wants it.
bool offer_member(const char* name, PyObject* const* values, size_t positional, PyObject* keywords, PyObject** result);
/// The same for an operand's reversed method: NotImplemented where every handler has declined.
bool offer_operand(const char* name, PyObject* const* values, PyObject** result);
/// The same for reading an attribute (a null value), setting or deleting it.
bool offer_attribute(const char* name, PyObject* self, PyObject* value, bool set, PyObject** result);

// ---- methods ----

template <MemberName kName, PyObject* (*kFunction)(PyObject*, PyObject*)> PyMethodDef method() {
  auto function = [](PyObject* self, PyObject* unused) -> PyObject* {
    PyObject* result = nullptr;
    if (may_be_overridden(self) && offer_member(kName.text, &self, 1, nullptr, &result)) return result;
    return kFunction(self, unused);
  };
  return {kName.text, +function, METH_NOARGS, nullptr};
}

template <MemberName kName, PyObject* (*kFunction)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*)>
PyMethodDef method() {
  PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*) =
      [](PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) -> PyObject* {
    PyObject* result = nullptr;
    if (may_be_overridden(self)) {
      std::vector<PyObject*> values = {self};
      values.insert(values.end(), args, args + count + (keywords ? PyTuple_GET_SIZE(keywords) : 0));
      if (offer_member(kName.text, values.data(), static_cast<size_t>(count) + 1, keywords, &result)) return result;
    }
    return kFunction(self, args, count, keywords);
  };
  return {kName.text, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)),
          METH_FASTCALL | METH_KEYWORDS, nullptr};
}

/// Offers a call whose arguments come as a tuple and a dict.
bool offer_call(const char* name, PyObject* self, PyObject* args, PyObject* kwargs, PyObject** result);

template <MemberName kName, PyObject* (*kFunction)(PyObject*, PyObject*, PyObject*)> PyMethodDef method() {
  PyObject* (*function)(PyObject*, PyObject*, PyObject*) = [](PyObject* self, PyObject* args,
                                                              PyObject* kwargs) -> PyObject* {
    PyObject* result = nullptr;
    if (may_be_overridden(self) && offer_call(kName.text, self, args, kwargs, &result)) return result;
    return kFunction(self, args, kwargs);
  };
  return {kName.text, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)),
          METH_VARARGS | METH_KEYWORDS, nullptr};
}

// ---- slots ----

/// A slot of one operand that gives an object: repr(x), iter(x).
template <MemberName kName, PyObject* (*kFunction)(PyObject*)> PyObject* unary_slot(PyObject* self) {
  PyObject* result = nullptr;
  if (may_be_overridden(self) && offer_member(kName.text, &self, 1, nullptr, &result)) return result;
  return kFunction(self);
}

/// A slot that gives a truth value or a count.
template <MemberName kName, auto kFunction, class... Arguments>
auto integer_slot(PyObject* self, Arguments... arguments) -> decltype(kFunction(self, arguments...)) {
  if (may_be_overridden(self)) {
    PyObject* values[] = {self, arguments...};
    PyObject* result = nullptr;
    if (offer_member(kName.text, values, std::size(values), nullptr, &result)) {
      if (!result) return -1;
      nb::object answer = nb::steal(result);
      Py_ssize_t number = PyNumber_AsSsize_t(result, PyExc_OverflowError);
      return static_cast<decltype(kFunction(self, arguments...))>(number);
    }
  }
  return kFunction(self, arguments...);
}

/// Puts every attribute of the table behind an offer. The table must live as long as the class.
void make_overridable(std::vector<PyGetSetDef>& properties);

}  // namespace umbra::python
