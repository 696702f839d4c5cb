#include "signatures.h"

#include <algorithm>

#include "old_signatures.h"
#include "tensor_type.h"
#include "values.h"

namespace umbra::python {

namespace {

using Base = SchemaType::Base;

bool is_int(const SchemaType& t) { return !t.list && (t.base == Base::Int || t.base == Base::SymInt); }
bool is_int_list(const SchemaType& t) { return t.list && (t.base == Base::Int || t.base == Base::SymInt); }

/// Whether a parameter of type `a` has to be tried after one of type `b`: it takes what the other takes, and more.
bool is_wider(const SchemaType& a, const SchemaType& b) {
  if (!a.list && a.base == Base::Scalar && b.is_tensor()) return true;
  if (is_int_list(a) && is_int(b)) return true;
  if (a.is_tensor_list() && b.list && b.base != Base::Tensor) return true;
  if (!a.list && a.base == Base::Bool && is_int_list(b)) return true;
  return is_int(a) && b.is_tensor();
}

bool comes_after(const Matcher& a, const Matcher& b) {
  const auto &x = a.op().schema().arguments, &y = b.op().schema().arguments;
  bool wider = false;
  for (size_t i = 0; i < std::min(a.positional_count(), b.positional_count()); ++i) {
    if (x[i].type.base == y[i].type.base && x[i].type.list == y[i].type.list) {
      if (x[i].default_value && !y[i].default_value) return true;  // var(dim=None, *, ...) after var(dim, ...)
      if (!x[i].default_value && y[i].default_value) return false;
      continue;
    }
    if (!is_wider(x[i].type, y[i].type)) return false;
    wider = true;
  }
  // The same and more parameters: arange(start, end, step) after arange(start, end).
  return wider || a.positional_count() > b.positional_count();
}

std::string type_text(const SchemaType& type) {
  if (type.list) {
    if (is_int_list(type)) return "tuple of ints";
    if (type.base == Base::Tensor) return "tuple of Tensors";
    if (type.base == Base::Float) return "tuple of floats";
    if (type.base == Base::Bool) return "tuple of bools";
    return "tuple of Scalars";
  }
  switch (type.base) {
    case Base::Tensor: return "Tensor";
    case Base::Int:
    case Base::SymInt: return "int";
    case Base::Float:
    case Base::SymFloat: return "float";
    case Base::Bool:
    case Base::SymBool: return "bool";
    case Base::Scalar: return "Number";
    case Base::Complex: return "complex";
    case Base::String: return "str";
    case Base::Device: return "torch.device";
    case Base::DType: return "torch.dtype";
    case Base::Layout: return "torch.layout";
    case Base::MemoryFormat: return "torch.memory_format";
    case Base::Generator: return "torch.Generator";
    default: return "object";
  }
}

}  // namespace

std::string argument_type(PyObject* object) {
  if (Py_TYPE(object) == g_size_type || Py_TYPE(object) == g_dtype_type || Py_TYPE(object) == g_device_type ||
      Py_TYPE(object) == g_layout_type || Py_TYPE(object) == g_memory_format_type)
    return "torch." + short_type_name(Py_TYPE(object));
  std::string_view name = type_name(object);
  return name.starts_with("umbra") ? short_type_name(Py_TYPE(object)) : std::string(name);
}

namespace {

std::string given_text(const CallArguments& call, Reading reading) {
  std::string out;
  for (size_t i = reading == Reading::Method ? 1 : 0; i < call.positional; ++i)
    out += (out.empty() ? "" : ", ") + argument_type(call.values[i]);
  for (size_t k = 0; k < call.keyword_count(); ++k)
    out +=
        (out.empty() ? "" : ", ") + std::string(text_of(call.keyword(k))) + "=" + argument_type(call.keyword_value(k));
  bool only_keywords = call.keyword_count() > 0 && call.positional == (reading == Reading::Method ? 1 : 0);
  return "(" + out + (only_keywords ? ", )" : ")");  // as PyTorch writes it
}

/// Which element of a list is not of the list's type.
[[noreturn]] void fail_element(const std::string& function, const std::string& parameter, const std::string& position,
                               const SchemaType& type, PyObject* list) {
  Py_ssize_t count = PySequence_Fast_GET_SIZE(list), wrong = 0;
  SchemaType element = type;
  element.list = false;
  element.optional = type.element_optional;
  for (; wrong + 1 < count; ++wrong) {
    Scratch scratch;
    Value unused;
    if (!read_value(PySequence_Fast_GET_ITEM(list, wrong), element, unused, scratch, false)) break;
  }
  std::string found = count ? argument_type(PySequence_Fast_GET_ITEM(list, wrong)) : "nothing";
  if (type.is_tensor_list()) fail<TypeError>("expected Tensor as element ", wrong, " in argument 0, but got ", found);
  if (wrong > 0)
    fail<TypeError>(function, "(): argument '", parameter, "' failed to unpack the object at pos ", wrong + 1,
                    " with error \"type must be ", type_text(type), ",but got ", found, "\"");
  fail<TypeError>(function, "(): argument '", parameter, "'", position, " must be ", type_text(type),
                  ", but found element of type ", found, " at pos 0");
}

/// Refuses the first keyword that is not spelt as a parameter; NumPy's names for parameters are none.
void check_keywords(const std::string& name, Reading reading, const Matcher& matcher, const CallArguments& call) {
  size_t count = matcher.op().argument_count();
  for (size_t k = 0; k < call.keyword_count(); ++k) {
    std::string given(text_of(call.keyword(k)));
    bool known = false;
    for (size_t i = 0; i < count; ++i) known = known || matcher.parameter_name(i, reading) == given;
    if (!known) fail<TypeError>(name, "() got an unexpected keyword argument '", given, "'");
  }
}

/// Sizes that are spelt out, the first of which is one and another is not.
void check_spelt_out(const std::string& name, Reading reading, const Matcher& matcher, const CallArguments& call) {
  size_t first = reading == Reading::Method ? 1 : 0;
  SymInt unused;
  if (!matcher.takes_spelt_out_ints(reading) || call.positional < first + 2 || !read_int(call.values[first], unused))
    return;
  nb::object all = nb::steal(PyList_New(0));
  bool ints = true;
  for (size_t i = first; i < call.positional; ++i) {
    ints = ints && read_int(call.values[i], unused);
    PyList_Append(all.ptr(), call.values[i]);
  }
  if (!ints)
    fail_element(name, matcher.parameter_name(first, reading), "", matcher.op().schema().arguments[first].type,
                 all.ptr());
}

[[noreturn]] void fail_single(const std::string& name, Reading reading, const Matcher& matcher,
                              const CallArguments& call, const Mismatch& why) {
  size_t skipped = reading == Reading::Method ? 1 : 0;
  switch (why.reason) {
    case Mismatch::Reason::TooMany: {
      const auto& arguments = matcher.op().schema().arguments;
      size_t takes = matcher.positional_count() - skipped, given = call.positional - skipped, needs = 0;
      for (size_t i = skipped; i < matcher.positional_count(); ++i) needs += !arguments[i].default_value;
      if (arguments.size() == skipped)
        fail<TypeError>("TensorBase.", name, "() takes no arguments (", given, " given)");
      const char* were = given == 1 ? " was given" : " were given";
      if (needs < takes)
        fail<TypeError>(name, "() takes from ", needs, " to ", takes, " positional arguments but ", given, were);
      fail<TypeError>(name, "() takes ", takes, " positional argument", takes == 1 ? "" : "s", " but ", given, were);
    }
    case Mismatch::Reason::UnknownKeyword:
      check_keywords(name, reading, matcher, call);
      fail<TypeError>(name, "() got an unexpected keyword argument '", std::string(text_of(why.object)), "'");
    case Mismatch::Reason::Duplicate:
      fail<TypeError>(name, "() got multiple values for argument '", matcher.parameter_name(why.parameter, reading),
                      "'");
    case Mismatch::Reason::Missing: {
      std::string missing;
      size_t count = 0;
      const auto& arguments = matcher.op().schema().arguments;
      for (size_t i = why.parameter; i < arguments.size(); ++i) {
        if (arguments[i].default_value || arguments[i].is_out()) continue;
        missing += (count++ ? ", \"" : "\"") + matcher.parameter_name(i, reading) + "\"";
      }
      const char* noun = count == 1 ? "arguments" : "argument";  // as PyTorch has them
      fail<TypeError>(name, "() missing ", count, " required positional ", noun, ": ", missing);
    }
    default: break;
  }
  const SchemaArgument& a = matcher.op().schema().arguments[why.parameter];
  std::string position = why.parameter < call.positional ? concat(" (position ", why.parameter + 1 - skipped, ")") : "";
  std::string parameter = matcher.parameter_name(why.parameter, reading);
  if (a.type.list && (PyTuple_Check(why.object) || PyList_Check(why.object)))
    fail_element(name, parameter, position, a.type, why.object);
  fail<TypeError>(name, "(): argument '", parameter, "'", position, " must be ", type_text(a.type), ", not ",
                  argument_type(why.object));
}

/// Whether a call with that many arguments could be one of this signature.
bool takes_as_many(const Matcher& matcher, const CallArguments& call, bool with_out) {
  const auto& arguments = matcher.op().schema().arguments;
  size_t given = call.positional + call.keyword_count(), most = arguments.size() + (with_out ? 1 : 0);
  if (matcher.op().schema().find("pin_memory") >= 0) ++most;  // requires_grad
  auto needed = [](const SchemaArgument& a) { return !a.default_value && !a.is_out(); };
  auto least = static_cast<size_t>(std::count_if(arguments.begin(), arguments.end(), needed));
  return least <= given && (given <= most || matcher.takes_spelt_out_ints(Reading::Function));
}

bool is_factory(const Matcher& matcher) { return matcher.op().schema().find("pin_memory") >= 0; }

/// Whether an argument is one of a factory's options, for which an output needs no say.
bool is_option(const Matcher& matcher, const SchemaArgument& a) {
  return is_factory(matcher) &&
         (a.name == "dtype" || a.name == "layout" || a.name == "device" || a.name == "pin_memory");
}

/// Whether `out` is the same signature with an out argument more.
bool is_out_of(const Matcher& out, const Matcher& plain) {
  if (!is_factory(plain)) return out.op().functional() == &plain.op();
  std::vector<std::string> wanted, found;
  for (const SchemaArgument& a : plain.op().schema().arguments)
    if (!is_option(plain, a)) wanted.push_back(a.name);
  for (const SchemaArgument& a : out.op().schema().arguments)
    if (!a.is_out()) found.push_back(a.name);
  return wanted == found;
}

std::string default_text(const SchemaArgument& a) {
  const Value& value = *a.default_value;
  if (a.name == "pin_memory") return "False";
  if (a.type.base == Base::String && !a.type.list && !value.is_none()) return "\"" + value.to_string() + "\"";
  if (is_int_list(a.type) && !value.is_none()) {
    auto numbers = value.int_list();
    if (numbers.empty()) return "None";
    bool one = std::all_of(numbers.begin(), numbers.end(), [&](const SymInt& n) { return n.same(numbers[0]); });
    if (a.type.list_size > 0 && one) return concat(numbers[0]);
    std::string text;
    for (const SymInt& n : numbers) text += (text.empty() ? "" : ",") + concat(n);
    return "{" + text + "}";
  }
  return to_string(value);
}

/// Whether a signature's parameter takes what stands in its place, as PyTorch's messages judge it: by the name of the
/// type.
bool matches_by_name(const SchemaType& type, PyObject* object) {
  std::string wanted = type_text(type), given = argument_type(object);
  if (wanted == "float") return given == "float" || given == "int";
  return wanted == given;
}

/// "(!str!, dim=int)": what was given, with marks where a parameter does not take it.
std::string marked_text(const Matcher& matcher, const CallArguments& call, Reading reading) {
  std::string out;
  auto add = [&](const SchemaArgument* a, const std::string& prefix, PyObject* object) {
    std::string text = prefix + argument_type(object);
    if (PyTuple_Check(object) || PyList_Check(object)) {
      std::string elements;
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
        elements += (i ? ", " : "") + argument_type(PySequence_Fast_GET_ITEM(object, i));
      if (PyTuple_Check(object) && PySequence_Fast_GET_SIZE(object) == 1) elements += ",";
      text += PyTuple_Check(object) ? " of (" + elements + ")" : " of [" + elements + "]";
    }
    const char* mark = a && matches_by_name(a->type, object) ? "" : "!";
    out += (out.empty() ? "" : ", ") + concat(mark, text, mark);
  };
  const auto& arguments = matcher.op().schema().arguments;
  for (size_t i = reading == Reading::Method ? 1 : 0; i < call.positional; ++i)
    add(i < arguments.size() ? &arguments[i] : nullptr, "", call.values[i]);
  for (size_t k = 0; k < call.keyword_count(); ++k) {
    std::string name(text_of(call.keyword(k)));
    const SchemaArgument* found = nullptr;
    for (size_t i = 0; i < arguments.size(); ++i)
      if (matcher.parameter_name(i, reading) == name) found = &arguments[i];
    add(found, name + "=", call.keyword_value(k));
  }
  return "(" + out + ")";
}

/// Why a signature with as many parameters as were given does not fit; nothing for others. Outputs, options and the
/// star count.
std::string mismatch_text(const Matcher& matcher, const CallArguments& call, Reading reading, bool with_out) {
  const auto& arguments = matcher.op().schema().arguments;
  size_t skipped = reading == Reading::Method ? 1 : 0;
  bool starred = with_out || std::any_of(arguments.begin(), arguments.end(),
                                         [](const SchemaArgument& a) { return a.keyword_only && !a.is_out(); });
  size_t expected = arguments.size() - skipped + with_out + is_factory(matcher) + starred;
  std::string unknown;
  for (size_t k = 0; k < call.keyword_count(); ++k) {
    std::string name(text_of(call.keyword(k)));
    bool known = (with_out && name == "out") || (is_factory(matcher) && name == "requires_grad");
    for (size_t i = skipped; i < arguments.size(); ++i) known |= matcher.parameter_name(i, reading) == name;
    if (!known) unknown += (unknown.empty() ? "" : ", ") + name;
  }
  size_t given = call.positional - skipped + call.keyword_count();
  if (given != std::max<size_t>(expected, 1)) return "";
  if (!unknown.empty()) return "      didn't match because some of the keywords were incorrect: " + unknown + "\n";
  return "      didn't match because some of the arguments have invalid types: " + marked_text(matcher, call, reading) +
         "\n";
}

}  // namespace

void sort_overloads(std::vector<const Matcher*>& overloads) {
  std::vector<const Matcher*> sorted;
  std::vector<bool> done(overloads.size());
  while (sorted.size() < overloads.size()) {
    for (size_t i = 0; i < overloads.size(); ++i) {
      if (done[i]) continue;
      bool ready = true;
      for (size_t j = 0; j < overloads.size(); ++j)
        if (!done[j] && j != i && comes_after(*overloads[i], *overloads[j]) &&
            !comes_after(*overloads[j], *overloads[i]))
          ready = false;
      if (!ready) continue;
      sorted.push_back(overloads[i]);
      done[i] = true;
      break;
    }
  }
  overloads = std::move(sorted);
}

std::string signature_text(const Matcher& matcher, Reading reading, bool with_out) {
  std::string out = "(";
  bool first = true, starred = false;
  const auto& arguments = matcher.op().schema().arguments;
  auto separate = [&] { out += std::exchange(first, false) ? "" : ", "; };
  auto star = [&] {
    if (std::exchange(starred, true)) return;
    separate();
    out += "*";
  };
  auto add_out = [&] {
    if (!std::exchange(with_out, false)) return;
    star();
    separate();
    out += matcher.op().schema().returns.size() > 1 ? "tuple of Tensors out = None" : "Tensor out = None";
  };
  for (size_t i = reading == Reading::Method ? 1 : 0; i < arguments.size(); ++i) {
    const SchemaArgument& a = arguments[i];
    if (a.is_out()) continue;
    if (a.keyword_only) star();
    if (is_option(matcher, a)) add_out();
    separate();
    out += type_text(a.type) + " " + matcher.parameter_name(i, reading);
    if (a.default_value) out += " = " + default_text(a);
  }
  add_out();
  return out + (is_factory(matcher) ? ", bool requires_grad = False)" : ")");
}

void fail_no_signature(const std::string& name, Reading reading, const std::vector<const Matcher*>& plain,
                       const std::vector<const Matcher*>& out, const CallArguments& call) {
  const std::vector<const Matcher*>& shown = plain.empty() ? out : plain;
  check<TypeError>(!shown.empty(), "no function named '", name, "'");
  auto has_out = [&](const Matcher& m) {
    return reading == Reading::Function &&
           std::any_of(out.begin(), out.end(), [&](const Matcher* o) { return is_out_of(*o, m); });
  };
  for (const Matcher* m : shown) check_spelt_out(name, reading, *m, call);
  std::vector<const Matcher*> plausible;
  for (const Matcher* m : shown)
    if ((shown.size() == 1 && !has_unnamed_factors(name)) || takes_as_many(*m, call, has_out(*m)))
      plausible.push_back(m);
  if (plausible.size() == 1) {
    Scratch scratch;
    const Matcher* matcher = plausible[0];
    Frame frame(matcher->op());
    Mismatch why;
    if (!matcher->read(call, reading, frame.data(), scratch, why)) fail_single(name, reading, *matcher, call, why);
    if (reading == Reading::Method) check_keywords(name, reading, *matcher, call);
  }
  auto text = [&](const Matcher& m) { return signature_text(m, reading, has_out(m)); };
  std::string message = name + "() received an invalid combination of arguments - got " + given_text(call, reading);
  if (shown.size() == 1) fail<TypeError>(message, ", but expected ", text(*shown[0]));
  message += ", but expected one of:\n";
  for (const Matcher* m : shown) message += " * " + text(*m) + "\n" + mismatch_text(*m, call, reading, has_out(*m));
  fail<TypeError>(message);
}

std::string jit_type_text(const SchemaType& type) {
  std::string base;
  switch (type.base) {
    case Base::Scalar: base = "number"; break;
    case Base::DType:
    case Base::Layout:
    case Base::MemoryFormat: base = "int"; break;
    default: {
      SchemaType plain = type;
      plain.list = plain.optional = plain.element_optional = false;
      base = to_string(plain);
    }
  }
  if (type.list) base = "List[" + (type.element_optional ? "Optional[" + base + "]" : base) + "]";
  return type.optional ? "Optional[" + base + "]" : base;
}

namespace {

/// The first argument without a default that a call does not give; null where there is none.
const SchemaArgument* missing_argument(const Schema& schema, const CallArguments& call) {
  for (size_t i = call.positional; i < schema.arguments.size(); ++i) {
    const SchemaArgument& a = schema.arguments[i];
    bool given = a.default_value.has_value();
    for (size_t k = 0; k < call.keyword_count(); ++k) given = given || text_of(call.keyword(k)) == a.name;
    if (!given) return &a;
  }
  return nullptr;
}

std::string schema_message(const Operator& op, const CallArguments& call, const Mismatch& why) {
  const Schema& schema = op.schema();
  std::string name = schema.space + "::" + schema.name;
  std::string declaration = " Declaration: " + to_string(schema);
  auto missing = [&](const SchemaArgument& a) {
    return concat(name, "() is missing value for argument '", a.name, "'.", declaration);
  };
  switch (why.reason) {
    case Mismatch::Reason::TooMany:
      if (call.positional <= schema.arguments.size()) {
        auto keyword_only = [](const SchemaArgument& a) { return a.keyword_only; };
        size_t positional =
            std::find_if(schema.arguments.begin(), schema.arguments.end(), keyword_only) - schema.arguments.begin();
        return concat(name, "() takes ", positional, " positional argument(s) but ", call.positional,
                      " was/were given. ", declaration);
      }
      return concat(name, "() expected at most ", schema.arguments.size(), " argument(s) but received ",
                    call.positional, " argument(s).", declaration);
    case Mismatch::Reason::UnknownKeyword:
      if (const SchemaArgument* a = missing_argument(schema, call)) return missing(*a);
      return concat("Unknown keyword argument '", std::string(text_of(why.object)), "' for operator '", name,
                    "'. Schema: ", to_string(schema));
    case Mismatch::Reason::Duplicate:
      return concat("Argument '", schema.arguments[why.parameter].name,
                    "' specified both as positional and keyword argument. Schema: ", to_string(schema));
    case Mismatch::Reason::Missing: return missing(schema.arguments[why.parameter]);
    default: break;
  }
  const SchemaArgument& a = schema.arguments[why.parameter];
  std::string message = concat(name, "() Expected a value of type '", jit_type_text(a.type), "' for argument '", a.name,
                               "' but instead found type '", short_type_name(Py_TYPE(why.object)), "'.\n");
  if (why.parameter < call.positional) message += concat("Position: ", why.parameter, "\n");
  return message + concat("Value: ", repr_of(why.object), "\nDeclaration: ", to_string(schema),
                          "\nCast error details: Unable to cast ", str_of(why.object), " to ", jit_type_text(a.type));
}

}  // namespace

void fail_schema(const Operator& op, const CallArguments& call, const Mismatch& why) {
  fail(schema_message(op, call, why));
}

void fail_no_schema(const std::string& name, const std::vector<const Matcher*>& overloads, const CallArguments& call) {
  check(!overloads.empty(), "no operator named '", name, "'");
  std::string message = "Overloaded torch operator invoked from Python failed to match any schema:\n";
  for (const Matcher* matcher : overloads) {
    Scratch scratch;
    Frame frame(matcher->op());
    Mismatch why;
    if (matcher->read(call, Reading::Operator, frame.data(), scratch, why)) continue;
    if (overloads.size() == 1) fail_schema(matcher->op(), call, why);
    message += schema_message(matcher->op(), call, why) + "\n\n";
  }
  fail(message);
}

}  // namespace umbra::python
