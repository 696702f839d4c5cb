#include "watch.h"

#include <algorithm>

#include "tensor_type.h"
#include "watched_objects.h"

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

constexpr int kDepthOfOwnModules = 3;  // what lies deeper in this package is no setting

bool same_version(uint64_t known, PyObject* dict) { return known != 0 && known == dict_version(dict); }

/// Adds the way to what has changed, from inside out.
bool changed(std::string* why, const std::string& step) {
  if (why) *why = step + *why;
  return false;
}

bool is_sequence(PyObject* object) {
  return PyList_Check(object) || PyTuple_Check(object) || PyAnySet_Check(object) || is_deque(object);
}

/// Lists, tuples, sets and dicts that nobody has derived a class from.
bool is_exact_container(PyObject* object) {
  return PyList_CheckExact(object) || PyTuple_CheckExact(object) || PyDict_CheckExact(object) ||
         PyAnySet_CheckExact(object);
}

PyObject* as_object(PyTypeObject* type) { return reinterpret_cast<PyObject*>(type); }

/// Attributes of a module that hold its parts and hooks, which are looked at elsewhere.
bool is_of_module(PyObject* name) {
  std::string_view text = PyUnicode_Check(name) ? text_of(name) : "";
  return text == "_parameters" || text == "_buffers" || text == "_modules" || text == "_non_persistent_buffers_set" ||
         text.find("_hooks") != std::string_view::npos;
}

/// What a weak reference leads to, borrowed; None where it is no more.
PyObject* referent_of(PyObject* reference) {
#if PY_VERSION_HEX < 0x030D0000
  return PyWeakref_GetObject(reference);
#else
  PyObject* referent = nullptr;
  checked(PyWeakref_GetRef(reference, &referent));
  if (!referent) return Py_None;
  Py_DECREF(referent);  // who owns it besides keeps it while it is looked at
  return referent;
#endif
}

/// The classes of an object's class and its bases that users may change.
template <class F> void for_each_changing_base(PyTypeObject* type, F&& visit) {
  for (nb::handle item : nb::borrow(type->tp_mro)) {
    auto* base = reinterpret_cast<PyTypeObject*>(item.ptr());
    if (PyType_HasFeature(base, Py_TPFLAGS_HEAPTYPE) && !is_own(item.ptr())) visit(base);
  }
}

Py_ssize_t count_attributes(PyTypeObject* type) {
  Py_ssize_t count = 0;
  for_each_changing_base(type, [&](PyTypeObject* base) { count += PyDict_GET_SIZE(class_dict(base)); });
  return count;
}

/// Whether a name in the dict of one of a class's bases is asked for.
bool is_asked(PyObject* name, PyTypeObject* base, const Watched::Scope& scope) {
  if (PySet_Contains(scope.names, name) == 1) return true;
  if (!scope.whole || scope.own || !PyUnicode_Check(name)) return false;
  if (!PyType_HasFeature(base, Py_TPFLAGS_HEAPTYPE) || is_own(as_object(base))) return false;
  return !text_of(name).starts_with("__") && !text_of(name).starts_with("_abc_");
}

/// What a class and its bases have of names that are asked for, which are more than these.
nb::object asked_names(PyTypeObject* type, const Watched::Scope& scope) {
  nb::object names = owned(PyDict_New());
  for (nb::handle item : nb::borrow(type->tp_mro)) {
    auto* base = reinterpret_cast<PyTypeObject*>(item.ptr());
    PyObject *name, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(class_dict(base), &position, &name, &value))
      if (is_asked(name, base, scope)) checked(PyDict_SetItem(names.ptr(), name, Py_None));
  }
  return owned(PyDict_Keys(names.ptr()));
}

/// The slots of a class that are asked for: the same for all its objects, of which there may be many.
const std::vector<nb::object>& slots_of(PyTypeObject* type, Watched::Scope& scope) {
  bool all = scope.whole && !scope.own;
  auto [known, is_new] = scope.slots[all ? 1 : 0].try_emplace(type);
  if (!is_new) return known->second;
  for (nb::handle name : asked_names(type, scope)) {
    PyObject* place = _PyType_Lookup(type, name.ptr());
    if (place && Py_TYPE(place) == &PyMemberDescr_Type) known->second.push_back(nb::borrow(name));
  }
  return known->second;
}

}  // namespace

// ---- looking into objects ----

Watched::Watched(PyObject* object, Scope& scope, int depth) : object_(nb::borrow(object)) {
  if (is_plain_object(object)) {
    kind_ = Kind::Plain;
  } else if (is_tensor(object)) {
    kind_ = Kind::Tensor;
    requires_grad_ = tensor_of(object).requires_grad();
    scope.tensors.insert(tensor_of(object).impl());
    if (scope.seen.insert(object).second) add_part(object).watch_fields(object, scope, depth);
  } else if (is_opaque_object(object) || scope.seen.contains(object) || (PyFunction_Check(object) && is_own(object))) {
    kind_ = Kind::Same;  // or it is watched where it was met first
  } else if (depth == 0 || scope.left == 0) {
    if (!scope.own && scope.hidden.empty()) scope.hidden = type_name(object);
    object_ = {};
  } else {
    look_into(object, scope, depth);
  }
}

void Watched::look_into(PyObject* object, Scope& scope, int depth) {
  scope.seen.insert(object);
  --scope.left;
  for (nb::handle found : nb::borrow(scope.returned)) same_ |= found.ptr() == object;
  if (is_neural_module(object)) {
    watch_module(object, scope, depth);
  } else if (PyType_Check(object)) {
    watch_class(reinterpret_cast<PyTypeObject*>(object), scope, depth);
  } else if (PyFunction_Check(object)) {
    kind_ = Kind::Function;
    add_part(object).watch_fields(object, scope, depth);
  } else if (PyWeakref_Check(object)) {
    kind_ = Kind::Weak;
    PyObject* referent = referent_of(object);
    items_.push_back({{}, std::make_unique<Watched>(referent, scope, depth - 1)});
    if (!scope.restorable && referent != Py_None && !is_neural_module(referent)) items_[0].value->let_go(referent);
  } else if (is_value_object(object)) {
    kind_ = Kind::Plain;
  } else if (PyDict_CheckExact(object)) {
    watch_dict(object, scope, depth);
  } else if (is_exact_container(object)) {
    watch_sequence(object, scope, depth);
  } else if (is_hidden_object(object)) {
    if (!scope.own && scope.hidden.empty()) scope.hidden = type_name(object);
    kind_ = Kind::Same;
  } else {  // how this package keeps its state is its own business
    bool was_own = std::exchange(scope.own, scope.own || is_own(object) || is_own(as_object(Py_TYPE(object))));
    watch_parts(object, scope, PyModule_Check(object) && scope.own && !was_own ? kDepthOfOwnModules : depth);
    scope.own = was_own;
  }
}

/// What only a weak reference leads to goes when its last owner does.
void Watched::let_go(PyObject* object) {
  if (object_.ptr() == object) object_ = {};
  for (Item& item : items_) item.value->let_go(object);
}

Watched& Watched::add_part(PyObject* object) {
  auto part = std::make_unique<Watched>();
  part->object_ = nb::borrow(object);
  moving_ = true;
  return *items_.emplace_back(Item{nb::object(), std::move(part)}).value;
}

void Watched::watch_parts(PyObject* object, Scope& scope, int depth) {
  kind_ = Kind::Parts;
  copy_ = nb::borrow(as_object(Py_TYPE(object)));
  if (PyDict_Check(object)) {
    add_part(object).watch_dict(object, scope, depth);
  } else if (is_sequence(object) || is_array_of_objects(object)) {
    add_part(object).watch_sequence(object, scope, depth);
  } else if (has_contents(object)) {
    Watched& part = add_part(object);
    part.kind_ = Kind::Contents;
    part.copy_ = contents_of(object);
  } else if (has_value(object)) {
    add_part(object).kind_ = Kind::Plain;
  } else if (!PyModule_Check(object)) {
    add_part(object).watch_referents(object, scope, depth);
  }
  if (_PyObject_GetDictPtr(object) || attribute_dict(object)) add_part(object).watch_fields(object, scope, depth);
  if (!is_python_class(Py_TYPE(object))) return;
  add_part(object).watch_slots(object, scope, depth);
  if (scope.seen.insert(as_object(Py_TYPE(object))).second)
    add_part(as_object(Py_TYPE(object))).watch_class(Py_TYPE(object), scope, depth);
}

void Watched::watch_referents(PyObject* object, Scope& scope, int depth) {
  kind_ = Kind::Referents;
  for (const nb::object& part : referents_of(object)) add(nb::int_(items_.size()).ptr(), part.ptr(), scope, depth - 1);
}

void Watched::watch_slots(PyObject* object, Scope& scope, int depth) {
  kind_ = Kind::Slots;
  for (const nb::object& name : slots_of(Py_TYPE(object), scope)) {
    if (nb::object value = nb::steal(PyObject_GetAttr(object, name.ptr()))) {
      add(name.ptr(), value.ptr(), scope, depth - 1);
    } else {
      PyErr_Clear();
      absent_.push_back(name);
    }
  }
}

/// What a class has of its own and of its bases: `super()` sees those that are hidden, too.
void Watched::watch_class(PyTypeObject* type, Scope& scope, int depth) {
  kind_ = Kind::Class;
  copy_ = nb::borrow(type->tp_mro);
  bool was_own = std::exchange(scope.own, scope.own || is_own(as_object(type)));
  if (scope.own) depth = std::min(depth, kDepthOfOwnModules);
  exact_ = scope.whole && !scope.own;
  if (exact_) length_ = count_attributes(type);
  absent_.push_back(nb::borrow(scope.names));
  for (nb::handle name : asked_names(type, scope))
    for (nb::handle base : copy_) watch_base(reinterpret_cast<PyTypeObject*>(base.ptr()), name, scope, depth);
  watch_class_of_class(Py_TYPE(type), scope, depth);
  scope.own = was_own;
  version_ = class_version(type);
}

/// A class that makes classes has attributes for them.
void Watched::watch_class_of_class(PyTypeObject* type, Scope& scope, int depth) {
  if (scope.own || !is_python_class(type) || is_own(as_object(type))) return;
  nb::object module = nb::handle(as_object(type)).attr("__module__");
  if (PyUnicode_Check(module.ptr()) && (text_of(module.ptr()) == "abc" || text_of(module.ptr()) == "enum")) return;
  if (scope.seen.insert(as_object(type)).second) add_part(as_object(type)).watch_class(type, scope, depth);
}

void Watched::watch_base(PyTypeObject* base, nb::handle name, Scope& scope, int depth) {
  PyObject* value = PyDict_GetItem(class_dict(base), name.ptr());
  if (!value) return;
  if (PyFunction_Check(value)) {
    auto same = std::make_unique<Watched>();
    same->kind_ = Kind::Same;
    same->object_ = nb::borrow(value);
    items_.push_back({nb::borrow(name), std::move(same)});
  } else {
    add(name.ptr(), value, scope, depth - 1);
  }
  items_.back().holder = as_object(base);
}

void Watched::add(PyObject* key, PyObject* value, Scope& scope, int depth) {
  items_.push_back({nb::borrow(key), std::make_unique<Watched>(value, scope, depth)});
  moving_ |= !items_.back().value->is_fixed();
}

void Watched::watch_sequence(PyObject* object, Scope& scope, int depth) {
  kind_ = Kind::Sequence;
  // A class of lists may iterate in a way of its own; what lies in it is meant.
  nb::object items = owned(PyList_Check(object) ? PyList_GetSlice(object, 0, PY_SSIZE_T_MAX) : PySequence_List(object));
  if (scope.restorable) copy_ = items;
  length_ = PyList_GET_SIZE(items.ptr());
  for (Py_ssize_t i = 0; i < length_; ++i) {
    nb::object place = nb::int_(static_cast<size_t>(i));
    add(place.ptr(), PyList_GET_ITEM(items.ptr(), i), scope, depth - 1);
  }
}

/// The keys of a dict in their order, which an OrderedDict keeps besides. Its class's own methods are not asked: they
/// may say something else.
static nb::object ordered_keys(PyObject* dict) {
  if (!PyODict_Check(dict)) return owned(PyDict_Keys(dict));
  return owned(
      PySequence_List(nb::borrow(reinterpret_cast<PyObject*>(&PyODict_Type)).attr("__iter__")(nb::handle(dict)).ptr()));
}

/// What lies in a dict, in its order, as a plain one.
static nb::object ordered_copy(PyObject* dict) {
  if (!PyODict_Check(dict)) return owned(PyDict_Copy(dict));
  nb::object copy = owned(PyDict_New());
  for (nb::handle key : ordered_keys(dict))
    if (PyObject* value = PyDict_GetItem(dict, key.ptr())) checked(PyDict_SetItem(copy.ptr(), key.ptr(), value));
  return copy;
}

void Watched::watch_dict(PyObject* object, Scope& scope, int depth) {
  kind_ = Kind::Dict;
  exact_ = ordered_ = true;
  length_ = PyDict_GET_SIZE(object);
  nb::object copy = ordered_copy(object);  // looking at values may run code
  if (scope.restorable) copy_ = copy;
  for (nb::handle key : owned(PyDict_Keys(copy.ptr())))
    if (PyObject* value = PyDict_GetItem(copy.ptr(), key.ptr())) add(key.ptr(), value, scope, depth - 1);
  version_ = PyODict_Check(object) ? 0 : dict_version(object);
}

void Watched::watch_fields(PyObject* object, Scope& scope, int depth) {
  kind_ = Kind::Fields;
  PyObject* dict = attribute_dict(object);
  object_ = nb::borrow(dict);
  exact_ = true;
  if (!dict) return;
  module_ = PyModule_Check(object);
  exact_ = !module_;
  length_ = PyDict_GET_SIZE(dict);
  Py_ssize_t position = 0;
  PyObject *key, *value;
  nb::object copy = owned(PyDict_Copy(dict));  // looking at values may run code
  if (scope.restorable) copy_ = copy;
  while (PyDict_Next(copy.ptr(), &position, &key, &value)) {
    bool named = PySet_Contains(scope.names, key) == 1 || (scope.whole && !scope.own && !module_);
    if (named || (!module_ && is_plain_object(value))) add(key, value, scope, depth - 1);
  }
  if (module_) absent_.push_back(nb::borrow(scope.names));
  version_ = dict_version(dict);
}

/// All its parts: their plain attributes, their tensors, and which parts there are.
void Watched::watch_module(PyObject* object, Scope& scope, int depth) {
  kind_ = Kind::Module;
  for (nb::handle part : nb::handle(object).attr("modules")()) {
    scope.seen.insert(part.ptr());
    watch_module_part(part.ptr(), scope, depth);
  }
}

void Watched::watch_module_part(PyObject* part, Scope& scope, int depth) {
  PyObject* attributes = attribute_dict(part);
  Watched& owner = add_part(as_object(Py_TYPE(part)));
  owner.kind_ = Kind::Owner;
  owner.copy_ = nb::borrow(attributes);
  items_.back().key = nb::borrow(part);
  Watched& own = add_part(attributes);
  own.kind_ = Kind::Dict;
  Py_ssize_t position = 0;
  PyObject *key, *value;
  nb::object copy = owned(PyDict_Copy(attributes));  // looking at values may run code
  if (scope.restorable) own.copy_ = copy;
  own.exact_ = true;
  own.length_ = PyDict_GET_SIZE(copy.ptr());
  while (PyDict_Next(copy.ptr(), &position, &key, &value)) {
    bool asked = PySet_Contains(scope.names, key) == 1 || (scope.whole && !is_of_module(key));
    bool named = asked && !is_neural_module(value);
    if (is_plain_object(value) || PyTuple_Check(value) || named) own.add(key, value, scope, depth - 1);
  }
  own.version_ = dict_version(attributes);
  if (scope.seen.insert(as_object(Py_TYPE(part))).second)
    add_part(as_object(Py_TYPE(part))).watch_class(Py_TYPE(part), scope, depth);
  for (const char* name : {"_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks",
                           "_backward_hooks", "_backward_pre_hooks"})
    if (PyObject* dict = PyDict_GetItemString(attributes, name))
      if (PyDict_Check(dict)) add_part(dict).watch_members(dict, scope, depth);
}

/// The tensors, parts or hooks of a module, which are looked at elsewhere.
void Watched::watch_members(PyObject* dict, Scope& scope, int depth) {
  kind_ = Kind::Dict;
  exact_ = ordered_ = true;  // `parameters()` and its like give them in their order
  length_ = PyDict_GET_SIZE(dict);
  nb::object copy = ordered_copy(dict);
  if (scope.restorable) copy_ = copy;
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(copy.ptr(), &position, &key, &value)) {
    if (is_tensor(value) && has_own_attributes(value)) {
      add(key, value, scope, depth - 1);
      continue;
    }
    auto same = std::make_unique<Watched>();
    same->kind_ = is_tensor(value) ? Kind::BareTensor : Kind::Same;
    same->object_ = nb::borrow(value);
    items_.push_back({nb::borrow(key), std::move(same)});
    if (!is_tensor(value)) continue;
    moving_ = true;
    scope.tensors.insert(tensor_of(value).impl());
  }
  version_ = PyODict_Check(dict) ? 0 : dict_version(dict);
}

// ---- whether they are what they were ----

bool Watched::holds(PyObject* now, std::string* why) {
  if (same_ && is_other(now)) return changed(why, " is another object");
  switch (kind_) {
    case Kind::Anything: return true;
    case Kind::Plain: return is_equal_object(object_.ptr(), now) || changed(why, " == " + repr_of(object_.ptr()));
    case Kind::Same: return !is_other(now) || changed(why, " is another object");
    case Kind::Tensor:  // its other looks are those of the graphs' inputs, where it is one
      if (is_other(now)) return changed(why, " is another object");
      if (tensor_of(now).requires_grad() != requires_grad_) return changed(why, ".requires_grad is another one");
      return items_.empty() || items_[0].value->fields_hold(now, why);
    case Kind::BareTensor:
      if (is_other(now)) return changed(why, " is another object");
      return !has_own_attributes(now) || changed(why, " has attributes");
    case Kind::Function:
      if (is_other(now)) return changed(why, " is another object");
      return items_[0].value->fields_hold(now, why);
    case Kind::Sequence: return sequence_holds(now, why);
    case Kind::Dict: return dict_holds(now, why);
    case Kind::Fields: return fields_hold(now, why);
    case Kind::Slots: return slots_hold(now, why);
    case Kind::Parts: return parts_hold(now, why);
    case Kind::Referents: return referents_hold(now, why);
    case Kind::Weak:
      if (object_.ptr() != now) return changed(why, " is another object");
      if (!items_[0].value->object_ && referent_of(now) == Py_None) return changed(why, "() is no more");
      return items_[0].value->holds(referent_of(now), why);
    case Kind::Contents: return is_equal_object(contents_of(now).ptr(), copy_.ptr()) || changed(why, " has changed");
    case Kind::Class: return class_holds(now, why);
    case Kind::Module: return module_holds(now, why);
    case Kind::Owner:
      return (as_object(Py_TYPE(now)) == object_.ptr() && attribute_dict(now) == copy_.ptr()) ||
             changed(why, " is of another class");
  }
  return false;
}

bool Watched::module_holds(PyObject* now, std::string* why) {
  if (now != object_.ptr()) return changed(why, " is another module");
  for (Item& item : items_)
    if (!item.value->holds(item.key ? item.key.ptr() : item.value->object_.ptr(), why)) return false;
  return true;
}

bool Watched::parts_hold(PyObject* now, std::string* why) {
  if (as_object(Py_TYPE(now)) != copy_.ptr()) return changed(why, " is of another class");
  if (items_.empty() && is_other(now)) return changed(why, " is another object");
  for (Item& item : items_)
    if (!item.value->holds(item.value->kind_ == Kind::Class ? as_object(Py_TYPE(now)) : now, why)) return false;
  return true;
}

bool Watched::referents_hold(PyObject* now, std::string* why) {
  if (items_.empty()) return !is_other(now) || changed(why, " is another object");
  std::vector<nb::object> parts = referents_of(now);
  if (parts.size() != items_.size()) return changed(why, " holds something else");
  for (size_t i = 0; i < parts.size(); ++i)
    if (!items_[i].value->holds(parts[i].ptr(), why)) return changed(why, " holds something else");
  return true;
}

bool Watched::slots_hold(PyObject* now, std::string* why) {
  for (Item& item : items_) {
    nb::object value = nb::steal(PyObject_GetAttr(now, item.key.ptr()));
    if (!value) PyErr_Clear();
    if (!value || !item.value->holds(value.ptr(), why)) return changed(why, "." + key_text(item.key.ptr()));
  }
  for (const nb::object& name : absent_) {
    nb::object value = nb::steal(PyObject_GetAttr(now, name.ptr()));
    if (value) return changed(why, "." + key_text(name.ptr()) + " is there");
    PyErr_Clear();
  }
  return true;
}

bool Watched::sequence_holds(PyObject* now, std::string* why) {
  if (Py_TYPE(now) != Py_TYPE(object_.ptr())) return changed(why, " is of another class");
  bool fast = PyList_Check(now) || PyTuple_Check(now);
  nb::object items = fast ? nb::borrow(now) : owned(PySequence_List(now));
  if (PySequence_Fast_GET_SIZE(items.ptr()) != length_) return changed(why, " has another length");
  for (Py_ssize_t i = 0; i < length_; ++i)
    if (!items_[static_cast<size_t>(i)].value->holds(PySequence_Fast_GET_ITEM(items.ptr(), i), why))
      return changed(why, "[" + std::to_string(i) + "]");
  return true;
}

bool Watched::fields_hold(PyObject* now, std::string* why) {
  PyObject* dict = attribute_dict(now);
  if (dict && object_) return dict_holds(dict, why);
  return (dict ? PyDict_GET_SIZE(dict) : 0) == length_ || changed(why, " has another length");
}

bool Watched::dict_holds(PyObject* now, std::string* why) {
  if (now == object_.ptr() && same_version(version_, now)) {
    if (!moving_) return true;
    for (Item& item : items_)
      if (!item.value->still_holds(why)) return changed(why, "." + key_text(item.key.ptr()));
    return true;
  }
  if (!PyDict_Check(now)) return changed(why, " is no dict");
  if (exact_ && length_ == 0 && PyDict_GET_SIZE(now) == 0) return true;
  if (exact_ && PyDict_GET_SIZE(now) != length_) return changed(why, " has another length");
  bool known = now == object_.ptr();
  for (Item& item : items_) {
    PyObject* value = PyDict_GetItemWithError(now, item.key.ptr());
    if (!value) PyErr_Clear();
    if (!value || !item.value->holds(value, why)) return changed(why, "." + key_text(item.key.ptr()));
    known &= item.value->is_known(value);
  }
  if (module_)
    for (nb::handle name : new_names(now)) return changed(why, "." + key_text(name.ptr()) + " is there");
  if (ordered_ && !order_holds(now)) return changed(why, " has another order");
  version_ = known && !PyODict_Check(now) ? dict_version(now) : 0;
  return true;
}

bool Watched::order_holds(PyObject* now) const {
  nb::object keys = ordered_keys(now);
  for (size_t i = 0; i < items_.size(); ++i)
    if (!is_equal_object(PyList_GET_ITEM(keys.ptr(), static_cast<Py_ssize_t>(i)), items_[i].key.ptr())) return false;
  return true;
}

/// How many places in a class and its bases have one of the names that are watched, which stand together.
size_t Watched::count_in_bases() const {
  size_t count = 0;
  for (size_t i = 0; i < items_.size() && items_[i].key; ++i) {
    if (i > 0 && items_[i].key.ptr() == items_[i - 1].key.ptr()) continue;
    for (nb::handle base : copy_)
      if (PyDict_GetItem(class_dict(reinterpret_cast<PyTypeObject*>(base.ptr())), items_[i].key.ptr())) ++count;
  }
  return count;
}

bool Watched::class_has_changed(PyTypeObject* type, std::string* why) const {
  if (type->tp_mro != copy_.ptr()) return !changed(why, " has other bases");
  size_t of_class_of_class = !items_.empty() && !items_.back().key ? 1 : 0;
  bool same = count_in_bases() + of_class_of_class == items_.size() && (!exact_ || count_attributes(type) == length_);
  return !same && !changed(why, " has other attributes");
}

/// The names that are asked for and were not in the dict of a module.
nb::object Watched::new_names(PyObject* dict) const {
  nb::object known = owned(PySet_New(nullptr)), found = owned(PyList_New(0));
  for (const Item& item : items_)
    if (item.key) checked(PySet_Add(known.ptr(), item.key.ptr()));
  PyObject *name, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict, &position, &name, &value))
    if (PySet_Contains(absent_[0].ptr(), name) == 1 && PySet_Contains(known.ptr(), name) == 0)
      checked(PyList_Append(found.ptr(), name));
  return found;
}

/// The same of a class and its bases.
nb::object Watched::new_names(PyTypeObject* type) const {
  nb::object found = owned(PyList_New(0));
  for (nb::handle base : nb::borrow(type->tp_mro))
    for (nb::handle name : new_names(class_dict(reinterpret_cast<PyTypeObject*>(base.ptr()))))
      checked(PyList_Append(found.ptr(), name.ptr()));
  return found;
}

bool Watched::class_holds(PyObject* now, std::string* why) {
  if (is_other(now)) return changed(why, " is another class");
  auto* type = reinterpret_cast<PyTypeObject*>(now);
  bool unchanged = version_ != 0 && version_ == class_version(type);
  if (unchanged && !moving_) return true;
  if (!unchanged && class_has_changed(type, why)) return false;
  bool known = true;
  for (Item& item : items_) {
    if (!item.key) {
      if (!item.value->holds(as_object(Py_TYPE(type)), why)) return false;
      continue;
    }
    auto* base = reinterpret_cast<PyTypeObject*>(item.holder);
    PyObject* value = unchanged ? nullptr : PyDict_GetItem(class_dict(base), item.key.ptr());
    bool holds = unchanged ? item.value->still_holds(why) : value && item.value->holds(value, why);
    if (!holds) return changed(why, "." + key_text(item.key.ptr()));
    known &= unchanged || item.value->is_known(value);
  }
  if (!unchanged)
    for (nb::handle name : new_names(type)) return changed(why, "." + key_text(name.ptr()) + " is there");
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

/// An attribute that is another one now gets its value back.
void set_if_changed(PyObject* object, PyObject* name, PyObject* value) {
  nb::object now = PyType_Check(object)
                       ? nb::borrow(PyDict_GetItem(class_dict(reinterpret_cast<PyTypeObject*>(object)), name))
                       : nb::steal(PyObject_GetAttr(object, name));
  if (!now) PyErr_Clear();
  if (now.ptr() != value) checked(PyObject_SetAttr(object, name, value));
}

/// An attribute that was not there before goes.
void remove_if_there(PyObject* object, PyObject* name) {
  if (PyObject_HasAttr(object, name) && PyObject_SetAttr(object, name, nullptr) < 0) PyErr_Clear();
}
}  // namespace

void Watched::restore_sequence(PyObject* object) {
  if (PyList_Check(object)) {
    checked(PyList_SetSlice(object, 0, PY_SSIZE_T_MAX, copy_.ptr()));
  } else if (PyAnySet_Check(object) ? !PyFrozenSet_Check(object) : is_deque(object)) {
    call(object, "clear");
    call(object, PyAnySet_Check(object) ? "update" : "extend", copy_.ptr());
  }
}

void Watched::restore_dict(PyObject* dict) {
  if (PyODict_Check(dict)) {
    nb::borrow(reinterpret_cast<PyObject*>(&PyODict_Type)).attr("clear")(nb::handle(dict));
    for (auto [key, value] : nb::borrow<nb::dict>(copy_)) checked(PyODict_SetItem(dict, key.ptr(), value.ptr()));
    return;
  }
  if (!module_) {
    PyDict_Clear(dict);
    if (copy_) checked(PyDict_Update(dict, copy_.ptr()));
    return;
  }
  for (const Item& item : items_)
    checked(PyDict_SetItem(dict, item.key.ptr(), PyDict_GetItem(copy_.ptr(), item.key.ptr())));
  for (nb::handle name : new_names(dict)) checked(PyDict_DelItem(dict, name.ptr()));
}

void Watched::restore() {
  PyObject* object = object_.ptr();
  if (!object || is_cache_of_function(object)) return;
  if (kind_ == Kind::Sequence) restore_sequence(object);
  if (kind_ == Kind::Dict || (kind_ == Kind::Fields && object_)) restore_dict(object);
  if (kind_ == Kind::Contents) put_contents(object, copy_);
  if (kind_ == Kind::Slots || kind_ == Kind::Class) {
    for (const Item& item : items_)
      if (item.key && item.value->object_)
        set_if_changed(item.holder ? item.holder : object, item.key.ptr(), item.value->object_.ptr());
    nb::object added = kind_ == Kind::Class ? new_names(reinterpret_cast<PyTypeObject*>(object)) : nb::cast(absent_);
    for (nb::handle name : added) remove_if_there(object, name.ptr());
  }
  bool has_fields = kind_ == Kind::Parts || kind_ == Kind::Tensor || kind_ == Kind::Function;
  for (const Item& item : items_) {
    if (has_fields && item.value->kind_ == Kind::Fields && !item.value->object_)
      if (PyObject* dict = attribute_dict(object)) PyDict_Clear(dict);
    item.value->restore();
  }
}

}  // namespace umbra::python
