#include "arguments.h"

#include <string_view>

#include "tensor_type.h"
#include "values.h"

namespace umbra::python {

namespace {

// Where a Python number may stand for a Tensor: these have no overload with a Scalar in Python.
bool takes_numbers_as_tensors(const Operator& op) {
  return op.has_tag(Tag::TakesNumbers) || (op.functional() && op.functional()->has_tag(Tag::TakesNumbers));
}

PyObject* interned(const std::string& text) {
  PyObject* object = PyUnicode_InternFromString(text.c_str());
  return checked(object);
}

/// NumPy's spellings of parameters that functions and methods accept too.
std::string_view usual_name(std::string_view keyword) {
  if (keyword == "axis") return "dim";
  if (keyword == "keepdims") return "keepdim";
  if (keyword == "input" || keyword == "x" || keyword == "a" || keyword == "x1") return "self";
  if (keyword == "x2") return "other";
  return keyword;
}

bool is_int_list(const SchemaType& type) {
  return type.list && (type.base == SchemaType::Base::Int || type.base == SchemaType::Base::SymInt);
}

/// zeros, zeros_like, new_zeros: not conversions, which have the same options.
bool is_factory(const Schema& schema) {
  return schema.find("layout") >= 0 && schema.find("pin_memory") >= 0 && schema.name != "to" &&
         schema.name != "_to_copy";
}

}  // namespace

Matcher::Matcher(const Operator& op) : op_(op), numbers_as_tensors_(takes_numbers_as_tensors(op)) {
  for (const SchemaArgument& a : op.schema().arguments) {
    SchemaType type = a.type;
    // A user's kernel may be given None for any tensor.
    if (op.library_kernels() && type.is_tensor() && op.schema().space != "aten") type.optional = true;
    bool empty = a.default_value && is_int_list(type) && a.default_value->is_int_list() &&
                 a.default_value->int_list().size() == 0;
    parameters_.push_back({interned(a.name), type, a.default_value ? &*a.default_value : nullptr, empty});
    if (!a.keyword_only) ++positional_;
  }
  check(parameters_.size() <= 64, op.name(), ": more than 64 arguments");
  if (op.schema().space == "aten") {
    int reduction = op.schema().find("reduction");
    if (reduction >= 0 && parameters_[reduction].default_value) reduction_ = reduction;
  }
  if (is_factory(op.schema())) {
    pin_memory_ = op.schema().find("pin_memory");
    if (op.schema().arguments[0].type.base != SchemaType::Base::Tensor) device_ = op.schema().find("device");
  }
  if (op.has_out())
    for (const Operator* overload : operator_overloads(op.schema().space + "::" + op.schema().name))
      factory_out_ |= is_factory(overload->schema());
  // Where the list may be left out, two ints are two arguments: std(dim, unbiased).
  auto takes_ints = [](const SchemaType& type) { return is_int_list(type) && !type.optional; };
  function_ints_ = positional_ == 1 && takes_ints(parameters_[0].type);
  method_ints_ = positional_ == 2 && takes_ints(parameters_[1].type);
}

Matcher& Matcher::of(const Operator& op) {
  if (!op.python_slot) op.python_slot = new Matcher(op);
  return *static_cast<Matcher*>(op.python_slot);
}

int Matcher::find(PyObject* keyword, Reading reading) const {
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].name == keyword) return static_cast<int>(i);
  std::string_view name = text_of(keyword);
  int index = op_.schema().find(name);
  if (index < 0 && reading != Reading::Operator) index = op_.schema().find(usual_name(name));
  return index;
}

namespace {
/// A layout or a memory format by its number in PyTorch's list.
bool read_constant(PyObject* object, SchemaType::Base base, Value& out) {
  if (!PyLong_Check(object) || PyBool_Check(object)) return false;
  constexpr long kLayouts = 3, kFormats = 4;
  int overflow = 0;
  long number = PyLong_AsLongAndOverflow(object, &overflow);  // -1 of what is too large
  if (base == SchemaType::Base::Layout && number >= 0 && number < kLayouts) out = Value(static_cast<Layout>(number));
  else if (base == SchemaType::Base::MemoryFormat && number >= 0 && number < kFormats)
    out = Value(static_cast<MemoryFormat>(number));
  else return false;
  return true;
}

/// Operators take a number for a truth value, a truth value for a number and a constant's number for it, as PyTorch's
/// do.
bool read_loosely(PyObject* object, const SchemaType& type, Value& out) {
  if (type.list) return false;
  if (read_constant(object, type.base, out)) return true;
  if (type.base == SchemaType::Base::Bool && (PyLong_Check(object) || PyFloat_Check(object) || object == Py_None)) {
    out = Value(PyObject_IsTrue(object) == 1);
    return true;
  }
  bool is_int = type.base == SchemaType::Base::Int || type.base == SchemaType::Base::SymInt;
  if (is_int && PyBool_Check(object)) out = Value(static_cast<int64_t>(object == Py_True));
  return is_int && PyBool_Check(object);
}
}  // namespace

namespace {
/// Whether the factory's result is a meta tensor, of which there is no memory to pin.
bool lies_on_meta(const Operator& op, const Value* frame) {
  int device = op.schema().find("device");
  if (device >= 0 && !frame[device].is_none()) return frame[device].to_device().type == DeviceType::Meta;
  bool any = false;
  for (size_t i = 0; i < op.argument_count(); ++i)
    frame[i].each_tensor([&](TensorImpl* t) { any |= t->device().type == DeviceType::Meta; });
  return any;
}

/// Options of factories that have no effect yet.
void check_factory_options(const Operator& op, const Value& pin_memory, const Value* frame) {
  bool asks_itself = op.schema().name.find("sparse_coo_tensor") != std::string::npos;  // behind what it asks of parts
  check(pin_memory.is_none() || !pin_memory.to_bool() || asks_itself || lies_on_meta(op, frame),
        "Cannot access accelerator device when none is available.");
  if (op.schema().name.find("sparse_") != std::string::npos) return;  // whose layout it is that counts
  if (op.definition().sparse) return;                                 // which says itself what it makes
  const Value& layout = frame[op.schema().find("layout")];
  check<NotImplementedError>(layout.is_none() || layout.to_layout() == Layout::Strided, op.schema().name,
                             "(layout=...): layouts other than torch.strided are not in Umbra yet");
}
}  // namespace

/// A tensor is taken for a float, a list of tensors is not taken for one of floats.
static bool begins_with_tensor(PyObject* object) {
  bool sequence = (PyList_CheckExact(object) || PyTuple_Check(object)) && PySequence_Fast_GET_SIZE(object) > 0;
  return sequence && is_tensor(PySequence_Fast_GET_ITEM(object, 0));
}

bool Matcher::read_parameter(PyObject* object, Reading reading, size_t i, Value* frame, Scratch& scratch) const {
  const Parameter& p = parameters_[i];
  bool typed = p.type.base == SchemaType::Base::DType && p.default_value && !p.default_value->is_none();
  if (typed && object == Py_None && reading != Reading::Operator) {  // randint(..., dtype=None) has its usual type
    frame[i] = Value::borrow(*p.default_value);
    return true;
  }
  // For an operator a tensor is no number: another overload takes it, and keeps its history.
  if (reading == Reading::Operator && p.type.base == SchemaType::Base::Scalar && is_tensor(object)) return false;
  if (reading != Reading::Operator && p.type.base == SchemaType::Base::Float && p.type.list &&
      begins_with_tensor(object))
    return false;
  if (read_value(object, p.type, frame[i], scratch, numbers_as_tensors_)) return true;
  if (reading == Reading::Operator) return read_loosely(object, p.type, frame[i]);
  if (object != Py_None || !p.none_is_default) return false;
  frame[i] = Value::borrow(*p.default_value);
  return true;
}

bool Matcher::read_spelt_out(const CallArguments& call, size_t first, Value* frame, Scratch& scratch) const {
  SymShape* list = scratch.next_list();
  SymInt value;
  for (size_t i = first; i < call.positional; ++i) {
    if (!read_int(call.values[i], value)) return false;
    list->push_back(value);
  }
  frame[first] = Value::borrow(SymIntArrayRef(*list));
  return true;
}

/// Whether an argument can be the first of sizes that are spelt out.
static bool is_int_like(PyObject* object) {
  SymInt unused;
  return PyLong_CheckExact(object) || read_int(object, unused);
}

bool Matcher::read_positional(const CallArguments& call, Reading reading, Value* frame, Scratch& scratch, size_t& given,
                              Mismatch& why) const {
  size_t first_list = reading == Reading::Method ? 1 : 0;
  given = call.positional;
  bool spelt_out = reading != Reading::Operator && takes_spelt_out_ints(reading) && given > first_list &&
                   is_int_like(call.values[first_list]);
  if (!spelt_out && given > positional_) return why.set(Mismatch::Reason::TooMany, given, nullptr);
  size_t plain = spelt_out ? first_list : given;
  for (size_t i = 0; i < plain; ++i)
    if (!read_parameter(call.values[i], reading, i, frame, scratch))
      return why.set(Mismatch::Reason::WrongType, i, call.values[i]);
  if (!spelt_out) return true;
  given = first_list + 1;
  return read_spelt_out(call, first_list, frame, scratch) ||
         why.set(Mismatch::Reason::WrongType, first_list, call.values[first_list]);
}

/// Options of a factory that its out argument has settled: they are compared with it when the call is made.
static bool is_out_option(std::string_view name) {
  return name == "dtype" || name == "layout" || name == "device" || name == "pin_memory";
}

/// Keywords that are no parameters of the schema but belong to Python's functions: requires_grad, out=(a, b), out=[a,
/// b], out=None.
bool Matcher::read_extra_keyword(PyObject* keyword, PyObject* value, Value* frame, Scratch& scratch, uint64_t& filled,
                                 Mismatch& why) const {
  std::string_view name = text_of(keyword);
  if (value == Py_None && (name == "out" || name == "generator")) return true;
  if (factory_out_ && is_out_option(name)) return true;
  if (name == "requires_grad" && (pin_memory_ >= 0 || factory_out_)) {
    if (value != Py_None && !PyBool_Check(value))
      fail<TypeError>(op_.schema().name, "(): argument 'requires_grad' must be bool, not ",
                      short_type_name(Py_TYPE(value)));
    return true;
  }
  if (name != "out" || !op_.has_out() || (!PyTuple_Check(value) && !PyList_Check(value)))
    return why.set(Mismatch::Reason::UnknownKeyword, 0, keyword);
  size_t base = parameters_.size() - static_cast<size_t>(PySequence_Fast_GET_SIZE(value));
  for (size_t i = base; i < parameters_.size(); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(value, static_cast<Py_ssize_t>(i - base));
    if (!read_value(item, parameters_[i].type, frame[i], scratch, false))
      return why.set(Mismatch::Reason::WrongType, i, item);
    filled |= uint64_t{1} << i;
  }
  return true;
}

bool Matcher::read_keywords(const CallArguments& call, Reading reading, Value* frame, Scratch& scratch,
                            uint64_t& filled, Mismatch& why) const {
  for (size_t k = 0; k < call.keyword_count(); ++k) {
    PyObject* value = call.keyword_value(k);
    int index = find(call.keyword(k), reading);
    if (index < 0) {
      if (reading == Reading::Operator) return why.set(Mismatch::Reason::UnknownKeyword, 0, call.keyword(k));
      if (!read_extra_keyword(call.keyword(k), value, frame, scratch, filled, why)) return false;
      continue;
    }
    size_t i = static_cast<size_t>(index);
    if (filled >> i & 1) return why.set(Mismatch::Reason::Duplicate, i, call.keyword(k));
    if (!read_parameter(value, reading, i, frame, scratch)) return why.set(Mismatch::Reason::WrongType, i, value);
    filled |= uint64_t{1} << i;
  }
  return true;
}

bool Matcher::read(const CallArguments& call, Reading reading, Value* frame, Scratch& scratch, Mismatch& why) const {
  size_t given = 0;
  scratch.split_tensors = reading == Reading::Operator;
  if (!read_positional(call, reading, frame, scratch, given, why)) return false;
  uint64_t filled = given == 64 ? ~uint64_t{0} : (uint64_t{1} << given) - 1;
  if (call.keywords && !read_keywords(call, reading, frame, scratch, filled, why)) return false;
  for (size_t i = given; i < parameters_.size(); ++i) {
    if (filled >> i & 1) continue;
    if (!parameters_[i].default_value) return why.set(Mismatch::Reason::Missing, i, nullptr);
    frame[i] = Value::borrow(*parameters_[i].default_value);
  }
  // PyTorch's functions read the default of losses, the word Mean, as no reduction; operators know it.
  if (reduction_ >= 0 && reading != Reading::Operator && !(filled >> reduction_ & 1))
    frame[reduction_] = Value(int64_t{0});
  if (pin_memory_ >= 0) check_factory_options(op_, frame[pin_memory_], frame);
  return true;
}

void Matcher::fill_factory_options(Value* frame) const {
  if (pin_memory_ >= 0 && frame[pin_memory_].is_none()) frame[pin_memory_] = Value(false);
  if (device_ >= 0 && frame[device_].is_none()) frame[device_] = Value(Device());
}

std::string Matcher::parameter_name(size_t i, Reading reading) const {
  const SchemaArgument& a = op_.schema().arguments[i];
  return reading == Reading::Function && a.name == "self" && a.type.is_tensor() ? "input" : a.name;
}

}  // namespace umbra::python
