#include "umbra/jit/type.h"

#include <algorithm>

#include "umbra/core/dtype_number.h"
#include "umbra/jit/ir.h"

namespace umbra::jit {

namespace {

struct SimpleName {
  TypeKind kind;
  const char* text;        // in graphs
  const char* annotation;  // in source
};
constexpr SimpleName kSimple[] = {
    {TypeKind::Tensor, "Tensor", "Tensor"},
    {TypeKind::Int, "int", "int"},
    {TypeKind::Float, "float", "float"},
    {TypeKind::Bool, "bool", "bool"},
    {TypeKind::Complex, "complex", "complex"},
    {TypeKind::Number, "Scalar", "number"},
    {TypeKind::String, "str", "str"},
    {TypeKind::None, "NoneType", "NoneType"},
    {TypeKind::Any, "Any", "Any"},
    {TypeKind::Device, "Device", "Device"},
    {TypeKind::Generator, "Generator", "Generator"},
    {TypeKind::Function, "Function", "Function"},
};

const SimpleName* simple_name(TypeKind kind) {
  for (const SimpleName& s : kSimple)
    if (s.kind == kind) return &s;
  return nullptr;
}

std::shared_ptr<Type> make(TypeKind kind, std::vector<TypePtr> elements = {}) {
  auto type = std::allocate_shared<Type>(RecyclingAllocator<Type>());
  type->kind = kind;
  type->elements = std::move(elements);
  return type;
}

std::string joined(const std::vector<TypePtr>& types, bool annotation) {
  std::string out;
  for (size_t i = 0; i < types.size(); ++i)
    out += (i ? ", " : "") + (annotation ? types[i]->annotation() : types[i]->text());
  return out;
}

std::string joined(const std::vector<int64_t>& numbers) {
  std::string out;
  for (size_t i = 0; i < numbers.size(); ++i) out += (i ? ", " : "") + std::to_string(numbers[i]);
  return out;
}

std::string tensor_text(const TensorDetails& t) {
  if (!t.dtype) return "Tensor";
  std::vector<std::string> parts;
  if (t.sizes && !t.sizes->empty()) {
    parts.push_back(joined(*t.sizes));
    if (t.strides) parts.push_back("strides=[" + joined(*t.strides) + "]");
  }
  if (t.requires_grad) parts.push_back(concat("requires_grad=", *t.requires_grad ? 1 : 0));
  if (t.device) parts.push_back("device=" + to_string(*t.device));
  std::string out = std::string(kernel_name(*t.dtype)) + "(";
  for (size_t i = 0; i < parts.size(); ++i) out += (i ? ", " : "") + parts[i];
  return out + ")";
}

}  // namespace

std::string Type::text() const {
  switch (kind) {
    case TypeKind::Tensor: return tensor_text(tensor);
    case TypeKind::Optional: return element()->text() + "?";
    case TypeKind::List: return element()->text() + "[]";
    case TypeKind::Tuple:
      if (!name.empty()) return name;
      return "(" + joined(elements, false) + ")";
    case TypeKind::Dict: return "Dict(" + joined(elements, false) + ")";
    case TypeKind::Union: return "Union(" + joined(elements, false) + ")";
    case TypeKind::Future: return "Future(" + element()->text() + ")";
    case TypeKind::Enum: return "Enum<" + cls->name + ">";
    case TypeKind::Class:
      return cls->is_interface ? "InterfaceType<" + cls->name.substr(cls->name.rfind('.') + 1) + ">" : cls->name;
    default: return simple_name(kind)->text;
  }
}

std::string Type::annotation() const {
  switch (kind) {
    case TypeKind::Optional: return "Optional[" + element()->annotation() + "]";
    case TypeKind::List: return "List[" + element()->annotation() + "]";
    case TypeKind::Tuple:
      if (!name.empty()) return name;
      return elements.empty() ? "Tuple[()]" : "Tuple[" + joined(elements, true) + "]";
    case TypeKind::Dict: return "Dict[" + joined(elements, true) + "]";
    case TypeKind::Union: return "Union[" + joined(elements, true) + "]";
    case TypeKind::Future: return "Future[" + element()->annotation() + "]";
    case TypeKind::Enum:
    case TypeKind::Class: return cls->name;
    default: return simple_name(kind)->annotation;
  }
}

const TypePtr& simple_type(TypeKind kind) {
  static const std::vector<TypePtr> types = [] {
    std::vector<TypePtr> out(static_cast<size_t>(TypeKind::Future) + 1);
    for (const SimpleName& s : kSimple) out[static_cast<size_t>(s.kind)] = make(s.kind);
    return out;
  }();
  return types[static_cast<size_t>(kind)];
}
const TypePtr& tensor_type() { return simple_type(TypeKind::Tensor); }

TypePtr tensor_type_of(const umbra::Tensor& tensor) {
  auto type = make(TypeKind::Tensor);
  type->tensor.dtype = tensor.dtype();
  if (tensor.layout() == Layout::Strided && !tensor.is_symbolic()) {
    type->tensor.sizes = guard_ints(tensor.sym_sizes());
    type->tensor.strides = guard_ints(tensor.sym_strides());
  }
  type->tensor.requires_grad = tensor.requires_grad();
  type->tensor.device = tensor.device();
  return type;
}

TypePtr optional_type(TypePtr element) {
  if (element->is(TypeKind::Optional) || element->is(TypeKind::Any) || element->is(TypeKind::None)) return element;
  return make(TypeKind::Optional, {std::move(element)});
}
TypePtr list_type(TypePtr element) { return make(TypeKind::List, {std::move(element)}); }
TypePtr dict_type(TypePtr key, TypePtr value) { return make(TypeKind::Dict, {std::move(key), std::move(value)}); }
TypePtr tuple_type(std::vector<TypePtr> elements) { return make(TypeKind::Tuple, std::move(elements)); }
TypePtr future_type(TypePtr element) { return make(TypeKind::Future, {std::move(element)}); }

TypePtr named_tuple_type(std::string name, std::vector<std::string> fields, std::vector<TypePtr> elements,
                         std::vector<Value> defaults) {
  auto type = make(TypeKind::Tuple, std::move(elements));
  type->name = std::move(name);
  type->defaults = std::move(defaults);
  type->fields = std::move(fields);
  return type;
}

namespace {

/// Where a type stands in a union, whatever the order in which its members were written.
int place_in_union(TypeKind kind) {
  static constexpr TypeKind order[] = {TypeKind::Any,       TypeKind::Enum, TypeKind::Tensor,   TypeKind::Tuple,
                                       TypeKind::List,      TypeKind::Dict, TypeKind::Float,    TypeKind::Complex,
                                       TypeKind::Future,    TypeKind::Int,  TypeKind::None,     TypeKind::String,
                                       TypeKind::Generator, TypeKind::Bool, TypeKind::Optional, TypeKind::Device,
                                       TypeKind::Function,  TypeKind::Class};
  return static_cast<int>(std::ranges::find(order, kind) - std::begin(order));  // numbers come last
}

void sort_members(std::vector<TypePtr>& members) {
  std::ranges::stable_sort(members, [](const TypePtr& a, const TypePtr& b) {
    int x = place_in_union(a->kind), y = place_in_union(b->kind);
    return x != y ? x < y : a->text() < b->text();
  });
}

/// What is part of another member says nothing; whole, broken and complex numbers together are all numbers.
std::vector<TypePtr> without_redundant(const std::vector<TypePtr>& members) {
  std::vector<TypePtr> out;
  for (size_t i = 0; i < members.size(); ++i) {
    bool covered = false;
    for (size_t k = 0; k < members.size() && !covered; ++k)
      covered = k != i && is_subtype(members[i], members[k]) && !(k > i && is_subtype(members[k], members[i]));
    if (!covered) out.push_back(members[i]);
  }
  auto has = [&](TypeKind kind) { return std::ranges::any_of(out, [&](const TypePtr& t) { return t->is(kind); }); };
  auto is_one_of_three = [](const TypePtr& t) {
    return t->is(TypeKind::Int) || t->is(TypeKind::Float) || t->is(TypeKind::Complex);
  };
  if (has(TypeKind::Int) && has(TypeKind::Float) && has(TypeKind::Complex)) {
    std::erase_if(out, is_one_of_three);
    out.push_back(simple_type(TypeKind::Number));
  }
  return out;
}

}  // namespace

TypePtr union_type(std::vector<TypePtr> elements) {
  std::vector<TypePtr> flat;
  bool none = false;
  auto add = [&](const TypePtr& t) {
    for (const TypePtr& f : flat)
      if (same_type(f, t)) return;
    flat.push_back(t);
  };
  for (const TypePtr& t : elements) {
    if (t->is(TypeKind::None)) none = true;
    else if (t->is(TypeKind::Union) || t->is(TypeKind::Optional)) {
      none |= t->is(TypeKind::Optional);
      for (const TypePtr& e : t->elements) e->is(TypeKind::None) ? void(none = true) : add(e);
    } else {
      add(t);
    }
  }
  flat = without_redundant(flat);
  if (flat.empty()) return simple_type(TypeKind::None);
  if (flat.size() == 1) return none ? optional_type(flat[0]) : flat[0];
  if (none) flat.push_back(simple_type(TypeKind::None));
  sort_members(flat);
  return make(TypeKind::Union, std::move(flat));
}

TypePtr class_type(ClassPtr cls) {
  auto type = make(cls->is_enum ? TypeKind::Enum : TypeKind::Class);
  type->cls = std::move(cls);
  return type;
}

TypePtr type_of_schema(const SchemaType& type) {
  using Base = SchemaType::Base;
  TypeKind kind = TypeKind::Any;
  switch (type.base) {
    case Base::Tensor: kind = TypeKind::Tensor; break;
    case Base::Int:
    case Base::SymInt:
    case Base::DType:
    case Base::Layout:
    case Base::MemoryFormat: kind = TypeKind::Int; break;
    case Base::Float:
    case Base::SymFloat: kind = TypeKind::Float; break;
    case Base::Bool:
    case Base::SymBool: kind = TypeKind::Bool; break;
    case Base::Scalar: kind = TypeKind::Number; break;
    case Base::Complex: kind = TypeKind::Complex; break;
    case Base::String: kind = TypeKind::String; break;
    case Base::Device: kind = TypeKind::Device; break;
    case Base::Generator: kind = TypeKind::Generator; break;
    default: break;
  }
  TypePtr result = simple_type(kind);
  if (type.list) result = list_type(type.element_optional ? optional_type(result) : result);
  return type.optional ? optional_type(result) : result;
}

bool same_type(const TypePtr& a, const TypePtr& b) {
  if (a == b) return true;
  if (a->kind != b->kind || a->elements.size() != b->elements.size()) return false;
  if (a->cls != b->cls || a->name != b->name) return false;
  if (a->is(TypeKind::Union))
    return std::all_of(a->elements.begin(), a->elements.end(), [&](const TypePtr& e) {
      return std::any_of(b->elements.begin(), b->elements.end(), [&](const TypePtr& f) { return same_type(e, f); });
    });
  for (size_t i = 0; i < a->elements.size(); ++i)
    if (!same_type(a->elements[i], b->elements[i])) return false;
  return true;
}

namespace {
/// Whether a method takes all that an interface's users give, and gives what they take.
bool stands_for(Function& own, const Function& wanted) {
  if (own.parameters.size() != wanted.parameters.size()) return false;
  for (size_t i = 1; i < wanted.parameters.size(); ++i)
    if (own.parameters[i].name != wanted.parameters[i].name ||
        !is_subtype(wanted.parameters[i].type, own.parameters[i].type))
      return false;
  if (!own.ignored && !own.result) own.ensure();
  return own.result && is_subtype(own.result, wanted.result);
}
}  // namespace

std::string why_not_interface(const ClassType& cls, const ClassType& interface) {
  for (const auto& [name, wanted] : interface.methods) {
    FunctionPtr own = cls.method(name);
    if (!own) return concat("Class '", cls.name, "' does not have method '", name, "'\n");
    if (!stands_for(*own, *wanted))
      return concat("Method on class '", cls.name, "' (1) is not compatible with interface '", interface.name,
                    "' (2)\n  (1) ", own->schema(), "\n  (2) ", wanted->schema(), "\n");
  }
  return "";
}

bool is_subtype(const TypePtr& a, const TypePtr& b) {
  if (same_type(a, b) || b->is(TypeKind::Any)) return true;
  if (a->is(TypeKind::Union))
    return std::all_of(a->elements.begin(), a->elements.end(), [&](const TypePtr& e) { return is_subtype(e, b); });
  if (a->is(TypeKind::Optional)) return is_subtype(a->element(), b) && is_subtype(simple_type(TypeKind::None), b);
  if (b->is(TypeKind::Optional)) return a->is(TypeKind::None) || is_subtype(a, b->element());
  if (b->is(TypeKind::Union))
    return std::any_of(b->elements.begin(), b->elements.end(), [&](const TypePtr& e) { return is_subtype(a, e); });
  if (a->is(TypeKind::Class) && b->is(TypeKind::Class) && b->cls->is_interface)
    return why_not_interface(*a->cls, *b->cls).empty();
  if (b->is(TypeKind::Number)) return a->is(TypeKind::Int) || a->is(TypeKind::Float) || a->is(TypeKind::Complex);
  if (a->is(TypeKind::Tuple) && b->is(TypeKind::Tuple) && a->elements.size() == b->elements.size() &&
      (b->name.empty() || a->name == b->name)) {
    for (size_t i = 0; i < a->elements.size(); ++i)
      if (!is_subtype(a->elements[i], b->elements[i])) return false;
    return true;
  }
  return false;
}

TypePtr unify(const TypePtr& a, const TypePtr& b) {
  if (same_type(a, b)) return a->is(TypeKind::Tensor) && a != b ? tensor_type() : without_details(a);
  if (is_subtype(a, b)) return b;
  if (is_subtype(b, a)) return a;
  if (a->is(TypeKind::None)) return optional_type(b);
  if (b->is(TypeKind::None)) return optional_type(a);
  if (a->is(TypeKind::Tuple) && b->is(TypeKind::Tuple) && a->elements.size() == b->elements.size()) {
    std::vector<TypePtr> parts;
    for (size_t i = 0; i < a->elements.size(); ++i) {
      TypePtr part = unify(a->elements[i], b->elements[i]);
      if (!part) return nullptr;
      parts.push_back(part);
    }
    return tuple_type(std::move(parts));
  }
  return nullptr;
}

TypePtr without_details(const TypePtr& type) {
  if (type->is(TypeKind::Tensor)) return tensor_type();
  if (type->elements.empty()) return type;
  auto copy = std::make_shared<Type>(*type);
  for (TypePtr& e : copy->elements) e = without_details(e);
  return copy;
}

// ---- classes ----

int ClassType::find(std::string_view attribute) const {
  for (size_t i = 0; i < attributes.size(); ++i)
    if (attributes[i].name == attribute) return static_cast<int>(i);
  return -1;
}

int ClassType::add_attribute(Attribute attribute) {
  check(find(attribute.name) < 0, "class '", name, "' has the attribute '", attribute.name, "' twice");
  attributes.push_back(std::move(attribute));
  return static_cast<int>(attributes.size()) - 1;
}

void ClassType::add_method(const std::string& method, FunctionPtr function) {
  if (!methods.contains(method)) method_order.push_back(method);
  methods[method] = std::move(function);
}

FunctionPtr ClassType::method(const std::string& method) const {
  auto found = methods.find(method);
  return found == methods.end() ? nullptr : found->second;
}

// ---- numbers of dtypes ----

int64_t number_of(DType dtype) { return umbra::number_of(dtype); }

DType dtype_of_number(int64_t number) {
  DType dtype = umbra::dtype_of_number(number);
  check<TypeError>(dtype != DType::Undefined, "the number ", number, " stands for a dtype that is not supported");
  return dtype;
}

}  // namespace umbra::jit
