// What programs hold beside tensors and numbers: lists and dicts that can be changed, objects of classes, functions.
// Tuples are a Value's plain lists.
#pragma once

#include "umbra/jit/ir.h"

namespace UMBRA_API umbra {
namespace jit {

struct ListObject final : RefCounted {
  TypePtr element;
  std::vector<Value> items;
  ListObject(TypePtr element, std::vector<Value> items) : element(std::move(element)), items(std::move(items)) {}
};

struct DictObject final : RefCounted {
  TypePtr key, value;
  std::vector<std::pair<Value, Value>> items;  // in the order of insertion
  DictObject(TypePtr key, TypePtr value) : key(std::move(key)), value(std::move(value)) {}
  Value* find(const Value& key);
  void set(const Value& key, Value value);
  bool erase(const Value& key);
};

struct Instance final : RefCounted {
  const ClassPtr cls;
  std::vector<Value> slots;
  explicit Instance(ClassPtr cls);
  /// A module's class has its methods as long as there is a module of it: their graphs name the class, so that neither
  /// would ever go.
  ~Instance() override;
  Value& attribute(const std::string& name);
};

struct EnumValue final : RefCounted {
  ClassPtr cls;
  size_t member;
  EnumValue(ClassPtr cls, size_t member) : cls(std::move(cls)), member(member) {}
};

struct FunctionObject final : RefCounted {
  FunctionPtr function;
  explicit FunctionObject(FunctionPtr function) : function(std::move(function)) {}
};

/// What an object of the program is, or null.
template <class T> T* object_as(const Value& value) {
  return value.is_object() ? dynamic_cast<T*>(value.object()) : nullptr;
}
/// The same, or an error that says what was expected.
template <class T> T& expect_object(const Value& value, const char* what) {
  T* object = object_as<T>(value);
  detail::check(object, "expected ", what, " in a TorchScript program, but got ", tag_name(value.tag()));
  return *object;
}

Value make_list(TypePtr element, std::vector<Value> items);
/// The type of a value as far as it shows by itself.
TypePtr type_of(const Value& value);
/// Whether a value is of a type.
bool has_type(const Value& value, const Type& type);
/// Equality as Python has it, but for tensors: the same tensor.
bool equal(const Value& a, const Value& b);
/// As programs print it: numbers with all their digits, texts inside containers without quotes.
std::string to_text(const Value& value, bool quoted = false);
/// As source writes a constant.
std::string to_source(const Value& value);
std::string quoted(std::string_view text);
std::string float_text(double value);
/// A copy whose containers and objects are its own; tensors are shared, or cloned.
Value deep_copy(const Value& value, bool clone_tensors, std::unordered_map<const void*, Value>& memo);

}  // namespace jit
}  // namespace umbra
