#include "umbra/jit/objects.h"

#include <cmath>
#include <cstdio>

#include "jit/tensor_text.h"
#include "umbra/generated/functions.h"

namespace umbra::jit {

Value* DictObject::find(const Value& wanted) {
  for (auto& [k, v] : items)
    if (equal(k, wanted)) return &v;
  return nullptr;
}

void DictObject::set(const Value& k, Value v) {
  if (Value* found = find(k)) *found = std::move(v);
  else items.emplace_back(k, std::move(v));
}

bool DictObject::erase(const Value& wanted) {
  for (size_t i = 0; i < items.size(); ++i)
    if (equal(items[i].first, wanted)) {
      items.erase(items.begin() + static_cast<long>(i));
      return true;
    }
  return false;
}

Instance::Instance(ClassPtr of) : cls(std::move(of)), slots(cls->attributes.size()) { ++cls->objects.count; }

Instance::~Instance() {
  if (--cls->objects.count > 0 || !cls->is_module) return;
  auto methods = std::exchange(cls->methods, {});  // what they hold may be other modules
  cls->method_order.clear();
}

Value& Instance::attribute(const std::string& name) {
  int i = cls->find(name);
  check<AttributeError>(i >= 0, "'", cls->name, "' object has no attribute '", name, "'");
  if (slots.size() <= static_cast<size_t>(i)) slots.resize(cls->attributes.size());
  return slots[static_cast<size_t>(i)];
}

Value make_list(TypePtr element, std::vector<Value> items) {
  return Value::object(make_counted<ListObject>(std::move(element), std::move(items)));
}

TypePtr type_of(const Value& value) {
  using Tag = Value::Tag;
  switch (value.tag()) {
    case Tag::None: return simple_type(TypeKind::None);
    case Tag::Tensor: return tensor_type();
    case Tag::Int:
    case Tag::UInt:
    case Tag::SymInt:
    case Tag::DType:
    case Tag::Layout:
    case Tag::MemoryFormat: return simple_type(TypeKind::Int);
    case Tag::Double:
    case Tag::SymFloat: return simple_type(TypeKind::Float);
    case Tag::Bool:
    case Tag::SymBool: return simple_type(TypeKind::Bool);
    case Tag::Complex: return simple_type(TypeKind::Complex);
    case Tag::String: return simple_type(TypeKind::String);
    case Tag::Device: return simple_type(TypeKind::Device);
    case Tag::Generator: return simple_type(TypeKind::Generator);
    case Tag::IntList: return list_type(simple_type(TypeKind::Int));
    case Tag::DoubleList: return list_type(simple_type(TypeKind::Float));
    case Tag::BoolList: return list_type(simple_type(TypeKind::Bool));
    case Tag::TensorList: return list_type(tensor_type());
    case Tag::List: {
      std::vector<TypePtr> parts;
      for (const Value& v : value.list()) parts.push_back(type_of(v));
      return tuple_type(std::move(parts));
    }
    case Tag::Object: break;
  }
  if (auto* list = object_as<ListObject>(value)) return list_type(list->element);
  if (auto* dict = object_as<DictObject>(value)) return dict_type(dict->key, dict->value);
  if (auto* instance = object_as<Instance>(value)) return class_type(instance->cls);
  if (auto* member = object_as<EnumValue>(value)) return class_type(member->cls);
  if (object_as<FunctionObject>(value)) return simple_type(TypeKind::Function);
  return simple_type(TypeKind::Any);
}

bool has_type(const Value& value, const Type& type) {
  switch (type.kind) {
    case TypeKind::Any: return true;
    case TypeKind::None: return value.is_none();
    case TypeKind::Optional: return value.is_none() || has_type(value, *type.element());
    case TypeKind::Union:
      for (const TypePtr& t : type.elements)
        if (has_type(value, *t)) return true;
      return false;
    case TypeKind::Tensor: return value.is_tensor();
    case TypeKind::Number: return value.is_int() || value.is_double() || value.tag() == Value::Tag::Complex;
    case TypeKind::Tuple: {
      if (!value.is_list() || value.list().size() != type.elements.size()) return false;
      for (size_t i = 0; i < type.elements.size(); ++i)
        if (!has_type(value.list()[i], *type.elements[i])) return false;
      return true;
    }
    case TypeKind::List: {
      auto* list = object_as<ListObject>(value);
      return list && is_subtype(list->element, type.element());
    }
    case TypeKind::Dict: {
      auto* dict = object_as<DictObject>(value);
      return dict && is_subtype(dict->key, type.element(0)) && is_subtype(dict->value, type.element(1));
    }
    default: return is_subtype(type_of(value), std::make_shared<Type>(type));
  }
}

bool equal(const Value& a, const Value& b) {
  if (a.is_scalar() && b.is_scalar() && a.tag() != b.tag()) return a.to_double() == b.to_double();
  if (a.is_list() && b.is_list()) {
    if (a.list().size() != b.list().size()) return false;
    for (size_t i = 0; i < a.list().size(); ++i)
      if (!equal(a.list()[i], b.list()[i])) return false;
    return true;
  }
  auto *x = object_as<ListObject>(a), *y = object_as<ListObject>(b);
  if (x && y) {
    if (x->items.size() != y->items.size()) return false;
    for (size_t i = 0; i < x->items.size(); ++i) {
      const Value &p = x->items[i], &q = y->items[i];
      bool same = p.is_tensor() && q.is_tensor() ? umbra::equal(p.tensor_ref(), q.tensor_ref()) : equal(p, q);
      if (!same) return false;
    }
    return true;
  }
  auto *d = object_as<DictObject>(a), *e = object_as<DictObject>(b);
  if (d && e) {
    if (d->items.size() != e->items.size()) return false;
    for (auto& [k, v] : d->items) {
      Value* other = e->find(k);
      if (!other || !equal(v, *other)) return false;
    }
    return true;
  }
  auto *m = object_as<EnumValue>(a), *n = object_as<EnumValue>(b);
  if (m && n) return m->cls == n->cls && m->member == n->member;
  return a.equals(b);
}

/// A number as C++ writes it with all its digits: 3., 0.10000000000000001.
std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.17g", value);
  std::string out = buffer;
  return out.find_first_of(".e") == std::string::npos ? out + "." : out;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') (out += '\\') += c;
    else if (c == '\n') out += "\\n";
    else if (c == '\r') out += "\\r";
    else if (c == '\t') out += "\\t";
    else if (static_cast<unsigned char>(c) < 32 || c == 127) {
      char code[8];
      std::snprintf(code, sizeof code, "\\%03o", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += code;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

namespace {
template <class Items, class F> std::string listed(const Items& items, const char* open, const char* close, F&& text) {
  std::string out = open;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ", ";
    first = false;
    out += text(item);
  }
  return out + close;
}
}  // namespace

namespace {}  // namespace

std::string to_text(const Value& value, bool quote) {
  auto inner = [](const Value& v) { return to_text(v); };
  if (value.is_string()) return quote ? "'" + value.to_string() + "'" : value.to_string();
  if (value.is_double()) return float_text(value.to_double());
  if (value.tag() == Value::Tag::Device) return to_string(value.to_device());
  if (value.tag() == Value::Tag::Complex) {
    std::complex<double> z = value.to_complex();
    return float_text(z.real()) + (std::signbit(z.imag()) ? "" : "+") + float_text(z.imag()) + "j";
  }
  if (value.is_list())
    return value.list().size() == 1 ? "(" + inner(value.list()[0]) + ",)" : listed(value.list(), "(", ")", inner);
  if (auto* list = object_as<ListObject>(value)) return listed(list->items, "[", "]", inner);
  if (auto* dict = object_as<DictObject>(value))
    return listed(dict->items, "{", "}", [&](const auto& p) { return inner(p.first) + ": " + inner(p.second); });
  if (auto* member = object_as<EnumValue>(value))
    return concat("Enum<", member->cls->name.substr(member->cls->name.rfind('.') + 1), ".",
                  member->cls->constants[member->member].first, ">");
  if (auto* instance = object_as<Instance>(value)) return "<" + instance->cls->name + " object>";
  if (value.is_tensor()) return value.tensor_ref().defined() ? tensor_text(value.tensor_ref()) : "None";
  return to_string(value);
}

std::string to_source(const Value& value) {
  using Tag = Value::Tag;
  switch (value.tag()) {
    case Tag::None: return "None";
    case Tag::String: return quoted(value.to_string());
    case Tag::Device: return "torch.device(" + quoted(to_string(value.to_device())) + ")";
    case Tag::DType: return std::to_string(number_of(value.to_dtype()));
    case Tag::Layout: return std::to_string(static_cast<int>(value.to_layout()));
    case Tag::MemoryFormat: return std::to_string(static_cast<int>(value.to_memory_format()));
    case Tag::Double: return float_text(value.to_double());
    case Tag::List: {
      std::string out = listed(value.list(), "(", "", to_source);
      return out + (value.list().size() == 1 ? ",)" : ")");
    }
    default: break;
  }
  if (auto* list = object_as<ListObject>(value)) {
    std::string text = listed(list->items, "[", "]", to_source);
    return list->items.empty() ? "annotate(List[" + list->element->annotation() + "], [])" : text;
  }
  if (auto* dict = object_as<DictObject>(value)) {
    std::string text =
        listed(dict->items, "{", "}", [](const auto& p) { return to_source(p.first) + ": " + to_source(p.second); });
    if (!dict->items.empty()) return text;
    return "annotate(Dict[" + dict->key->annotation() + ", " + dict->value->annotation() + "], {})";
  }
  if (auto* member = object_as<EnumValue>(value))
    return member->cls->name + "." + member->cls->constants[member->member].first;
  return to_string(value);
}

Value deep_copy(const Value& value, bool clone_tensors, std::unordered_map<const void*, Value>& memo) {
  if (value.is_tensor()) {
    if (!clone_tensors) return value;
    auto found = memo.find(value.tensor_impl());
    if (found != memo.end()) return found->second;
    const Tensor& t = value.tensor_ref();
    Tensor copy = t.detach().clone();
    if (t.requires_grad()) copy.requires_grad_();
    return memo[value.tensor_impl()] = Value(copy);
  }
  if (value.is_list()) {
    std::vector<Value> items;
    for (const Value& v : value.list()) items.push_back(deep_copy(v, clone_tensors, memo));
    return Value(std::move(items));
  }
  if (!value.is_object()) return value;
  if (auto found = memo.find(value.object()); found != memo.end()) return found->second;
  if (auto* list = object_as<ListObject>(value)) {
    Value copy = make_list(list->element, {});
    memo[value.object()] = copy;
    for (const Value& v : list->items) object_as<ListObject>(copy)->items.push_back(deep_copy(v, clone_tensors, memo));
    return copy;
  }
  if (auto* dict = object_as<DictObject>(value)) {
    auto made = make_counted<DictObject>(dict->key, dict->value);
    memo[value.object()] = Value::object(made);
    for (auto& [k, v] : dict->items) made->items.emplace_back(k, deep_copy(v, clone_tensors, memo));
    return Value::object(made);
  }
  if (auto* instance = object_as<Instance>(value)) {
    auto made = make_counted<Instance>(instance->cls);
    memo[value.object()] = Value::object(made);
    for (size_t i = 0; i < instance->slots.size(); ++i)
      made->slots[i] = deep_copy(instance->slots[i], clone_tensors, memo);
    return Value::object(made);
  }
  return value;
}

}  // namespace umbra::jit
