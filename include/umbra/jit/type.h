// Types of TorchScript programs: what a value of the IR is known to be before anything runs.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "umbra/core/value.h"
#include "umbra/dispatch/schema.h"

namespace UMBRA_API umbra {
namespace jit {

struct Type;
struct ClassType;
struct Function;
using TypePtr = std::shared_ptr<const Type>;
using ClassPtr = std::shared_ptr<ClassType>;
using FunctionPtr = std::shared_ptr<Function>;

enum class TypeKind : uint8_t {
  Tensor,
  Int,
  Float,
  Bool,
  Complex,
  Number,
  String,
  None,
  Any,
  Device,
  Generator,
  Optional,
  List,
  Tuple,
  Dict,
  Union,
  Class,
  Enum,
  Function,
  Future,
};

/// What a trace saw of a tensor; an absent part may be anything.
struct TensorDetails {
  std::optional<DType> dtype;
  std::optional<std::vector<int64_t>> sizes, strides;
  std::optional<bool> requires_grad;
  std::optional<Device> device;
};

struct Type {
  TypeKind kind = TypeKind::Tensor;
  std::vector<TypePtr> elements;    // of Optional, List, Tuple, Dict, Union, Future
  std::string name;                 // of named tuples, by their full name
  std::vector<std::string> fields;  // of named tuples, and of operators' named results
  std::vector<Value> defaults;      // of a named tuple's last fields
  TensorDetails tensor;
  int broadcast = 0;  // of an argument's List: one element stands for so many
  ClassPtr cls;       // of Class and Enum

  bool is(TypeKind k) const { return kind == k; }
  const TypePtr& element(size_t i = 0) const { return elements.at(i); }
  /// As graphs print it: `Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)`, `int[]`.
  std::string text() const;
  /// As source writes it: `Tensor`, `List[int]`.
  std::string annotation() const;
};

const TypePtr& simple_type(TypeKind kind);
const TypePtr& tensor_type();
/// The type of this very tensor.
TypePtr tensor_type_of(const umbra::Tensor& tensor);
TypePtr optional_type(TypePtr element);
TypePtr list_type(TypePtr element);
TypePtr dict_type(TypePtr key, TypePtr value);
TypePtr tuple_type(std::vector<TypePtr> elements);
TypePtr named_tuple_type(std::string name, std::vector<std::string> fields, std::vector<TypePtr> elements,
                         std::vector<Value> defaults = {});
TypePtr union_type(std::vector<TypePtr> elements);
TypePtr class_type(ClassPtr cls);
TypePtr future_type(TypePtr element);
/// The type of an argument or a return of an operator.
TypePtr type_of_schema(const SchemaType& type);

/// Equal but for what is known of tensors.
bool same_type(const TypePtr& a, const TypePtr& b);
bool is_subtype(const TypePtr& a, const TypePtr& b);
/// The least type that both are, or null.
TypePtr unify(const TypePtr& a, const TypePtr& b);
/// The same type with nothing said about its tensors.
TypePtr without_details(const TypePtr& type);

/// An attribute of a class, in the order of its definition.
struct Attribute {
  std::string name;
  TypePtr type;
  bool is_parameter = false, is_buffer = false;
};

/// How many objects of a class there are; a copied class has none.
struct ObjectCount {
  ObjectCount() = default;
  ObjectCount(const ObjectCount&) {}
  ObjectCount& operator=(const ObjectCount&) { return *this; }
  std::atomic<int> count{0};
};

/// A class of the program: of a module, a user's class, an enum (whose members are `constants`), or an interface
/// (whose methods have signatures and no bodies: every class that has them is a subtype).
struct ClassType {
  std::string name;  // "__torch__.Mlp"
  bool is_module = false, is_enum = false, is_interface = false;
  bool is_container = false;  // nn.ModuleList and the like: its modules or parameters can be looped over
  std::vector<Attribute> attributes;
  std::map<std::string, FunctionPtr> methods;
  std::vector<std::string> method_order;
  std::vector<std::pair<std::string, Value>> constants;       // of an enum: its members in order
  TypePtr enum_value;                                         // the type of an enum's values
  std::map<std::string, std::vector<std::string>> overloads;  // the methods that a name may stand for
  std::vector<std::string> pre_hooks, hooks;  // methods that run before and after `forward` when a module is called
  ObjectCount objects;

  int find(std::string_view attribute) const;
  int add_attribute(Attribute attribute);
  void add_method(const std::string& name, FunctionPtr function);
  FunctionPtr method(const std::string& name) const;
};

/// Why objects of a class cannot stand for those of an interface; empty: they can.
std::string why_not_interface(const ClassType& cls, const ClassType& interface);

/// PyTorch's number of a dtype, layout or memory format, which is what programs hold, and back.
int64_t number_of(DType dtype);
DType dtype_of_number(int64_t number);

}  // namespace jit
}  // namespace umbra
