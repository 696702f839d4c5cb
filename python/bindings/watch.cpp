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

constexpr int kDeepest = 4;  // objects inside of objects that are looked at

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

/// A class whose attributes programs may change.
bool is_changeable(PyTypeObject* type) { return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0; }

/// Objects that are read whole, where they are read: functions, built-in classes.
bool is_opaque(PyObject* object) {
  bool fixed_class = PyType_Check(object) && !is_changeable(reinterpret_cast<PyTypeObject*>(object));
  return PyFunction_Check(object) || PyCFunction_Check(object) || fixed_class;
}

/// The number that changes when an attribute of a class or of its bases does; 0 where there is none.
uint64_t class_version(const PyTypeObject* type) {
  return PyType_HasFeature(const_cast<PyTypeObject*>(type), Py_TPFLAGS_VALID_VERSION_TAG) ? type->tp_version_tag : 0;
}

bool is_deque(PyObject* object) {
  static PyObject* type = Py_NewRef(nb::object(nb::module_::import_("collections").attr("deque")).ptr());
  return PyObject_IsInstance(object, type) == 1;
}

/// An array of numpy's that is small enough to be compared.
bool is_array(PyObject* object) {
  constexpr Py_ssize_t kLargest = 1 << 20;  // in bytes
  if (std::string_view(Py_TYPE(object)->tp_name) != "numpy.ndarray") return false;
  return nb::cast<Py_ssize_t>(nb::handle(object).attr("nbytes")) <= kLargest;
}

nb::object bytes_of(PyObject* array) { return nb::handle(array).attr("tobytes")(); }

/// The objects of a class keep attributes in places of its own (`__slots__`).
bool has_slots(PyTypeObject* type) { return is_changeable(type) && type->tp_dictoffset == 0; }

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
  if (is_plain(object)) kind_ = Kind::Plain;
  else if (is_tensor(object)) kind_ = Kind::Tensor, requires_grad_ = tensor_of(object).requires_grad();
  else if (is_opaque(object)) kind_ = Kind::Same;
  else if (scope.seen.contains(object)) kind_ = Kind::Same;  // it is watched where it was met first
  else if (depth == 0 || scope.left == 0) object_ = {};      // as deep as one looks
  else look_into(object, scope, depth);
}

void Watched::look_into(PyObject* object, Scope& scope, int depth) {
  scope.seen.insert(object);
  --scope.left;
  if (is_module(object)) {
    watch_module(object, scope);
  } else if (PyList_Check(object) || PyTuple_Check(object) || PyAnySet_Check(object) || is_deque(object)) {
    watch_sequence(object, scope, depth);
  } else if (PyDict_Check(object)) {
    watch_dict(object, scope, depth, false);
  } else if (is_array(object)) {
    kind_ = Kind::Array;
    copy_ = bytes_of(object);
  } else if (PyType_Check(object)) {
    watch_class(reinterpret_cast<PyTypeObject*>(object), scope, depth);
  } else if (nb::object attributes = attributes_of(object)) {
    watch_attributes(object, attributes.ptr(), scope, depth);
  } else if (has_slots(Py_TYPE(object))) {
    watch_slots(object, scope, depth);
  } else {
    object_ = {};
  }
}

void Watched::watch_slots(PyObject* object, Scope& scope, int depth) {
  kind_ = Kind::Slots;
  for (nb::handle name : nb::steal(PySequence_List(scope.names))) {
    PyObject* place = _PyType_Lookup(Py_TYPE(object), name.ptr());
    if (!place || Py_TYPE(place) != &PyMemberDescr_Type) continue;
    if (nb::object value = nb::steal(PyObject_GetAttr(object, name.ptr())))
      add(name.ptr(), value.ptr(), scope, depth - 1);
    else PyErr_Clear();
  }
}

bool Watched::slots_hold(PyObject* now, std::string* why) {
  if (Py_TYPE(now) != Py_TYPE(object_.ptr())) return changed(why, " is of another class");
  for (Item& item : items_) {
    nb::object value = nb::steal(PyObject_GetAttr(now, item.key.ptr()));
    if (!value) PyErr_Clear();
    if (!value || !item.value->holds(value.ptr(), why)) return changed(why, "." + key_text(item.key.ptr()));
  }
  return true;
}

/// An object's own attributes, and those that it has of its class.
void Watched::watch_attributes(PyObject* object, PyObject* attributes, Scope& scope, int depth) {
  kind_ = Kind::Attributes;
  auto own = std::make_unique<Watched>();
  own->object_ = nb::borrow(attributes);
  own->watch_dict(attributes, scope, depth, true);
  items_.push_back({nb::borrow(attributes), std::move(own)});
  if (PyModule_Check(object) || !is_changeable(Py_TYPE(object))) return;
  auto of_class = std::make_unique<Watched>();
  of_class->object_ = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  of_class->watch_class(Py_TYPE(object), scope, depth);
  items_.push_back({of_class->object_, std::move(of_class)});
}

void Watched::watch_class(PyTypeObject* type, Scope& scope, int depth) {
  kind_ = Kind::Class;
  for (nb::handle name : nb::steal(PySequence_List(scope.names)))
    if (PyObject* value = _PyType_Lookup(type, name.ptr())) add(name.ptr(), value, scope, depth - 1);
  version_ = class_version(type);
}

void Watched::add(PyObject* key, PyObject* value, Scope& scope, int depth) {
  items_.push_back({nb::borrow(key), std::make_unique<Watched>(value, scope, depth)});
  moving_ |= !items_.back().value->is_fixed();
}

void Watched::watch_sequence(PyObject* object, Scope& scope, int depth) {
  kind_ = Kind::Sequence;
  nb::object items = owned(PySequence_List(object));
  if (scope.restorable) copy_ = items;
  length_ = PyList_GET_SIZE(items.ptr());
  for (Py_ssize_t i = 0; i < length_; ++i) {
    nb::object place = nb::int_(static_cast<size_t>(i));
    add(place.ptr(), PyList_GET_ITEM(items.ptr(), i), scope, depth - 1);
  }
}

void Watched::watch_dict(PyObject* object, Scope& scope, int depth, bool attributes) {
  kind_ = Kind::Dict;
  module_ = attributes && PyDict_GetItemString(object, "__spec__");
  exact_ = !module_;
  length_ = PyDict_GET_SIZE(object);
  Py_ssize_t position = 0;
  PyObject *key, *value;
  nb::object copy = owned(PyDict_Copy(object));  // looking at values may run code
  if (scope.restorable) copy_ = copy;
  while (PyDict_Next(copy.ptr(), &position, &key, &value)) {
    bool named = PySet_Contains(scope.names, key) == 1;
    if (attributes && !named && (module_ || !is_plain(value))) continue;
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
    nb::object copy = owned(PyDict_Copy(attributes.ptr()));  // looking at values may run code
    if (scope.restorable) own->copy_ = copy;
    own->exact_ = true;
    own->length_ = PyDict_GET_SIZE(copy.ptr());
    while (PyDict_Next(copy.ptr(), &position, &key, &value)) {
      bool named = PySet_Contains(scope.names, key) == 1 && !is_module(value);
      if (is_plain(value) || named) own->add(key, value, scope, 2);
    }
    own->version_ = dict_version(attributes.ptr());
    items_.push_back({nb::borrow(part), std::move(own)});
    PyTypeObject* type = Py_TYPE(part.ptr());
    if (scope.seen.insert(reinterpret_cast<PyObject*>(type)).second) {
      auto of_class = std::make_unique<Watched>();
      of_class->object_ = nb::borrow(reinterpret_cast<PyObject*>(type));
      of_class->watch_class(type, scope, 1);
      items_.push_back({of_class->object_, std::move(of_class)});
    }
    for (const char* name : {"_parameters", "_buffers", "_modules"}) {
      nb::object dict = field(attributes.ptr(), name);
      if (!dict) continue;
      auto held = std::make_unique<Watched>();
      held->object_ = dict;
      held->kind_ = Kind::Dict;
      held->exact_ = true;
      held->length_ = PyDict_GET_SIZE(dict.ptr());
      if (scope.restorable) held->copy_ = owned(PyDict_Copy(dict.ptr()));
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
    case Kind::Tensor:  // its other looks are those of the graphs' inputs, where it is one
      if (object_.ptr() != now) return changed(why, " is another object");
      return tensor_of(now).requires_grad() == requires_grad_ || changed(why, ".requires_grad is another one");
    case Kind::Sequence: return items_hold(now, why);
    case Kind::Dict: return dict_holds(now, why);
    case Kind::Attributes: {
      if (Py_TYPE(now) != Py_TYPE(object_.ptr())) return changed(why, " is of another class");
      if (items_.size() > 1 && !items_[1].value->class_holds(items_[1].key.ptr(), why)) return false;
      Watched& known = *items_[0].value;
      if (now == object_.ptr()) return known.dict_holds(known.object_.ptr(), why);
      nb::object attributes = attributes_of(now);
      return attributes ? known.dict_holds(attributes.ptr(), why) : changed(why, " has no attributes");
    }
    case Kind::Slots: return slots_hold(now, why);
    case Kind::Array:
      return (now == object_.ptr() && equal(bytes_of(now).ptr(), copy_.ptr())) || changed(why, " is another array");
    case Kind::Class: return class_holds(now, why);
    case Kind::Module:
      if (now != object_.ptr()) return changed(why, " is another module");
      for (Item& item : items_)
        if (!item.value->holds(item.value->object_.ptr(), why)) return false;
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

bool Watched::class_holds(PyObject* now, std::string* why) {
  if (now != object_.ptr()) return changed(why, " is another class");
  auto* type = reinterpret_cast<PyTypeObject*>(now);
  bool unchanged = version_ != 0 && version_ == class_version(type);
  if (unchanged && !moving_) return true;
  bool known = true;
  for (Item& item : items_) {
    PyObject* value = unchanged ? nullptr : _PyType_Lookup(type, item.key.ptr());
    bool holds = unchanged ? item.value->still_holds(why) : value && item.value->holds(value, why);
    if (!holds) return changed(why, "." + key_text(item.key.ptr()));
    known &= unchanged || item.value->is_known(value);
  }
  version_ = known ? class_version(type) : 0;
  return true;
}

// ---- putting back ----

namespace {
void call(PyObject* object, const char* method, PyObject* argument = nullptr) {
  nb::object name = make_text(method);
  owned(argument ? PyObject_CallMethodOneArg(object, name.ptr(), argument)
                 : PyObject_CallMethodNoArgs(object, name.ptr()));
}

void check_set(int failed) {
  if (failed < 0) throw nb::python_error();
}

/// An attribute that is another one now gets its value back.
int set_if_changed(PyObject* object, PyObject* name, PyObject* value) {
  nb::object now = PyType_Check(object) ? nb::borrow(_PyType_Lookup(reinterpret_cast<PyTypeObject*>(object), name))
                                        : nb::steal(PyObject_GetAttr(object, name));
  if (!now) PyErr_Clear();
  return now.ptr() == value ? 0 : PyObject_SetAttr(object, name, value);
}
}  // namespace

void Watched::restore() {
  PyObject* object = object_.ptr();
  if (kind_ == Kind::Sequence && PyList_Check(object)) {
    check_set(PyList_SetSlice(object, 0, PY_SSIZE_T_MAX, copy_.ptr()));
  } else if (kind_ == Kind::Sequence && !PyTuple_Check(object) && !PyFrozenSet_Check(object)) {
    call(object, "clear");
    call(object, PyAnySet_Check(object) ? "update" : "extend", copy_.ptr());
  } else if (kind_ == Kind::Dict && !module_) {
    PyDict_Clear(object);
    check_set(PyDict_Update(object, copy_.ptr()));
  } else if (kind_ == Kind::Dict) {
    for (const Item& item : items_)
      check_set(PyDict_SetItem(object, item.key.ptr(), PyDict_GetItem(copy_.ptr(), item.key.ptr())));
  } else if (kind_ == Kind::Slots || kind_ == Kind::Class) {
    for (const Item& item : items_)
      if (item.value->object_) check_set(set_if_changed(object, item.key.ptr(), item.value->object_.ptr()));
  }
  for (const Item& item : items_) item.value->restore();
}

// ---- functions ----

namespace {
/// The names that a function uses, and functions inside of it do.
void add_names(PyObject* code, PyObject* names) {
  for (nb::handle name : nb::handle(code).attr("co_names")) check_set(PySet_Add(names, name.ptr()));
  for (nb::handle constant : nb::handle(code).attr("co_consts"))
    if (PyCode_Check(constant.ptr())) add_names(constant.ptr(), names);
}
}  // namespace

Reads::Reads(nb::handle functions, nb::handle owners, bool restorable) {
  nb::object names = owned(PySet_New(nullptr));
  for (nb::handle f : functions) add_names(nb::object(f.attr("__code__")).ptr(), names.ptr());
  Watched::Scope scope{{}, names.ptr(), restorable};
  for (nb::handle owner : owners) owners_.emplace_back(nb::borrow(owner), Watched(owner.ptr(), scope, kDeepest));
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
             {},
             function.attr("__kwdefaults__"),
             {},
             {},
             {}};
  if (!f.closure.is_none())
    for (nb::handle cell : f.closure) {
      PyObject* content = PyCell_GET(cell.ptr());
      f.cells.push_back(Watched(content ? content : Py_None, scope, kDeepest));
      if (scope.restorable) f.cell_contents.push_back(nb::borrow(content));
    }
  nb::object used = owned(PySet_New(nullptr));
  add_names(f.code.ptr(), used.ptr());
  for (nb::handle name : used)
    if (PyObject* value = PyDict_GetItem(f.globals.ptr(), name.ptr())) {
      f.names.emplace_back(nb::borrow(name), Watched(value, scope, kDeepest));
      if (scope.restorable) f.global_values.push_back(nb::borrow(value));
    }
  f.version = dict_version(f.globals.ptr());
  if (!f.defaults.is_none())
    for (nb::handle value : f.defaults) f.default_values.push_back(Watched(value.ptr(), scope, kDeepest));
  f.keyword_values = Watched(f.keyword_defaults.ptr(), scope, kDeepest);
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
  if (!f.keyword_values.holds(function->func_kwdefaults ? function->func_kwdefaults : Py_None, why))
    return changed(why, key_text(function->func_name) + ".__kwdefaults__");
  return names_hold(f, why);
}

void Reads::restore() {
  for (auto& [owner, watched] : owners_) watched.restore();
  for (const auto& f : functions_) {
    for (size_t i = 0; i < f->cells.size(); ++i) {
      check_set(PyCell_Set(PyTuple_GET_ITEM(f->closure.ptr(), static_cast<Py_ssize_t>(i)), f->cell_contents[i].ptr()));
      f->cells[i].restore();
    }
    for (size_t i = 0; i < f->names.size(); ++i) {
      PyObject* name = f->names[i].first.ptr();
      if (PyDict_GetItem(f->globals.ptr(), name) != f->global_values[i].ptr())
        check_set(PyDict_SetItem(f->globals.ptr(), name, f->global_values[i].ptr()));
      f->names[i].second.restore();
    }
    for (Watched& value : f->default_values) value.restore();
  }
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
  nb::class_<Reads>(m, "_Reads")
      .def(nb::init<nb::handle, nb::handle, bool>(), nb::arg("functions"), nb::arg("owners"),
           nb::arg("restorable") = false)
      .def("broken",
           [](Reads& reads) -> nb::object {
             std::string why;
             return reads.hold(&why) ? nb::none() : nb::object(make_text(why));
           })
      .def("restore", &Reads::restore);
  nb::class_<ModuleState>(m, "_ModuleState").def(nb::init<nb::object, nb::object>());
}

}  // namespace umbra::python
