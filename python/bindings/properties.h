// What a Tensor has in Python besides its operators: number and index protocols, attributes, methods of metadata.
#pragma once

#include <vector>

#include "python.h"
#include "tensor_type.h"

namespace umbra::python {

/// All slots of the Tensor type that are not about an object's life.
void add_tensor_slots(std::vector<PyType_Slot>& slots);
void add_number_slots(std::vector<PyType_Slot>& slots);
void add_number_methods(std::vector<PyMethodDef>& methods);
void add_index_slots(std::vector<PyType_Slot>& slots);

/// Every operator with a Tensor called self becomes a method of the class; the protocols find their functions.
void add_operator_methods();
void bind_properties(nb::module_& m);

template <class F> PyType_Slot slot(int id, F* function) { return {id, reinterpret_cast<void*>(function)}; }

/// What a getter and a setter do with the tensor behind an object.
template <class F> PyObject* property(PyObject* self, F&& body) {
  return guarded([&] { return body(tensor_of(self)); });
}
template <class F> int assignment(PyObject* self, F&& body) {
  return guarded_int([&] {
    body(tensor_of(self));
    return 0;
  });
}

}  // namespace umbra::python
