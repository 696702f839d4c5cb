#include "tree.h"

#include <algorithm>
#include <cmath>

#include "graph.h"
#include "tensor_type.h"
#include "torch_function.h"
#include "umbra/generated/functions.h"
#include "values.h"
#include "watched_objects.h"

namespace umbra::python {

bool read_leaf(PyObject* object, Value& out) {
  if (is_tensor(object)) {
    const Tensor& t = tensor_of(object);
    bool plain = is_plain_tensor_type(Py_TYPE(object)) || !class_has_torch_function(Py_TYPE(object));
    if (!plain || t.keys().has(DispatchKey::Subclass)) return false;
    out = Value(t);
    return true;
  }
  PyTypeObject* type = Py_TYPE(object);
  if (type == &PyLong_Type) {
    int overflow = 0;
    int64_t number = PyLong_AsLongLongAndOverflow(object, &overflow);
    // What a SymInt cannot hold is read with more care elsewhere.
    if (overflow || number < -(int64_t{1} << 62)) return false;
    out = Value(number);
  } else if (type == &PyFloat_Type) {
    out = Value(PyFloat_AS_DOUBLE(object));
  } else if (type == &PyBool_Type) {
    out = Value(object == Py_True);
  } else if (type == &PyUnicode_Type) {
    out = Value(std::string(text_of(object)));
  } else if (object == Py_None) {
    out = Value();
  } else {
    return false;
  }
  return true;
}

namespace {

PyObject* tuple_type() { return reinterpret_cast<PyObject*>(&PyTuple_Type); }
PyObject* size_type() { return reinterpret_cast<PyObject*>(g_size_type); }

/// The class that stands for objects that were taken apart.
PyObject* opened_type() {
  static PyObject* type = nb::object(nb::module_::import_("umbra._functorch.objects").attr("Opened")).release().ptr();
  return type;
}

bool equal(PyObject* a, PyObject* b) {
  if (a == b) return true;
  int same = PyObject_RichCompareBool(a, b, Py_EQ);
  if (same < 0) PyErr_Clear();
  return same == 1;
}

/// A float as graphs take it that are for any: a tensor.
bool read_float(PyObject* object, Value& out) {
  if (!PyFloat_CheckExact(object) || !std::isfinite(PyFloat_AS_DOUBLE(object))) return false;
  Tensor number = empty({}, {.dtype = DType::Float64});
  *number.data<double>() = PyFloat_AS_DOUBLE(object);
  out = Value(number);
  return true;
}

bool has_attributes(PyObject* object) {
  PyObject* dict = attribute_dict(object);
  return dict && PyDict_GET_SIZE(dict) > 0;
}

/// Numbers and texts go by their value, other objects are the same or not.
bool is_kept_value(PyObject* kept, PyObject* given) {
  if (kept == given) return true;
  if (!has_value(kept) || Py_TYPE(kept) != Py_TYPE(given) || !equal(kept, given)) return false;
  return is_plain_object(kept) || (!has_attributes(kept) && !has_attributes(given));
}

}  // namespace

Tree::Tree(nb::handle spec, nb::handle kept, bool keeps_types, nb::handle leaves)
    : spec_(nb::borrow(spec)), kept_(nb::borrow(kept)), keeps_types_(keeps_types) {
  size_t leaf = 0;
  root_ = read(spec, kept, leaves, leaf);
  if (keeps_types) return;
  flat_ = root_.kind == Node::Kind::Tuple || root_.kind == Node::Kind::List;
  if (flat_) flat_ = root_.type.ptr() == tuple_type() || root_.kind == Node::Kind::List;
  for (const Node& child : root_.children) flat_ &= child.kind == Node::Kind::Leaf || child.kind == Node::Kind::Kept;
}

Tree::Node Tree::read(nb::handle spec, nb::handle kept, nb::handle leaves, size_t& leaf) {
  Node node;
  nb::object type = spec.attr("type"), context = spec.attr("context");
  if (type.is_none()) {
    nb::object place = nb::int_(leaf++);
    if (PyDict_Contains(kept.ptr(), place.ptr()) != 1) {
      if (!leaves.is_none() && is_tensor(nb::object(leaves[place]).ptr()))
        node.type = nb::borrow(nb::object(leaves[place]).type());
      node.float_as_tensor =
          !leaves.is_none() && nb::object(leaves[place]).ptr() == reinterpret_cast<PyObject*>(&PyFloat_Type);
      return node;
    }
    node.kind = Node::Kind::Kept;
    node.kept = nb::borrow(PyDict_GetItem(kept.ptr(), place.ptr()));
    return node;
  }
  PyObject* namedtuple = nb::module_::import_("collections").attr("namedtuple").ptr();
  if (type.ptr() == tuple_type()) node.kind = Node::Kind::Tuple;
  else if (type.ptr() == reinterpret_cast<PyObject*>(&PyList_Type)) node.kind = Node::Kind::List;
  else if (type.ptr() == reinterpret_cast<PyObject*>(&PyDict_Type)) node.kind = Node::Kind::Dict;
  else if (type.ptr() == namedtuple) node.kind = Node::Kind::Tuple, type = context;
  else if (type.ptr() == opened_type()) node.kind = Node::Kind::Object, type = context[0], context = context[1];
  else if (type.ptr() == size_type())
    node.kind = Node::Kind::Tuple, type = keeps_types_ ? type : nb::borrow(tuple_type());
  else usable_ = false;
  node.type = type;
  if (node.kind == Node::Kind::Dict || node.kind == Node::Kind::Object)
    for (nb::handle key : context) node.keys.push_back(nb::borrow(key));
  for (nb::handle child : spec.attr("children_specs")) node.children.push_back(read(child, kept, leaves, leaf));
  return node;
}

bool Tree::match_object(const Node& node, PyObject* object, Found& found) {
  PyObject* fields = attribute_dict(object);
  if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != node.type.ptr() || !fields) return false;
  if (PyDict_GET_SIZE(fields) != static_cast<Py_ssize_t>(node.children.size())) return false;
  // One that is given twice would be two.
  if (std::find(found.objects.begin(), found.objects.end(), object) != found.objects.end()) return false;
  found.objects.push_back(object);
  for (size_t i = 0; i < node.children.size(); ++i) {
    PyObject* value = PyDict_GetItemWithError(fields, node.keys[i].ptr());
    if (!value || !match(node.children[i], value, found)) return false;
  }
  return true;
}

bool Tree::match(const Node& node, PyObject* object, Found& found) {
  auto is_type = [&] { return reinterpret_cast<PyObject*>(Py_TYPE(object)) == node.type.ptr(); };
  switch (node.kind) {
    case Node::Kind::Leaf:
      if (node.float_as_tensor) return read_float(object, found.leaves.emplace_back());
      if (node.type && is_tensor(object) && (!is_type() || has_own_attributes(object))) return false;
      return read_leaf(object, found.leaves.emplace_back());
    case Node::Kind::Kept: return is_kept_value(node.kept.ptr(), object);
    case Node::Kind::Tuple:
    case Node::Kind::List: {
      if (!is_type() || PySequence_Fast_GET_SIZE(object) != static_cast<Py_ssize_t>(node.children.size())) return false;
      for (size_t i = 0; i < node.children.size(); ++i)
        if (!match(node.children[i], PySequence_Fast_GET_ITEM(object, static_cast<Py_ssize_t>(i)), found)) return false;
      return true;
    }
    case Node::Kind::Object: return match_object(node, object, found);
    case Node::Kind::Dict: break;
  }
  if (!is_type() || PyDict_GET_SIZE(object) != static_cast<Py_ssize_t>(node.children.size())) return false;
  Py_ssize_t position = 0;
  PyObject *key, *value;
  for (size_t i = 0; PyDict_Next(object, &position, &key, &value); ++i)
    if (!equal(key, node.keys[i].ptr()) || !match(node.children[i], value, found)) return false;
  return true;
}

bool Tree::match_call(PyObject* const* args, size_t count, PyObject* keywords, size_t skipped,
                      std::vector<Value>& leaves, std::vector<PyObject*>& objects) const {
  Found found{leaves, objects};
  const Node &positional = root_.children[0], &named = root_.children[1];
  size_t named_count = keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0;
  if (count + skipped != positional.children.size() || named_count != named.children.size()) return false;
  for (size_t i = 0; i < count; ++i)
    if (!match(positional.children[i + skipped], args[i], found)) return false;
  for (size_t i = 0; i < named_count; ++i) {
    if (!equal(PyTuple_GET_ITEM(keywords, static_cast<Py_ssize_t>(i)), named.keys[i].ptr())) return false;
    if (!match(named.children[i], args[count + i], found)) return false;
  }
  return true;
}

nb::object Tree::build(const Node& node, const Value*& leaf) {
  switch (node.kind) {
    case Node::Kind::Leaf: return owned(wrap(*leaf++));
    case Node::Kind::Kept: return node.kept;
    case Node::Kind::List: {
      nb::object out = owned(PyList_New(static_cast<Py_ssize_t>(node.children.size())));
      for (size_t i = 0; i < node.children.size(); ++i)
        PyList_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), build(node.children[i], leaf).release().ptr());
      return out;
    }
    case Node::Kind::Dict: {
      nb::object out = owned(PyDict_New());
      for (size_t i = 0; i < node.children.size(); ++i)
        checked(PyDict_SetItem(out.ptr(), node.keys[i].ptr(), build(node.children[i], leaf).ptr()));
      return out;
    }
    case Node::Kind::Object: {
      nb::list fields;
      for (const Node& child : node.children) fields.append(build(child, leaf));
      return nb::handle(opened_type()).attr("made")(node.type, nb::cast(node.keys), fields);
    }
    case Node::Kind::Tuple: break;
  }
  nb::object items = owned(PyTuple_New(static_cast<Py_ssize_t>(node.children.size())));
  for (size_t i = 0; i < node.children.size(); ++i)
    PyTuple_SET_ITEM(items.ptr(), static_cast<Py_ssize_t>(i), build(node.children[i], leaf).release().ptr());
  if (node.type.ptr() == tuple_type()) return items;
  if (node.type.ptr() == size_type()) return owned(PyObject_CallOneArg(node.type.ptr(), items.ptr()));
  return owned(PyObject_CallObject(node.type.ptr(), items.ptr()));  // a named tuple
}

nb::object Tree::fill_result(ArrayRef<Value> leaves) const {
  if (!usable_) {
    nb::list all;
    size_t place = 0;
    auto take_kept = [&] {
      for (;; ++place) {
        nb::object key = nb::int_(place);
        if (PyDict_Contains(kept_.ptr(), key.ptr()) != 1) return;
        all.append(nb::borrow(PyDict_GetItem(kept_.ptr(), key.ptr())));
      }
    };
    for (const Value& v : leaves) {
      take_kept();
      all.append(owned(wrap(v)));
      ++place;
    }
    take_kept();
    return spec_.attr("unflatten")(all);
  }
  const Value* leaf = leaves.data();
  if (!flat_) return build(root_, leaf);
  nb::object out = owned(PyList_New(static_cast<Py_ssize_t>(root_.children.size())));
  for (size_t i = 0; i < root_.children.size(); ++i)
    PyList_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), build(root_.children[i], leaf).release().ptr());
  return out;
}

void bind_tree(nb::module_& m) {
  // _float_tensor(number): a float as graphs take it that are for any.
  m.def("_float_tensor", [](nb::handle number) {
    Value value;
    check<TypeError>(read_float(number.ptr(), value), "a finite float is expected");
    return nb::steal(wrap(value));
  });
  nb::class_<Tree>(m, "_Tree")
      .def(nb::init<nb::handle, nb::handle, bool, nb::handle>(), nb::arg("spec"), nb::arg("kept"),
           nb::arg("keeps_types"), nb::arg("leaves").none())
      .def_prop_ro("usable", &Tree::usable)
      .def("fill_result", [](const Tree& tree, nb::handle leaves) { return tree.fill_result(read_values(leaves)); });
}

}  // namespace umbra::python
