// Functions and modules as owners of what is watched.
#include "graph.h"
#include "tensor_type.h"
#include "watch.h"
#include "watched_objects.h"

namespace umbra::python {

namespace {

constexpr int kDeepest = 400;  // objects inside of objects that are looked at; deeper ones cannot be watched

/// What Python calls of a class without a name in the code.
constexpr const char* kImplied[] = {
    "forward",     "__call__",  "__init__",   "__new__",      "__post_init__", "__getattr__",  "__getattribute__",
    "__setattr__", "__get__",   "__set__",    "__getitem__",  "__setitem__",   "__missing__",  "__class_getitem__",
    "__len__",     "__iter__",  "__next__",   "__reversed__", "__contains__",  "__bool__",     "__enter__",
    "__exit__",    "__hash__",  "__eq__",     "__ne__",       "__lt__",        "__le__",       "__gt__",
    "__ge__",      "__add__",   "__radd__",   "__iadd__",     "__sub__",       "__rsub__",     "__isub__",
    "__mul__",     "__rmul__",  "__imul__",   "__truediv__",  "__rtruediv__",  "__floordiv__", "__rfloordiv__",
    "__mod__",     "__rmod__",  "__pow__",    "__rpow__",     "__matmul__",    "__rmatmul__",  "__and__",
    "__or__",      "__xor__",   "__invert__", "__neg__",      "__pos__",       "__abs__",      "__int__",
    "__float__",   "__index__", "__round__",  "__str__",      "__repr__",      "__format__",   "__instancecheck__"};

bool changed(std::string* why, const std::string& step) {
  if (why) *why = step + *why;
  return false;
}

bool same_version(uint64_t known, PyObject* dict) { return known != 0 && known == dict_version(dict); }

/// The names that a function uses, as names or as texts (`getattr(x, "name")`), and functions inside of it do.
void add_names(PyObject* code, PyObject* names) {
  for (nb::handle name : nb::handle(code).attr("co_names")) checked(PySet_Add(names, name.ptr()));
  for (nb::handle constant : nb::handle(code).attr("co_consts")) {
    if (PyCode_Check(constant.ptr())) add_names(constant.ptr(), names);
    if (PyUnicode_Check(constant.ptr()) && PyUnicode_IsIdentifier(constant.ptr()) == 1)
      checked(PySet_Add(names, constant.ptr()));
  }
}

}  // namespace

Reads::Reads(nb::handle functions, nb::handle owners, nb::handle names, bool restorable, bool whole,
             nb::handle returned) {
  nb::object all = owned(PySet_New(names.ptr()));
  for (const char* implied : kImplied) checked(PySet_Add(all.ptr(), make_text(implied).ptr()));
  for (nb::handle f : functions) add_names(nb::object(f.attr("__code__")).ptr(), all.ptr());
  Watched::Scope scope{{}, all.ptr(), restorable};
  scope.whole = whole;
  scope.returned = returned.ptr();
  for (nb::handle owner : owners) owners_.emplace_back(nb::borrow(owner), Watched(owner.ptr(), scope, kDeepest));
  for (nb::handle f : functions) add(f, scope);
  hidden_ = scope.hidden;
  tensors_ = std::move(scope.tensors);
  seen_ = std::move(scope.seen);
}

void Reads::add(nb::handle function, Watched::Scope& scope) {
  Function f{.function = nb::borrow(function),
             .code = function.attr("__code__"),
             .globals = function.attr("__globals__"),
             .closure = function.attr("__closure__"),
             .defaults = function.attr("__defaults__"),
             .keyword_defaults = function.attr("__kwdefaults__")};
  f.itself = Watched(function.ptr(), scope, kDeepest);
  if (!f.closure.is_none())
    for (nb::handle cell : f.closure) {
      PyObject* content = PyCell_GET(cell.ptr());
      f.cells.push_back(Watched(content ? content : Py_None, scope, kDeepest));
      if (scope.restorable) f.cell_contents.push_back(nb::borrow(content));
    }
  nb::object used = owned(PySet_New(nullptr));
  add_names(f.code.ptr(), used.ptr());
  for (nb::handle name : used) {
    PyObject* value = PyDict_GetItem(f.globals.ptr(), name.ptr());
    if (!value) {
      f.absent.push_back(nb::borrow(name));
      continue;
    }
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
  for (const nb::object& name : f.absent)
    if (PyDict_Contains(f.globals.ptr(), name.ptr()) == 1) return changed(why, key_text(name.ptr()) + " is there");
  f.version = known ? dict_version(f.globals.ptr()) : 0;
  return true;
}

bool Reads::cells_hold(Function& f, std::string* why) {
  for (size_t i = 0; i < f.cells.size(); ++i) {
    PyObject* content = PyCell_GET(PyTuple_GET_ITEM(f.closure.ptr(), static_cast<Py_ssize_t>(i)));
    if (f.cells[i].holds(content ? content : Py_None, why)) continue;
    nb::object names = f.code.attr("co_freevars");
    return changed(why, std::string(text_of(PyTuple_GET_ITEM(names.ptr(), static_cast<Py_ssize_t>(i)))));
  }
  return true;
}

bool Reads::holds(Function& f, std::string* why) {
  auto* function = reinterpret_cast<PyFunctionObject*>(f.function.ptr());
  if (function->func_code != f.code.ptr()) return changed(why, key_text(function->func_name) + ".__code__");
  if (!f.itself.still_holds(why)) return changed(why, key_text(function->func_name));
  if (!cells_hold(f, why)) return false;
  PyObject* defaults = function->func_defaults ? function->func_defaults : Py_None;
  if (defaults != f.defaults.ptr()) return changed(why, key_text(function->func_name) + ".__defaults__");
  for (size_t i = 0; i < f.default_values.size(); ++i)
    if (!f.default_values[i].holds(PyTuple_GET_ITEM(defaults, static_cast<Py_ssize_t>(i)), why))
      return changed(why, key_text(function->func_name) + ".__defaults__");
  if (!f.keyword_values.holds(function->func_kwdefaults ? function->func_kwdefaults : Py_None, why))
    return changed(why, key_text(function->func_name) + ".__kwdefaults__");
  return names_hold(f, why);
}

void Reads::restore_function(Function& f) {
  f.itself.restore();
  for (size_t i = 0; i < f.cells.size(); ++i) {
    checked(PyCell_Set(PyTuple_GET_ITEM(f.closure.ptr(), static_cast<Py_ssize_t>(i)), f.cell_contents[i].ptr()));
    f.cells[i].restore();
  }
  for (size_t i = 0; i < f.names.size(); ++i) {
    PyObject* name = f.names[i].first.ptr();
    if (PyDict_GetItem(f.globals.ptr(), name) != f.global_values[i].ptr())
      checked(PyDict_SetItem(f.globals.ptr(), name, f.global_values[i].ptr()));
    f.names[i].second.restore();
  }
  for (const nb::object& name : f.absent)
    if (PyDict_Contains(f.globals.ptr(), name.ptr()) == 1) checked(PyDict_DelItem(f.globals.ptr(), name.ptr()));
  for (Watched& value : f.default_values) value.restore();
}

void Reads::restore() {
  for (auto& [owner, watched] : owners_) watched.restore();
  for (const auto& f : functions_) restore_function(*f);
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
  if (!key_ || !is_equal_object(key.ptr(), key_.ptr())) key_ = key;
  tensors_ = read_values(found[1]);
  for (nb::handle part : modules_()) {
    PyObject* attributes = attribute_dict(part.ptr());
    dicts_.emplace_back(nb::borrow(attributes), dict_version(attributes));
    for (const char* name : {"_parameters", "_buffers", "_modules"})
      if (PyObject* dict = PyDict_GetItemString(attributes, name); dict && PyDict_Check(dict))
        dicts_.emplace_back(nb::borrow(dict), dict_version(dict));
  }
}

void bind_watch(nb::module_& m) {
  nb::class_<Reads>(m, "_Reads")
      .def(nb::init<nb::handle, nb::handle, nb::handle, bool, bool, nb::handle>(), nb::arg("functions"),
           nb::arg("owners"), nb::arg("names"), nb::arg("restorable") = false, nb::arg("whole") = false,
           nb::arg("returned") = nb::make_tuple())
      .def("broken",
           [](Reads& reads) -> nb::object {
             std::string why;
             return reads.hold(&why) ? nb::none() : nb::object(make_text(why));
           })
      .def("restore", &Reads::restore)
      .def("saw", [](const Reads& reads, nb::handle object) { return reads.saw(object.ptr()); })
      .def("have", [](const Reads& reads, nb::handle tensor) { return reads.have(tensor_of(tensor.ptr())); })
      .def_prop_ro("hidden", [](const Reads& reads) { return reads.hidden(); });
  m.def("_has_own_attributes", [](nb::handle tensor) { return has_own_attributes(tensor.ptr()); });
  nb::class_<ModuleState>(m, "_ModuleState").def(nb::init<nb::object, nb::object>());
}

}  // namespace umbra::python
