#include "functions.h"

#include <map>

#include "construct.h"
#include "old_signatures.h"
#include "signatures.h"
#include "tensor_type.h"
#include "torch_function.h"
#include "umbra/core/warning.h"
#include "values.h"

namespace umbra::python {

/// What a function object knows: its name, and its overloads in the order in which they are tried.
struct Overloads {
  std::string operator_name;  // "aten::add"
  std::string name;           // "add"
  Reading reading;
  std::vector<const Matcher*> plain, out;
  size_t known = 0;       // how many overloads the registry had when these were read
  size_t frame_size = 0;  // the largest of their frames
  PyObject* self = nullptr;
  const char* member = "";  // the member of Tensor as which it is offered
};

namespace {

PyTypeObject* g_function_type;
PyTypeObject* g_method_type;

PyFunction* cast(PyObject* self) { return reinterpret_cast<PyFunction*>(self); }
Overloads& overloads_of(PyObject* self) { return *cast(self)->overloads; }

bool is_scalar_form(const Operator& op) {
  for (const SchemaArgument& a : op.schema().arguments)
    if (a.name == "other" && a.type.base == SchemaType::Base::Scalar) return true;
  return false;
}

// Python's functions show no overload that another one covers: numbers go to add.Tensor as wrapped tensors. Nor do they
// show a draw that is there as the functional form of a write (bernoulli_.Tensor), beside others that are not.
bool is_hidden(const Operator& op) {
  static const Operator* const kDraw = find_operator("aten::bernoulli.Tensor");
  return &op == kDraw || (Matcher::of(op).numbers_as_tensors() && is_scalar_form(op));
}

/// Variants that are generated for functionalisation are torch.ops' alone, but for those of copies of views.
bool is_shown(std::string_view name) { return name.ends_with("_copy") || name.ends_with("slice_scatter"); }

void load(Overloads& o) {
  std::vector<const Operator*> ops = operator_overloads(o.operator_name);
  o.known = ops.size();
  o.plain.clear();
  o.out.clear();
  for (const Operator* op : ops) {
    if (o.reading != Reading::Operator && is_hidden(*op)) continue;
    const auto& arguments = op->schema().arguments;
    bool of_self = !arguments.empty() && arguments[0].type.is_tensor() && op->schema().find("self") >= 0;
    if (o.reading == Reading::Method && (op->has_out() || !of_self)) continue;
    o.frame_size = std::max(o.frame_size, op->frame_size());
    bool is_out = o.reading != Reading::Operator && op->has_out();
    if (is_out && op->has_tag(Tag::Generated) && !is_shown(op->schema().name)) continue;
    (is_out ? o.out : o.plain).push_back(&Matcher::of(*op));
  }
  if (o.reading != Reading::Operator) {
    sort_overloads(o.plain);
    sort_overloads(o.out);
  }
}

/// Offers a call to classes and modes.
bool offer(const Overloads& o, const CallArguments& call, PyObject** result) {
  if (!*o.member) return call_torch_function(o.self, call, result);
  nb::object member = owned(PyObject_GetAttrString(reinterpret_cast<PyObject*>(g_tensor_type), o.member));
  return call_torch_function(member.ptr(), call, result);
}

/// `out=` of a function that has no such argument, be it None.
bool names_missing_out(const Overloads& o, const CallArguments& call) {
  if (!call.keywords || !o.out.empty() || o.reading == Reading::Operator) return false;
  for (size_t k = 0; k < call.keyword_count(); ++k)
    if (text_of(call.keyword(k)) == "out") return true;
  return false;
}

bool wants_out(const CallArguments& call) {
  for (size_t k = 0; k < call.keyword_count(); ++k)
    if (call.keyword_value(k) != Py_None && text_of(call.keyword(k)) == "out") return true;
  return false;
}

// A factory's requires_grad=True: no argument of the operator.
void set_requires_grad(const CallArguments& call, Value& result) {
  if (!result.is_tensor()) return;
  for (size_t k = 0; k < call.keyword_count(); ++k)
    if (text_of(call.keyword(k)) == "requires_grad" && PyObject_IsTrue(call.keyword_value(k)) == 1)
      require_gradient(result.tensor());
}

/// zeros(2, out=x, dtype=d): the options of a factory have to be those of the tensor that is written.
void check_out_options(const CallArguments& call, const Tensor& out) {
  for (size_t k = 0; k < call.keyword_count(); ++k) {
    PyObject* value = call.keyword_value(k);
    std::string_view name = text_of(call.keyword(k));
    DType dtype;
    Device device;
    Layout layout;
    if (value == Py_None) continue;
    if (name == "dtype" && read_dtype(value, dtype))
      check(dtype == out.dtype(), "dtype ", kernel_name(dtype), " does not match dtype of out parameter (",
            kernel_name(out.dtype()), ")");
    if (name == "layout" && read_layout(value, layout))
      check(layout == out.layout(), "layout ", layout, " does not match layout of out parameter (", out.layout(), ")");
    if (name == "device" && read_device(value, device))
      check(device.type == out.device().type, "device type ", device.type,
            " does not match device type of out parameter (", out.device().type, ")");
  }
}

/// A function that writes in place gives back the very object it was given: a list, whose operator returns nothing, or
/// a tensor for which a mode has put a stand-in.
PyObject* written_argument(const Operator& op, const CallArguments& call) {
  if (!op.is_inplace()) return nullptr;
  if (call.positional > 0) return Py_NewRef(call.values[0]);
  for (size_t k = 0; k < call.keyword_count(); ++k)
    if (text_of(call.keyword(k)) == op.schema().arguments[0].name) return Py_NewRef(call.keyword_value(k));
  return nullptr;
}

PyObject* run(const Overloads& o, const Matcher& matcher, const CallArguments& call, Value* frame) {
  const Operator& op = matcher.op();
  if (o.reading == Reading::Operator) {
    call_operator(op, frame);
    return wrap_results(op, frame);
  }
  if (o.operator_name == "aten::range")  // it takes the end in, as no range of Python's does
    warn("torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with ",
         "Python's range builtin. Instead, use torch.arange, which produces values in [start, end).");
  matcher.fill_factory_options(frame);
  if (matcher.is_factory_out()) check_out_options(call, frame[op.argument_count() - 1].tensor_ref());
  call_operator(op, frame);
  if (PyObject* written = written_argument(op, call)) return written;
  if (call.keywords) set_requires_grad(call, frame[0]);
  return wrap_function_results(op, frame);
}

/// Tries the overloads in turn. Null without an error where none fits.
PyObject* try_overloads(Overloads& o, const CallArguments& call) {
  if (names_missing_out(o, call)) return nullptr;
  const std::vector<const Matcher*>* candidates = &o.plain;
  if (call.keywords && !o.out.empty() && wants_out(call)) candidates = &o.out;
  Scratch scratch;
  Frame frame(o.frame_size);
  Mismatch mismatch;
  for (const Matcher* matcher : *candidates) {
    scratch.reset();
    if (!matcher->read(call, o.reading, frame.data(), scratch, mismatch)) continue;
    PyObject* result = nullptr;
    bool overridable = o.reading != Reading::Operator && (scratch.saw_subclass || torch_function_modes_active());
    if (overridable && offer(o, call, &result)) return result;
    return run(o, *matcher, call, frame.data());
  }
  return nullptr;
}

[[noreturn]] void no_match(Overloads& o, const CallArguments& call) {
  const auto& candidates = wants_out(call) && !o.out.empty() ? o.out : o.plain;
  if (o.reading == Reading::Operator) fail_no_schema(o.name, candidates, call);
  fail_no_signature(o.name, o.reading, o.plain, o.out, call);
}

PyObject* call_overloads(Overloads& o, const CallArguments& call) {
  if (o.plain.empty() && o.out.empty()) load(o);
  PyObject* result = try_overloads(o, call);
  if (result) return result;
  if (operator_overloads(o.operator_name).size() != o.known) {
    load(o);
    if ((result = try_overloads(o, call))) return result;
  }
  if (std::optional<RewrittenCall> named = with_named_factors(o.name, o.reading, call))
    if ((result = try_overloads(o, named->arguments()))) {
      warn_of_unnamed_factors(o.name);
      return result;
    }
  if (o.reading != Reading::Operator && offer(o, call, &result)) return result;
  no_match(o, call);
}

PyObject* vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* keywords) {
  return guarded([&] {
    CallArguments call{args, static_cast<size_t>(PyVectorcall_NARGS(nargsf)), keywords};
    Overloads& o = overloads_of(self);
    if (o.reading == Reading::Method && (call.positional == 0 || !is_tensor(args[0])))
      fail<TypeError>("descriptor '", o.name, "' for 'TensorBase' objects doesn't apply to a '",
                      call.positional ? short_type_name(Py_TYPE(args[0])) : "missing", "' object");
    return call_overloads(o, call);
  });
}

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete cast(self)->overloads;
  PyObject_Free(self);
  Py_DECREF(type);
}

PyObject* repr(PyObject* self) {
  return guarded([&] {
    const Overloads& o = overloads_of(self);
    std::string text = o.reading == Reading::Method ? "<method '" + o.name + "' of 'torch._C.TensorBase' objects>"
                                                    : "<built-in method " + o.name + " of type object>";
    return make_text(text).release().ptr();
  });
}
PyObject* get_name(PyObject* self, void*) {
  return guarded([&] { return make_text(overloads_of(self).name).release().ptr(); });
}
PyObject* get_qualname(PyObject* self, void*) {
  return guarded([&] {
    const Overloads& o = overloads_of(self);
    return make_text(o.reading == Reading::Method ? "Tensor." + o.name : o.name).release().ptr();
  });
}
PyObject* get_doc(PyObject* self, void*) {
  return guarded([&] {
    const std::string& name = overloads_of(self).operator_name;
    std::string text, schemas;
    if (name.starts_with("aten::"))
      text = nb::cast<std::string>(nb::module_::import_("umbra._operator_docs").attr("described")(name.substr(6)));
    for (const Operator* op : operator_overloads(name))
      schemas += (schemas.empty() ? "" : "\n") + to_string(op->schema());
    return make_text(text.empty() ? schemas : text + "\n\n" + schemas).release().ptr();
  });
}
PyObject* get_module(PyObject*, void*) { return PyUnicode_InternFromString("umbra"); }

// A method found in its class and called through the instance: what a Python function does.
PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
  if (!object || object == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

// Pickled and copied by name.
PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&] {
    const Overloads& o = overloads_of(self);
    nb::object find = nb::module_::import_("umbra._ops").attr("_find_function");
    nb::object name = make_text(o.operator_name);
    return checked(Py_BuildValue("(O(Oi))", find.ptr(), name.ptr(), static_cast<int>(o.reading)));
  });
}

PyObject* same(PyObject* self, PyObject*) { return Py_NewRef(self); }

PyGetSetDef g_properties[] = {
    {"__name__", get_name, nullptr, nullptr, nullptr}, {"__qualname__", get_qualname, nullptr, nullptr, nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},   {"__module__", get_module, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef g_methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__copy__", same, METH_NOARGS, nullptr},
    {"__deepcopy__", same, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef g_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PyFunction, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyTypeObject* make_type(nb::module_& m, const char* name, unsigned long flags, descrgetfunc get) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
                         {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                         {Py_tp_repr, reinterpret_cast<void*>(repr)},
                         {Py_tp_getset, g_properties},
                         {Py_tp_methods, g_methods},
                         {Py_tp_members, g_members},
                         {get ? Py_tp_descr_get : 0, reinterpret_cast<void*>(get)},
                         {0, nullptr}};
  PyType_Spec spec = {name, sizeof(PyFunction), 0,
                      static_cast<unsigned>(Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                            Py_TPFLAGS_DISALLOW_INSTANTIATION | flags),
                      slots};
  return add_type(m.ptr(), spec);
}

}  // namespace

PyObject* make_function(const std::string& operator_name, Reading reading, const char* member) {
  PyTypeObject* type = reading == Reading::Method ? g_method_type : g_function_type;
  auto* self = PyObject_New(PyFunction, type);
  if (!self) throw nb::python_error();
  self->vectorcall = vectorcall;
  self->overloads =
      new Overloads{operator_name, operator_name.substr(operator_name.find("::") + 2), reading, {}, {}, 0, 0, nullptr};
  self->overloads->self = reinterpret_cast<PyObject*>(self);
  self->overloads->member = member;
  return reinterpret_cast<PyObject*>(self);
}

PyObject* call_function(PyObject* function, PyObject* const* args, size_t count, PyObject* keywords) {
  return vectorcall(function, args, count, keywords);
}

PyObject* call_operand(PyObject* function, PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    PyObject* values[] = {a, b};
    CallArguments call{values, 2, nullptr};
    Overloads& o = overloads_of(function);
    if (o.plain.empty()) load(o);
    try {
      if (PyObject* result = try_overloads(o, call)) return result;
      PyObject* result = nullptr;
      if (offer(o, call, &result)) return result;
    } catch (const NobodyTakesCall&) {  // the other operand may have a method for it
    }
    Py_RETURN_NOTIMPLEMENTED;
  });
}

void bind_functions(nb::module_& m) {
  g_function_type = make_type(m, "umbra._C.Function", 0, nullptr);
  g_method_type = make_type(m, "umbra._C.Method", Py_TPFLAGS_METHOD_DESCRIPTOR, bind);
  // One for all who ask: functions are told apart by what they are (`activation is torch.tanh`). Those of libraries go
  // with them, and others may come under their names.
  m.def("_find_function", [](const std::string& name, int reading) {
    if (!name.starts_with("aten::")) return nb::steal(make_function(name, static_cast<Reading>(reading)));
    static auto* found = new std::map<std::pair<std::string, int>, PyObject*>;
    PyObject*& function = (*found)[{name, reading}];
    if (!function) function = make_function(name, static_cast<Reading>(reading));
    return nb::borrow(function);
  });
}

}  // namespace umbra::python
