// Values between Python and TorchScript programs.
#include <algorithm>

#include "jit.h"
#include "lock.h"
#include "tensor_type.h"
#include "umbra/jit/interpreter.h"
#include "values.h"

namespace umbra::python {

using jit::TypeKind;
using jit::TypePtr;

namespace {

nb::dict& python_classes() {
  static auto* classes = new nb::dict();
  return *classes;
}
nb::object& wrapper() {
  static auto* function = new nb::object(nb::none());
  return *function;
}

[[noreturn]] void cannot_cast(PyObject* object, const TypePtr& type) {
  if (type->is(TypeKind::Tensor))
    fail("Unable to cast ", nb::cast<std::string>(nb::str(nb::handle(object))), " to Tensor");
  fail("Unable to cast Python instance of type ", repr_of(reinterpret_cast<PyObject*>(Py_TYPE(object))), " to ",
       type->annotation());
}

Value read_list(PyObject* object, const TypePtr& type) {
  std::vector<Value> items;
  nb::object fast = owned(PySequence_Fast(object, "expected a list"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.ptr()); ++i)
    items.push_back(to_jit(PySequence_Fast_GET_ITEM(fast.ptr(), i), type->element()));
  return jit::make_list(type->element(), std::move(items));
}

Value read_dict(PyObject* object, const TypePtr& type) {
  auto dict = make_counted<jit::DictObject>(type->element(0), type->element(1));
  for (auto [k, v] : nb::borrow<nb::dict>(object))
    dict->items.emplace_back(to_jit(k.ptr(), type->element(0)), to_jit(v.ptr(), type->element(1)));
  return Value::object(dict);
}

Value read_tuple(PyObject* object, const TypePtr& type) {
  if (PyTuple_GET_SIZE(object) != static_cast<Py_ssize_t>(type->elements.size()))
    fail("Object ", repr_of(object), " had a different number of elements than type ", type->annotation());
  std::vector<Value> items;
  for (size_t i = 0; i < type->elements.size(); ++i)
    items.push_back(to_jit(PyTuple_GET_ITEM(object, static_cast<Py_ssize_t>(i)), type->elements[i]));
  return Value(std::move(items));
}

Value read_enum(PyObject* object, const TypePtr& type) {
  if (!PyObject_HasAttrString(object, "name") || !PyObject_HasAttrString(object, "value")) cannot_cast(object, type);
  std::string name = nb::cast<std::string>(nb::handle(object).attr("name"));
  for (size_t i = 0; i < type->cls->constants.size(); ++i)
    if (type->cls->constants[i].first == name) return Value::object(make_counted<jit::EnumValue>(type->cls, i));
  cannot_cast(object, type);
}

/// The program's class that an object's own class was compiled to, or null.
jit::ClassPtr compiled_class_of(PyObject* object) {
  nb::object classes = nb::module_::import_("umbra.jit._compile").attr("_classes");
  nb::object found = classes.attr("get")(nb::handle(object).type());
  return found.is_none() ? nullptr : nb::cast<JitType>(found).type->cls;
}

Value read_instance(PyObject* object, const TypePtr& type) {
  JitObject held;
  bool found = nb::try_cast<JitObject>(nb::handle(object), held);
  if (!found && PyObject_HasAttrString(object, "_c"))
    found = nb::try_cast<JitObject>(owned(PyObject_GetAttrString(object, "_c")), held);
  if (found) {
    bool fits = type->cls->is_module && !type->cls->is_interface;
    const jit::ClassType& own = *held.instance().cls;
    if (std::string why = type->cls->is_interface ? jit::why_not_interface(own, *type->cls) : ""; !why.empty())
      fail("Object of type ", own.name, " is not compatible with interface ", type->cls->name, "\n", why);
    if (!fits && !jit::is_subtype(jit::class_type(held.instance().cls), type)) cannot_cast(object, type);
    return held.value;
  }
  if (type->cls->is_module) cannot_cast(object, type);
  jit::ClassPtr cls = type->cls->is_interface ? compiled_class_of(object) : type->cls;
  bool fits = cls && python_classes().contains(cls->name.c_str()) &&
              nb::handle(object).type().is(python_classes()[cls->name.c_str()]) &&
              jit::is_subtype(jit::class_type(cls), type);
  if (!fits) cannot_cast(object, type);
  auto made = make_counted<jit::Instance>(cls);
  for (size_t i = 0; i < cls->attributes.size(); ++i) {
    const jit::Attribute& a = cls->attributes[i];
    made->slots[i] = to_jit(nb::handle(object).attr(a.name.c_str()).ptr(), a.type);
  }
  return Value::object(made);
}

/// The common type of values that a container holds, with the words of PyTorch's tracer where there is none.
template <class Items> TypePtr common_type(const Items& items, const char* container) {
  if (items.empty())
    fail(std::string_view(container) == "List" ? "List trace inputs must have elements"
                                               : "Dictionary inputs must have entries");
  TypePtr type;
  for (const Value& v : items) {
    TypePtr here = jit::type_of(v);
    TypePtr both = type ? jit::unify(type, here) : here;
    if (!both)
      fail(container, " inputs to traced functions must have consistent element type. Found ", type->annotation(),
           " and ", here->annotation());
    type = both;
  }
  return type;
}

bool is_own_type(PyObject* object, const TypePtr& type);

bool all_own(PyObject* sequence, const TypePtr& element) {
  nb::object fast = owned(PySequence_Fast(sequence, "expected a sequence"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.ptr()); ++i)
    if (!is_own_type(PySequence_Fast_GET_ITEM(fast.ptr(), i), element)) return false;
  return true;
}

/// Whether an object is of a type by itself, not only after a conversion.
bool is_own_type(PyObject* object, const TypePtr& type) {
  bool is_int = PyLong_Check(object) && !PyBool_Check(object);
  switch (type->kind) {
    case TypeKind::Any: return true;
    case TypeKind::None: return object == Py_None;
    case TypeKind::Optional: return object == Py_None || is_own_type(object, type->element());
    case TypeKind::Union: return std::ranges::any_of(type->elements, [&](auto& t) { return is_own_type(object, t); });
    case TypeKind::Tensor: return is_tensor(object);
    case TypeKind::Bool: return PyBool_Check(object);
    case TypeKind::Int: return is_int;
    case TypeKind::Float: return PyFloat_Check(object);
    case TypeKind::Complex: return PyComplex_Check(object);
    case TypeKind::Number: return is_int || PyFloat_Check(object) || PyComplex_Check(object);
    case TypeKind::String: return PyUnicode_Check(object);
    case TypeKind::List: return PyList_Check(object) && all_own(object, type->element());
    case TypeKind::Dict:
      return PyDict_Check(object) && all_own(owned(PyDict_Keys(object)).ptr(), type->element(0)) &&
             all_own(owned(PyDict_Values(object)).ptr(), type->element(1));
    case TypeKind::Tuple: {
      if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != static_cast<Py_ssize_t>(type->elements.size()))
        return false;
      for (size_t i = 0; i < type->elements.size(); ++i)
        if (!is_own_type(PyTuple_GET_ITEM(object, static_cast<Py_ssize_t>(i)), type->elements[i])) return false;
      return true;
    }
    default: break;
  }
  try {  // of these nothing is converted
    to_jit(object, type);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// A value without a declared type.
Value infer(PyObject* object) {
  if (PyTuple_Check(object)) {
    std::vector<Value> items;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) items.push_back(infer(PyTuple_GET_ITEM(object, i)));
    return Value(std::move(items));
  }
  if (PyList_Check(object)) {
    std::vector<Value> items;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(object); ++i) items.push_back(infer(PyList_GET_ITEM(object, i)));
    TypePtr element = common_type(items, "List");
    return jit::make_list(element, std::move(items));
  }
  if (PyDict_Check(object)) {
    std::vector<Value> keys, values;
    for (auto [k, v] : nb::borrow<nb::dict>(object)) {
      keys.push_back(infer(k.ptr()));
      values.push_back(infer(v.ptr()));
    }
    auto dict = make_counted<jit::DictObject>(common_type(keys, "Dictionary"), common_type(values, "Dictionary"));
    for (size_t i = 0; i < keys.size(); ++i) dict->items.emplace_back(keys[i], values[i]);
    return Value::object(dict);
  }
  JitObject held;
  if (nb::try_cast<JitObject>(nb::handle(object), held)) return held.value;
  if (!is_tensor(object) && PyObject_HasAttrString(object, "_c")) {
    nb::object inner = owned(PyObject_GetAttrString(object, "_c"));
    if (nb::try_cast<JitObject>(inner, held)) return held.value;
  }
  Value value = read_any(object);
  switch (value.tag()) {
    case Value::Tag::DType: return Value(jit::number_of(value.to_dtype()));
    case Value::Tag::Layout: return Value(static_cast<int64_t>(value.to_layout()));
    case Value::Tag::MemoryFormat: return Value(static_cast<int64_t>(value.to_memory_format()));
    case Value::Tag::Object:
      fail(
          "Only tensors and (possibly nested) tuples of tensors, lists, or dicts are supported as inputs or outputs of "
          "traced functions, but instead got value of type ",
          short_type_name(Py_TYPE(object)), ".");
    default: return value;
  }
}

Value read_union(PyObject* object, const TypePtr& type) {
  for (const TypePtr& t : type->elements)
    if (is_own_type(object, t)) return to_jit(object, t);
  std::string found;
  try {
    found = jit::type_of(infer(object))->annotation();
  } catch (const Error&) {
    cannot_cast(object, type);
  }
  fail("Expected a member of ", type->annotation(), " but instead found type ", found);
}

}  // namespace

/// An object of a class of Python's with the attributes that a program's object has.
static nb::object object_of_class(nb::handle cls, jit::Instance& instance) {
  nb::object made = cls.attr("__new__")(cls);
  for (const jit::Attribute& a : instance.cls->attributes)
    nb::setattr(made, a.name.c_str(), from_jit(load_shared(instance.attribute(a.name)), a.type));
  return made;
}

namespace {

bool is_numpy(PyObject* object, std::string_view type) {
  return std::string_view(type_name(object)).starts_with(concat("numpy.", type));
}
bool is_int(PyObject* object) { return PyLong_Check(object) && !PyBool_Check(object); }
bool is_one_element(PyObject* object) { return is_tensor(object) && tensor_of(object).numel() == 1; }

/// What stands for a value of a type that is no container; nothing where the object does not fit. `bool`, `int` and
/// `float` take each other's values as pybind's casts do.
using MaybeValue = std::optional<Value>;

MaybeValue bool_value(PyObject* object) {
  if (PyBool_Check(object)) return Value(object == Py_True);
  if (is_numpy(object, "bool") || is_int(object) || PyFloat_Check(object)) return Value(PyObject_IsTrue(object) == 1);
  if (is_one_element(object)) return Value(tensor_of(object).item().to_bool());
  return {};
}

MaybeValue int_value(PyObject* object) {
  if (PyBool_Check(object)) return Value(static_cast<int64_t>(object == Py_True));
  if (is_int(object) || Py_TYPE(object) == g_dtype_type || Py_TYPE(object) == g_memory_format_type)
    return infer(object);
  if (Layout layout; read_layout(object, layout)) return infer(object);
  if (is_one_element(object)) return Value(tensor_of(object).item().to_int());
  if (is_numpy(object, "int"))
    return Value(static_cast<int64_t>(PyLong_AsLongLong(owned(PyNumber_Index(object)).ptr())));
  return {};
}

MaybeValue float_value(PyObject* object) {
  if (PyFloat_Check(object)) return Value(PyFloat_AS_DOUBLE(object));
  if (PyLong_Check(object)) return Value(static_cast<double>(PyLong_AsLongLong(object)));
  if (is_numpy(object, "float")) return Value(PyFloat_AsDouble(object));
  if (is_one_element(object)) return Value(tensor_of(object).item().to_double());
  return {};
}

MaybeValue plain_value(PyObject* object, TypeKind kind) {
  Scalar number;
  Device device;
  switch (kind) {
    case TypeKind::Any:
    case TypeKind::Generator: return infer(object);
    case TypeKind::None: return object == Py_None ? MaybeValue(Value()) : MaybeValue();
    case TypeKind::Tensor:
      if (is_tensor(object)) return Value(tensor_of(object));
      return object == Py_None ? MaybeValue(Value()) : MaybeValue();  // a tensor that is not there, as PyTorch has it
    case TypeKind::Bool: return bool_value(object);
    case TypeKind::Int: return int_value(object);
    case TypeKind::Float: return float_value(object);
    case TypeKind::Number:
      return !PyBool_Check(object) && read_scalar(object, number) ? MaybeValue(Value(number)) : MaybeValue();
    case TypeKind::Complex: return read_scalar(object, number) ? MaybeValue(Value(number.to_complex())) : MaybeValue();
    case TypeKind::String:
      return PyUnicode_Check(object) ? MaybeValue(Value(std::string(text_of(object)))) : MaybeValue();
    case TypeKind::Device: return read_device(object, device) ? MaybeValue(Value(device)) : MaybeValue();
    default: return {};
  }
}

MaybeValue container_value(PyObject* object, const TypePtr& type) {
  switch (type->kind) {
    case TypeKind::List:
      if (type->broadcast > 0 && is_own_type(object, type->element()))  // one element stands for all
        return jit::make_list(
            type->element(), std::vector<Value>(static_cast<size_t>(type->broadcast), to_jit(object, type->element())));
      if (PyList_Check(object) || PyTuple_Check(object) || PyRange_Check(object)) return read_list(object, type);
      if (ScriptList list; nb::try_cast<ScriptList>(nb::handle(object), list) && jit::has_type(list.value, *type))
        return list.value;
      return {};
    case TypeKind::Tuple:
      if (PyTuple_Check(object)) return read_tuple(object, type);
      if (PyList_Check(object)) return read_tuple(owned(PyList_AsTuple(object)).ptr(), type);
      return {};
    case TypeKind::Dict:
      if (PyDict_Check(object)) return read_dict(object, type);
      if (ScriptDict dict; nb::try_cast<ScriptDict>(nb::handle(object), dict) && jit::has_type(dict.value, *type))
        return dict.value;
      return {};
    default: return {};
  }
}

}  // namespace

Value to_jit(PyObject* object, const TypePtr& type) {
  if (!type) return infer(object);
  switch (type->kind) {
    case TypeKind::Optional: return object == Py_None ? Value() : to_jit(object, type->element());
    case TypeKind::Future: return to_jit(object, type->element());
    case TypeKind::Union: return read_union(object, type);
    case TypeKind::Enum: return read_enum(object, type);
    case TypeKind::Class: return read_instance(object, type);
    case TypeKind::List:
    case TypeKind::Tuple:
    case TypeKind::Dict:
      if (MaybeValue value = container_value(object, type)) return *std::move(value);
      break;
    default:
      if (MaybeValue value = plain_value(object, type->kind)) return *std::move(value);
      break;
  }
  cannot_cast(object, type);
}

nb::object from_jit(const Value& value, const TypePtr& type) {
  TypePtr inner = type && (type->is(TypeKind::Optional) || type->is(TypeKind::Future)) ? type->element() : type;
  if (value.is_list()) {
    bool typed = inner && inner->is(TypeKind::Tuple) && inner->elements.size() == value.list().size();
    nb::list items;
    for (size_t i = 0; i < value.list().size(); ++i)
      items.append(from_jit(value.list()[i], typed ? inner->elements[i] : nullptr));
    if (typed && !inner->name.empty()) {
      nb::object cls = python_classes().contains(inner->name.c_str())
                           ? nb::borrow(python_classes()[inner->name.c_str()])
                           : nb::object(nb::module_::import_("collections")
                                            .attr("namedtuple")(inner->name.substr(inner->name.rfind('.') + 1),
                                                                nb::cast(inner->fields)));
      return cls(*items);
    }
    return nb::tuple(items);
  }
  if (auto* list = jit::object_as<jit::ListObject>(value)) {
    nb::list out;
    for (const Value& v : list->items) out.append(from_jit(v, list->element));
    return out;
  }
  if (auto* dict = jit::object_as<jit::DictObject>(value)) {
    nb::dict out;
    for (auto& [k, v] : dict->items) out[from_jit(k, dict->key)] = from_jit(v, dict->value);
    return out;
  }
  if (auto* member = jit::object_as<jit::EnumValue>(value)) {
    if (!python_classes().contains(member->cls->name.c_str()))
      fail("the enum ", member->cls->name, " is not known in Python");
    return python_classes()[member->cls->name.c_str()][member->cls->constants[member->member].first.c_str()];
  }
  if (auto* instance = jit::object_as<jit::Instance>(value)) {
    const char* name = instance->cls->name.c_str();
    if (!instance->cls->is_module && python_classes().contains(name))
      return object_of_class(python_classes()[name], *instance);
    nb::object object = nb::cast(JitObject{value});
    return wrapper().is_none() ? object : wrapper()(object);
  }
  return nb::steal(wrap(value));
}

/// The arguments of a call, after `skipped` that are there already: a method's `self`, which counts in what errors say,
/// as in schemas.
std::vector<Value> read_arguments(const jit::Function& function, size_t skipped, nb::args args, nb::kwargs kwargs) {
  const auto& parameters = function.parameters;
  std::vector<Value> out;
  std::string name = function.name.substr(function.name.rfind('.') + 1);
  auto read = [&](nb::handle object, size_t i) {
    try {
      out.push_back(to_jit(object.ptr(), parameters[i].type));
    } catch (const Error& error) {
      const jit::Type& wanted = *parameters[i].type;
      if (wanted.is(TypeKind::Any)) fail("Tracer cannot infer type of ", repr_of(object.ptr()), "\n:", error.what());
      bool inferred = parameters[i].inferred;
      fail(name, "() Expected a value of type '", wanted.is(TypeKind::Enum) ? wanted.text() : wanted.annotation(),
           inferred ? " (inferred)" : "", "' for argument '", parameters[i].name, "' but instead found type '",
           short_type_name(Py_TYPE(object.ptr())), "'.\n",
           inferred ? concat("Inferred '", parameters[i].name,
                             "' to be of type 'Tensor' because it was not annotated with an explicit type.\n")
                    : "",
           "Position: ", i, "\nValue: ", repr_of(object.ptr()), "\nDeclaration: ", function.schema(),
           "\nCast error details: ", error.what());
    }
  };
  if (args.size() + skipped > parameters.size())
    fail(name, "() expected at most ", parameters.size(), " argument(s) but received ", args.size() + skipped,
         " argument(s). Declaration: ", function.schema());
  for (size_t i = 0; i < args.size(); ++i) read(args[i], i + skipped);
  size_t used = 0;
  for (size_t i = args.size() + skipped; i < parameters.size(); ++i) {
    if (kwargs.contains(parameters[i].name.c_str())) {
      read(kwargs[parameters[i].name.c_str()], i);
      ++used;
    } else if (parameters[i].default_value) {
      out.push_back(*parameters[i].default_value);
    } else {
      fail(name, "() is missing value for argument '", parameters[i].name, "'. Declaration: ", function.schema());
    }
  }
  if (used != kwargs.size())
    for (auto [k, v] : kwargs) {
      std::string key = nb::cast<std::string>(k);
      bool known = false, given = false;
      for (size_t i = skipped; i < parameters.size(); ++i) {
        known |= parameters[i].name == key;
        given |= parameters[i].name == key && i < args.size() + skipped;
      }
      if (given)
        fail("Argument '", key, "' specified both as positional and keyword argument. Schema: ", function.schema());
      if (!known) fail("Unknown keyword argument '", key, "' for operator '", name, "'. Schema: ", function.schema());
    }
  return out;
}

namespace {

/// An exception of Python's as the text of an error of a program: what it is, and the functions that it came through.
std::string text_of_exception(nb::python_error& error) {
  std::string out = concat(short_type_name(reinterpret_cast<PyTypeObject*>(error.type().ptr())), ": ",
                           nb::cast<std::string>(nb::str(error.value())), "\n\nAt:\n");
  nb::object place = nb::borrow(error.traceback());
  while (place.is_valid() && !place.attr("tb_next").is_none()) place = place.attr("tb_next");
  nb::object frame = place.is_valid() ? nb::object(place.attr("tb_frame")) : nb::object(nb::none());
  for (nb::object line = place.attr("tb_lineno"); !frame.is_none(); frame = frame.attr("f_back")) {
    nb::object code = frame.attr("f_code");
    out += concat("  ", nb::cast<std::string>(code.attr("co_filename")), "(", nb::cast<int>(line),
                  "): ", nb::cast<std::string>(code.attr("co_name")), "\n");
    if (nb::object next = frame.attr("f_back"); !next.is_none()) line = next.attr("f_lineno");
  }
  return out;
}

Value call_python(const Value& callable, const TypePtr& type, std::vector<Value> arguments) {
  WithLock lock;
  auto* function = jit::object_as<PythonObject>(callable);
  check(function != nullptr, "the program calls a Python function that is not there");
  nb::list args;
  for (const Value& v : arguments) args.append(from_jit(v));
  nb::object result;
  try {
    result = nb::handle(function->get())(*args);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;  // an interrupt
    fail(text_of_exception(error));
  }
  try {
    return to_jit(result.ptr(), type);
  } catch (const Error& error) {
    fail(" expected value of type ", type ? type->text() : "Any", " for return value but instead got value of type ",
         short_type_name(Py_TYPE(result.ptr())), ".\nValue: ", repr_of(result.ptr()),
         "\nCast error details: ", error.what(), "\n");
  }
}

}  // namespace

void bind_jit_values(nb::module_& m) {
  jit::set_print([](const std::string& text) {
    WithLock lock;
    nb::module_::import_("sys").attr("stdout").attr("write")(text);
  });
  jit::set_python_call(call_python);
  m.def("_jit_register_class", [](const std::string& name, nb::object cls) { python_classes()[name.c_str()] = cls; });
  m.def("_jit_set_wrapper", [](nb::object function) { wrapper() = function; });
}

}  // namespace umbra::python
