// Values of programs as operators' arguments, and operators' results as values.
#include "jit/program.h"
#include "umbra/generated/functions.h"

namespace umbra::jit {

namespace {

template <class T, class F> Value list_of(const ListObject& list, F&& convert) {
  std::vector<T> items;
  items.reserve(list.items.size());
  for (const Value& v : list.items) items.push_back(convert(v));
  return Value(std::move(items));
}

}  // namespace

Value to_argument(const Value& value, const SchemaType& type) {
  using Base = SchemaType::Base;
  if (value.is_none()) return Value();
  if (auto* list = object_as<ListObject>(value)) {
    switch (type.base) {
      case Base::Tensor: return list_of<Tensor>(*list, [](const Value& v) { return v.tensor(); });
      case Base::Int:
      case Base::SymInt: return list_of<SymInt>(*list, [](const Value& v) { return v.to_sym_int(); });
      case Base::Float: return list_of<double>(*list, [](const Value& v) { return v.to_double(); });
      case Base::Bool: return list_of<bool>(*list, [](const Value& v) { return v.to_bool(); });
      default: return Value(list->items);
    }
  }
  if (type.list && type.list_size > 0 && value.is_int())
    return Value(std::vector<SymInt>(static_cast<size_t>(type.list_size), SymInt(value.to_int())));
  if (type.list && type.list_size > 0 && value.is_double())
    return Value(std::vector<double>(static_cast<size_t>(type.list_size), value.to_double()));
  if (value.is_int()) {
    switch (type.base) {
      case Base::DType: return Value(dtype_of_number(value.to_int()));
      case Base::Layout: return Value(static_cast<Layout>(value.to_int()));
      case Base::MemoryFormat: return Value(static_cast<MemoryFormat>(value.to_int()));
      case Base::Float: return Value(static_cast<double>(value.to_int()));
      default: break;
    }
  }
  if (value.is_string() && type.base == Base::Device) return Value(Device(value.to_string()));
  return Value::borrow(value);
}

Value from_result(Value value, const SchemaType& type) {
  using Tag = Value::Tag;
  auto items = [&](auto&& list) {
    std::vector<Value> out;
    for (size_t i = 0; i < list.size(); ++i) out.emplace_back(Value(list[i]));
    return make_list(type_of_schema({.base = type.base}), std::move(out));
  };
  switch (value.tag()) {
    case Tag::TensorList: return items(value.tensor_list());
    case Tag::IntList: return items(value.int_list());
    case Tag::DoubleList: return items(value.double_list());
    case Tag::DType: return Value(number_of(value.to_dtype()));
    case Tag::Layout: return Value(static_cast<int64_t>(value.to_layout()));
    case Tag::MemoryFormat: return Value(static_cast<int64_t>(value.to_memory_format()));
    default: return value;
  }
}

Value to_list(const Tensor& tensor, const TypePtr& type) {
  if (!type->is(TypeKind::List)) {
    check(tensor.dim() == 0, "Output annotation list dimension and runtime tensor dimension must match for tolist()");
    Scalar item = tensor.item();
    bool floating = item.is_floating(), truth = tensor.dtype() == DType::Bool;
    bool fits = type->is(TypeKind::Float) ? floating : type->is(TypeKind::Int) ? !floating && !truth : truth;
    check(fits, "Output annotation element type and runtime tensor element type must match for tolist()");
    return Value(item);
  }
  check(tensor.dim() > 0, "Output annotation list dimension and runtime tensor dimension must match for tolist()");
  std::vector<Value> items;
  for (int64_t i = 0; i < tensor.size(0); ++i) items.push_back(to_list(tensor.select(0, i), type->element()));
  return make_list(type->element(), std::move(items));
}

}  // namespace umbra::jit
