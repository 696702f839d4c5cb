#include "overridable.h"

#include <deque>

namespace umbra::python {

namespace {

/// A member of Tensor as users name it: Tensor.dim, Tensor.__getitem__.
nb::object member(const char* name) {
  return owned(PyObject_GetAttrString(reinterpret_cast<PyObject*>(g_tensor_type), name));
}

/// Runs an offer; an error on the way is an answer too, a null one.
template <class F> bool answered(PyObject** result, F&& offer) {
  try {
    return offer();
  } catch (...) {
    raise_current();
    *result = nullptr;
    return true;
  }
}

PyObject* get_attribute(PyObject* self, void* closure) {
  auto* original = static_cast<const PyGetSetDef*>(closure);
  PyObject* result = nullptr;
  if (may_be_overridden(self) && offer_attribute(original->name, self, nullptr, false, &result)) return result;
  return original->get(self, nullptr);
}

int set_attribute(PyObject* self, PyObject* value, void* closure) {
  auto* original = static_cast<const PyGetSetDef*>(closure);
  PyObject* result = nullptr;
  if (may_be_overridden(self) && offer_attribute(original->name, self, value, true, &result)) {
    Py_XDECREF(result);
    return result ? 0 : -1;
  }
  return original->set(self, value, nullptr);
}

}  // namespace

bool offer_member(const char* name, PyObject* const* values, size_t positional, PyObject* keywords, PyObject** result) {
  return answered(result, [&] {
    return call_torch_function(member(name).ptr(), {values, positional, keywords}, result);
  });
}

bool offer_operand(const char* name, PyObject* const* values, PyObject** result) {
  return answered(result, [&] {
    try {
      return call_torch_function(member(name).ptr(), {values, 2, nullptr}, result);
    } catch (const NobodyTakesCall&) {
      *result = Py_NewRef(Py_NotImplemented);
      return true;
    }
  });
}

bool offer_attribute(const char* name, PyObject* self, PyObject* value, bool set, PyObject** result) {
  return answered(result, [&] {
    nb::object accessor = member(name).attr(!set ? "__get__" : value ? "__set__" : "__delete__");
    PyObject* values[] = {self, value};
    return call_torch_function(accessor.ptr(), {values, value ? 2u : 1u, nullptr}, result);
  });
}

bool offer_call(const char* name, PyObject* self, PyObject* args, PyObject* kwargs, PyObject** result) {
  std::vector<PyObject*> values = {self};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) values.push_back(PyTuple_GET_ITEM(args, i));
  size_t positional = values.size();
  nb::object keywords;
  if (kwargs && PyDict_GET_SIZE(kwargs) > 0) {
    keywords = nb::steal(PySequence_Tuple(kwargs));
    if (!keywords) return true;
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(kwargs, &position, &key, &value)) values.push_back(value);
  }
  return offer_member(name, values.data(), positional, keywords.ptr(), result);
}

void make_overridable(std::vector<PyGetSetDef>& properties) {
  static std::deque<PyGetSetDef> originals;
  for (PyGetSetDef& p : properties) {
    originals.push_back(p);
    p.get = get_attribute;
    if (p.set) p.set = set_attribute;
    p.closure = &originals.back();
  }
}

}  // namespace umbra::python
