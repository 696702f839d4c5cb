// Schemas, their arguments and types, as torch._C shows them.
#include "operators.h"
#include "signatures.h"
#include "umbra/core/dtype_number.h"

namespace umbra::python {

namespace {

using Base = SchemaType::Base;

std::string kind_name(const SchemaType& t) {
  if (t.optional) return "OptionalType";
  if (t.list) return "ListType";
  switch (t.base) {
    case Base::Tensor: return "TensorType";
    case Base::Int: return "IntType";
    case Base::SymInt: return "SymIntType";
    case Base::Float: return "FloatType";
    case Base::Bool: return "BoolType";
    case Base::Scalar: return "NumberType";
    case Base::Complex: return "ComplexType";
    case Base::String: return "StringType";
    case Base::Device: return "DeviceObjType";
    case Base::Generator: return "GeneratorType";
    case Base::DType:
    case Base::Layout:
    case Base::MemoryFormat: return "IntType";
    default: return "AnyType";
  }
}

bool is_subtype(const SchemaType& a, const SchemaType& b) {
  if (a == b) return true;
  SchemaType wider = a;
  wider.optional = true;
  return wider == b;
}

/// What is inside an optional or a list.
SchemaType element_type(const SchemaType& t) {
  SchemaType inner = t;
  if (t.optional) {
    inner.optional = false;
    return inner;
  }
  check(t.list, "type '", jit_type_text(t), "' has no element type");
  inner.list = inner.element_optional = false;
  inner.list_size = 0;
  inner.optional = t.element_optional;
  return inner;
}

std::vector<SchemaType> contained_types(const SchemaType& t) {
  if (!t.optional && !t.list) return {};
  return {element_type(t)};
}

constexpr char kAnything = '*';  // what may be memory of any kind: `Tensor(a -> *)`

/// The names of what a tensor shares memory with before the call.
nb::set sets_before(const AliasInfo& a) {
  nb::set out;
  std::string name;
  for (char c : a.set + "|") {
    if (c != '|' && c != kAnything) name += c;
    if (c == '|' && !name.empty()) out.add(nb::cast(std::exchange(name, {})));
  }
  return out;
}

nb::set sets_after(const AliasInfo& a) {
  if (a.set.find(kAnything) == std::string::npos) return sets_before(a);
  nb::set out;
  out.add(nb::cast(std::string(1, kAnything)));
  return out;
}

nb::object alias_of(const AliasInfo& a) { return a.set.empty() ? nb::none() : nb::cast(a); }

/// `_C.TensorType.get()`: the types that have a name of their own.
template <Base kBase> struct NamedType {};
template <Base kBase> void bind_named_type(nb::module_& m, const char* name) {
  nb::class_<NamedType<kBase>>(m, name).def_static("get", [] { return SchemaType{.base = kBase}; });
}

void bind_types(nb::module_& m) {
  nb::class_<SchemaType>(m, "JitType")
      .def("__str__", &jit_type_text)
      .def("__repr__", &jit_type_text)
      .def("__eq__", [](const SchemaType& a, const SchemaType& b) { return a == b; })
      .def("__hash__", [](const SchemaType& t) { return std::hash<std::string>()(to_string(t)); })
      .def("kind", &kind_name)
      .def("isSubtypeOf", &is_subtype)
      .def("getElementType", &element_type)
      .def("containedTypes", &contained_types)
      .def_prop_ro("annotation_str", &jit_type_text);
  bind_named_type<Base::Tensor>(m, "TensorType");
  bind_named_type<Base::Int>(m, "IntType");
  bind_named_type<Base::SymInt>(m, "SymIntType");
  bind_named_type<Base::Float>(m, "FloatType");
  bind_named_type<Base::Bool>(m, "BoolType");
  bind_named_type<Base::Scalar>(m, "NumberType");
  bind_named_type<Base::String>(m, "StringType");
  bind_named_type<Base::Device>(m, "DeviceObjType");
  bind_named_type<Base::Any>(m, "AnyType");
  m.def("OptionalType", [](SchemaType t) {
    t.optional = true;
    return t;
  });
  m.def("ListType", [](SchemaType t) {
    t.list = true;
    t.element_optional = std::exchange(t.optional, false);
    return t;
  });
}

}  // namespace

void bind_schemas(nb::module_& m) {
  bind_types(m);
  nb::class_<AliasInfo>(m, "_AliasInfo")
      .def_ro("is_write", &AliasInfo::write)
      .def_prop_ro("before_set", &sets_before)
      .def_prop_ro("after_set", &sets_after);
  nb::class_<SchemaArgument>(m, "Argument")
      .def_ro("name", &SchemaArgument::name)
      .def_ro("type", &SchemaArgument::type)
      .def_ro("real_type", &SchemaArgument::type)
      .def_ro("kwarg_only", &SchemaArgument::keyword_only)
      .def_prop_ro("N",
                   [](const SchemaArgument& a) -> nb::object {
                     if (a.type.list_size == 0) return nb::none();
                     return nb::int_(a.type.list_size);
                   })
      .def_prop_ro("is_out", &SchemaArgument::is_out)
      .def_prop_ro("is_write", [](const SchemaArgument& a) { return a.alias.write; })
      .def_prop_ro("alias_info", [](const SchemaArgument& a) { return alias_of(a.alias); })
      .def("has_default_value", [](const SchemaArgument& a) { return a.default_value.has_value(); })
      // As PyTorch's schemas have it: types, layouts and memory formats are numbers.
      .def_prop_ro("default_value",
                   [](const SchemaArgument& a) -> nb::object {
                     if (!a.default_value) return nb::none();
                     switch (a.default_value->tag()) {
                       case Value::Tag::DType: return nb::int_(number_of(a.default_value->to_dtype()));
                       case Value::Tag::Layout: return nb::int_(static_cast<int>(a.default_value->to_layout()));
                       case Value::Tag::MemoryFormat:
                         return nb::int_(static_cast<int>(a.default_value->to_memory_format()));
                       default: return nb::steal(wrap(*a.default_value));
                     }
                   })
      .def_prop_ro("_default", [](const SchemaArgument& a) {
        return a.default_value ? nb::steal(wrap(*a.default_value)) : nb::none();
      });
  nb::class_<SchemaReturn>(m, "Return")
      .def_ro("name", &SchemaReturn::name)
      .def_ro("type", &SchemaReturn::type)
      .def_ro("real_type", &SchemaReturn::type)
      .def_prop_ro("alias_info", [](const SchemaReturn& r) { return alias_of(r.alias); });
  nb::class_<Schema>(m, "FunctionSchema")
      .def_prop_ro("name", [](const Schema& s) { return s.space + "::" + s.name; })
      .def_ro("overload_name", &Schema::overload)
      .def_ro("arguments", &Schema::arguments)
      .def_ro("returns", &Schema::returns)
      .def_prop_ro("is_mutable", &Schema::is_mutable)
      .def("__eq__", [](const Schema& a, const Schema& b) { return to_string(a) == to_string(b); })
      .def("__hash__", [](const Schema& s) { return std::hash<std::string>()(to_string(s)); })
      .def("__str__", [](const Schema& s) { return to_string(s); })
      .def("__repr__", [](const Schema& s) { return to_string(s); });
  m.def("parse_schema", [](const std::string& text) { return parse_schema(text); });
}

}  // namespace umbra::python
