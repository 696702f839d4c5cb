// What kinds of Python objects there are for who watches them, and where they keep their state.
#pragma once

#include "python.h"

namespace umbra::python {

/// Numbers, texts, None: they are their value.
bool is_plain_object(PyObject* object);
/// Numbers and texts, those of the user's classes included, which may have attributes besides.
bool has_value(PyObject* object);
/// Whether two objects are of one type and equal; numbers bit by bit.
bool is_equal_object(PyObject* a, PyObject* b);
/// Objects that are read whole, where they are read: functions of C, built-in classes, descriptors.
bool is_opaque_object(PyObject* object);
/// Objects that are compared by value because nothing can change them: dtypes, ranges, dates.
bool is_value_object(PyObject* object);
/// Iterators that were not written in Python and generators of random numbers, whose place nobody can see, and
/// variables of contexts.
bool is_hidden_object(PyObject* object);
/// A function of `functools.lru_cache`, whose dict is one half of what it keeps: nobody else may change that.
bool is_cache_of_function(PyObject* object);
bool is_neural_module(PyObject* object);
bool is_deque(PyObject* object);
/// A class made by a class statement.
bool is_python_class(PyTypeObject* type);
/// Whether a module, a function or a class is this package's.
bool is_own(PyObject* object);

/// The dict of an object's attributes, borrowed; null where it has none.
PyObject* attribute_dict(PyObject* object);
/// Whether a tensor has attributes that the user gave it.
bool has_own_attributes(PyObject* tensor);
/// What an object of a class written in C holds.
std::vector<nb::object> referents_of(PyObject* object);

bool is_array_of_objects(PyObject* object);
/// Whether an object is memory: arrays, bytes that change.
bool has_contents(PyObject* object);
/// All that says what is in the memory.
nb::object contents_of(PyObject* object);
void put_contents(PyObject* object, const nb::object& contents);

/// The dict of what a class has of its own, borrowed. (From Python 3.12 on, built-in classes keep it elsewhere.)
PyObject* class_dict(PyTypeObject* type);
/// The number that changes when an attribute of a class or of its bases does; 0 where there is none.
uint64_t class_version(const PyTypeObject* type);
/// A key as a path shows it.
std::string key_text(PyObject* key);

}  // namespace umbra::python
