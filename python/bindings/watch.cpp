#include "watch.h"

#include <frameobject.h>

#include "graph.h"
#include "tensor_type.h"

namespace umbra::python {

uint64_t dict_version(PyObject* dict) {
#if PY_VERSION_HEX < 0x030C0000
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#else
  (void)dict;
  return 0;
#endif
}

namespace {

bool same_version(uint64_t known, PyObject* dict) { return known != 0 && known == dict_version(dict); }

bool is_plain(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  return object == Py_None || PyBool_Check(object) || PyLong_Check(object) || PyFloat_Check(object) ||
         PyUnicode_Check(object) || type == &PyBytes_Type || PyType_IsSubtype(type, &PyBytes_Type);
}

bool equal(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  int same = PyObject_RichCompareBool(a, b, Py_EQ);
  if (same < 0) PyErr_Clear();
  return same == 1;
}

bool is_module(PyObject* object) {
  static PyObject* type = Py_NewRef(nb::object(nb::module_::import_("umbra.nn").attr("Module")).ptr());
  return PyObject_IsInstance(object, type) == 1;
}

/// Objects that are read whole, where they are read: functions, classes, Python's modules.
bool is_opaque(PyObject* object) {
  return PyFunction_Check(object) || PyType_Check(object) || PyModule_Check(object) || PyCFunction_Check(object);
}

nb::object attributes_of(PyObject* object) {
  if (PyObject_HasAttrString(object, "__dict__") != 1) return {};
  nb::object dict = nb::steal(PyObject_GetAttrString(object, "__dict__"));
  if (!dict) PyErr_Clear();
  return dict && PyDict_Check(dict.ptr()) ? dict : nb::object();
}

nb::object field(PyObject* dict, const char* name) {
  PyObject* found = PyDict_GetItemString(dict, name);
  return found && PyDict_Check(found) ? nb::borrow(found) : nb::object();
}

std::string key_text(PyObject* key) { return PyUnicode_Check(key) ? std::string(text_of(key)) : repr_of(key); }

/// Adds the way to what has changed, from inside out.
bool changed(std::string* why, const std::string& step) {
  if (why) *why = step + *why;
  return false;
}

}  // namespace

// ---- one object ----

Watched::Watched(PyObject* object, Scope& scope, int depth) : object_(nb::borrow(object)) {
  if (is_plain(object)) {
    kind_ = Kind::Plain;
  } else if (is_tensor(object) || is_opaque(object)) {
    kind_ = Kind::Same;
  } else if (depth == 0 || !scope.seen.insert(object).second) {
    object_ = {};  // as deep as one looks, or looked at already
  } else if (is_module(object)) {
    watch_module(object, scope);
  } else if (PyList_Check(object) || PyTuple_Check(object) || PyAnySet_Check(object)) {
    watch_sequence(object, scope, depth);
  } else if (PyDict_Check(object)) {
    watch_dict(object, scope, depth, false);
  } else if (nb::object attributes = attributes_of(object)) {
    kind_ = Kind::Attributes;
    items_.push_back({attributes, std::make_unique<Watched>()});
    items_.back().value->object_ = attributes;
    items_.back().value->watch_dict(attributes.ptr(), scope, depth, true);
  } else {
    object_ = {};
  }
}

void Watched::add(PyObject* key, PyObject* value, Scope& scope, int depth) {
  items_.push_back({nb::borrow(key), std::make_unique<Watched>(value, scope, depth)});
  moving_ |= !items_.back().value->is_fixed();
}

void Watched::watch_sequence(PyObject* object, Scope& scope, int depth) {
  kind_ = Kind::Sequence;
  nb::object items = owned(PySequence_List(object));
  length_ = PyList_GET_SIZE(items.ptr());
  for (Py_ssize_t i = 0; i < length_; ++i) {
    nb::object place = nb::int_(static_cast<size_t>(i));
    add(place.ptr(), PyList_GET_ITEM(items.ptr(), i), scope, depth - 1);
  }
}

void Watched::watch_dict(PyObject* object, Scope& scope, int depth, bool attributes) {
  kind_ = Kind::Dict;
  exact_ = !attributes;
  length_ = PyDict_GET_SIZE(object);
  Py_ssize_t position = 0;
  PyObject *key, *value;
  nb::object copy = owned(PyDict_Copy(object));  // looking at values may run code
  while (PyDict_Next(copy.ptr(), &position, &key, &value)) {
    if (attributes && !is_plain(value) && PySet_Contains(scope.names, key) != 1) continue;
    add(key, value, scope, depth - 1);
  }
  version_ = dict_version(object);
}

/// All its parts: their plain attributes, their tensors, and which parts there are.
void Watched::watch_module(PyObject* object, Scope& scope) {
  kind_ = Kind::Module;
  for (nb::handle part : nb::handle(object).attr("modules")()) {
    scope.seen.insert(part.ptr());
    nb::object attributes = attributes_of(part.ptr());
    auto own = std::make_unique<Watched>();
    own->object_ = attributes;
    own->kind_ = Kind::Dict;
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(attributes.ptr(), &position, &key, &value))
      if (is_plain(value)) own->add(key, value, scope, 0);
    own->version_ = dict_version(attributes.ptr());
    items_.push_back({nb::borrow(part), std::move(own)});
    for (const char* name : {"_parameters", "_buffers", "_modules"}) {
      nb::object dict = field(attributes.ptr(), name);
      if (!dict) continue;
      auto held = std::make_unique<Watched>();
      held->object_ = dict;
      held->kind_ = Kind::Dict;
      held->exact_ = true;
      held->length_ = PyDict_GET_SIZE(dict.ptr());
      position = 0;
      while (PyDict_Next(dict.ptr(), &position, &key, &value)) {
        auto same = std::make_unique<Watched>();
        same->kind_ = Kind::Same;
        same->object_ = nb::borrow(value);
        held->items_.push_back({nb::borrow(key), std::move(same)});
      }
      held->version_ = dict_version(dict.ptr());
      items_.push_back({dict, std::move(held)});
    }
  }
}

bool Watched::holds(PyObject* now, std::string* why) {
  switch (kind_) {
    case Kind::Anything: return true;
    case Kind::Plain: return equal(object_.ptr(), now) || changed(why, " == " + repr_of(object_.ptr()));
    case Kind::Same: return object_.ptr() == now || changed(why, " is another object");
    case Kind::Sequence: return items_hold(now, why);
    case Kind::Dict: return dict_holds(now, why);
    case Kind::Attributes: {
      if (Py_TYPE(now) != Py_TYPE(object_.ptr())) return changed(why, " is of another class");
      Watched& known = *items_[0].value;
      if (now == object_.ptr()) return known.dict_holds(known.object_.ptr(), why);
      nb::object attributes = attributes_of(now);
      return attributes ? known.dict_holds(attributes.ptr(), why) : changed(why, " has no attributes");
    }
    case Kind::Module:
      if (now != object_.ptr()) return changed(why, " is another module");
      for (Item& item : items_)
        if (!item.value->dict_holds(item.value->object_.ptr(), why)) return false;
      return true;
  }
  return false;
}

bool Watched::items_hold(PyObject* now, std::string* why) {
  if (Py_TYPE(now) != Py_TYPE(object_.ptr())) return changed(why, " is of another class");
  bool fast = PyList_Check(now) || PyTuple_Check(now);
  nb::object items = fast ? nb::borrow(now) : owned(PySequence_List(now));
  if (PySequence_Fast_GET_SIZE(items.ptr()) != length_) return changed(why, " has another length");
  for (Py_ssize_t i = 0; i < length_; ++i)
    if (!items_[static_cast<size_t>(i)].value->holds(PySequence_Fast_GET_ITEM(items.ptr(), i), why))
      return changed(why, "[" + std::to_string(i) + "]");
  return true;
}

bool Watched::dict_holds(PyObject* now, std::string* why) {
  if (now == object_.ptr() && same_version(version_, now)) {
    if (!moving_) return true;
    for (Item& item : items_)
      if (!item.value->still_holds(why)) return changed(why, "." + key_text(item.key.ptr()));
    return true;
  }
  if (!PyDict_Check(now)) return changed(why, " is no dict");
  if (exact_ && PyDict_GET_SIZE(now) != length_) return changed(why, " has another length");
  bool known = now == object_.ptr();
  for (Item& item : items_) {
    PyObject* value = PyDict_GetItemWithError(now, item.key.ptr());
    if (!value) PyErr_Clear();
    if (!value || !item.value->holds(value, why)) return changed(why, "." + key_text(item.key.ptr()));
    known &= item.value->is_known(value);
  }
  version_ = known ? dict_version(now) : 0;
  return true;
}

// ---- functions ----

Reads::Reads(nb::handle functions, nb::handle owners) {
  nb::object names = owned(PySet_New(nullptr));
  for (nb::handle f : functions)
    for (nb::handle name : f.attr("__code__").attr("co_names")) checked(PySet_Add(names.ptr(), name.ptr()));
  Watched::Scope scope{{}, names.ptr()};
  for (nb::handle owner : owners) owners_.emplace_back(nb::borrow(owner), Watched(owner.ptr(), scope, 2));
  for (nb::handle f : functions) add(f, scope);
}

void Reads::add(nb::handle function, Watched::Scope& scope) {
  Function f{nb::borrow(function),
             function.attr("__code__"),
             function.attr("__globals__"),
             function.attr("__closure__"),
             function.attr("__defaults__"),
             0,
             {},
             {},
             {}};
  if (!f.closure.is_none())
    for (nb::handle cell : f.closure) {
      PyObject* content = PyCell_GET(cell.ptr());
      f.cells.push_back(content ? Watched(content, scope, 2) : Watched(Py_None, scope, 2));
    }
  for (nb::handle name : f.code.attr("co_names"))
    if (PyObject* value = PyDict_GetItem(f.globals.ptr(), name.ptr()))
      f.names.emplace_back(nb::borrow(name), Watched(value, scope, 2));
  f.version = dict_version(f.globals.ptr());
  if (!f.defaults.is_none())
    for (nb::handle value : f.defaults) f.default_values.push_back(Watched(value.ptr(), scope, 1));
  functions_.push_back(std::make_unique<Function>(std::move(f)));
}

bool Reads::names_hold(Function& f, std::string* why) {
  if (same_version(f.version, f.globals.ptr())) {
    for (auto& [name, watched] : f.names)
      if (!watched.still_holds(why)) return changed(why, std::string(text_of(name.ptr())));
    return true;
  }
  bool known = true;
  for (auto& [name, watched] : f.names) {
    PyObject* value = PyDict_GetItemWithError(f.globals.ptr(), name.ptr());
    if (!value || !watched.holds(value, why)) return changed(why, std::string(text_of(name.ptr())));
    known &= watched.is_known(value);
  }
  f.version = known ? dict_version(f.globals.ptr()) : 0;
  return true;
}

bool Reads::holds(Function& f, std::string* why) {
  auto* function = reinterpret_cast<PyFunctionObject*>(f.function.ptr());
  if (function->func_code != f.code.ptr()) return changed(why, key_text(function->func_name) + ".__code__");
  for (size_t i = 0; i < f.cells.size(); ++i) {
    PyObject* content = PyCell_GET(PyTuple_GET_ITEM(f.closure.ptr(), static_cast<Py_ssize_t>(i)));
    if (!f.cells[i].holds(content ? content : Py_None, why)) {
      nb::object names = f.code.attr("co_freevars");
      return changed(why, std::string(text_of(PyTuple_GET_ITEM(names.ptr(), static_cast<Py_ssize_t>(i)))));
    }
  }
  PyObject* defaults = function->func_defaults ? function->func_defaults : Py_None;
  if (defaults != f.defaults.ptr()) return changed(why, key_text(function->func_name) + ".__defaults__");
  for (size_t i = 0; i < f.default_values.size(); ++i)
    if (!f.default_values[i].holds(PyTuple_GET_ITEM(defaults, static_cast<Py_ssize_t>(i)), why))
      return changed(why, key_text(function->func_name) + ".__defaults__");
  return names_hold(f, why);
}

bool Reads::hold(std::string* why) {
  for (auto& [owner, watched] : owners_)
    if (!watched.holds(owner.ptr(), why)) return changed(why, "self");
  for (const auto& f : functions_)
    if (!holds(*f, why)) return false;
  return true;
}

// ---- a module's tensors ----

bool ModuleState::is_current() const {
  if (dicts_.empty()) return false;
  for (const auto& [dict, version] : dicts_)
    if (!same_version(version, dict.ptr())) return false;
  return true;
}

void ModuleState::refresh() {
  if (is_current()) return;
  dicts_.clear();
  nb::object found = look_up_();
  nb::object key = found[0];
  if (!key_ || !equal(key.ptr(), key_.ptr())) key_ = key;
  tensors_ = read_values(found[1]);
  for (nb::handle part : modules_()) {
    nb::object attributes = attributes_of(part.ptr());
    dicts_.emplace_back(attributes, dict_version(attributes.ptr()));
    for (const char* name : {"_parameters", "_buffers", "_modules"})
      if (nb::object dict = field(attributes.ptr(), name)) dicts_.emplace_back(dict, dict_version(dict.ptr()));
  }
}

void bind_watch(nb::module_& m) {
  nb::class_<Reads>(m, "_Reads").def(nb::init<nb::handle, nb::handle>()).def("broken", [](Reads& reads) -> nb::object {
    std::string why;
    return reads.hold(&why) ? nb::none() : nb::object(make_text(why));
  });
  nb::class_<ModuleState>(m, "_ModuleState").def(nb::init<nb::object, nb::object>());
}

}  // namespace umbra::python
