// Between tensors and numbers, and what programs ask of tensors that is no operator.
#include <unordered_map>

#include "jit/builtin_rules.h"
#include "jit/program.h"
#include "umbra/autograd/autocast.h"
#include "umbra/autograd/autograd.h"
#include "umbra/generated/functions.h"

namespace umbra::jit {
namespace {

bool one_tensor(const Types& t) { return t.size() == 1 && is_tensor(t[0]); }
TypePtr tensor_to_int(const Types& t) { return one_tensor(t) ? int_type() : nullptr; }
TypePtr tensor_to_float(const Types& t) { return one_tensor(t) ? float_type() : nullptr; }
TypePtr tensor_to_bool(const Types& t) { return one_tensor(t) ? bool_type() : nullptr; }
TypePtr tensor_to_number(const Types& t) { return one_tensor(t) ? simple_type(TypeKind::Number) : nullptr; }
TypePtr requiring(const Types& t) {
  bool fits = !t.empty() && t.size() <= 2 && is_tensor(t[0]) && (t.size() == 1 || is_bool(t[1]));
  return fits ? tensor_type() : nullptr;
}
TypePtr tensor_to_sizes(const Types& t) { return one_tensor(t) ? list_type(int_type()) : nullptr; }
TypePtr tensor_to_device(const Types& t) { return one_tensor(t) ? simple_type(TypeKind::Device) : nullptr; }
TypePtr tensor_to_tensor(const Types& t) { return one_tensor(t) ? tensor_type() : nullptr; }
TypePtr tensor_to_optional(const Types& t) { return one_tensor(t) ? optional_type(tensor_type()) : nullptr; }
TypePtr size_at(const Types& t) { return t.size() == 2 && is_tensor(t[0]) && is_int(t[1]) ? int_type() : nullptr; }
TypePtr contiguity(const Types& t) { return (one_tensor(t) || size_at(t)) ? bool_type() : nullptr; }
TypePtr number_to_tensor(const Types& t) {
  return t.size() == 1 && (is_number(t[0]) || is_bool(t[0])) ? tensor_type() : nullptr;
}
TypePtr length(const Types& t) { return tensor_to_int(t); }
bool holds_data(const TypePtr& t) {
  if (is_list(t)) return holds_data(t->element());
  return is_number(t) || is_bool(t) || is_tensor(t);
}
TypePtr tensor_from_data(const Types& t) { return t.size() == 4 && holds_data(t[0]) ? tensor_type() : nullptr; }
TypePtr starts_with_tensor(const Types& t, const TypePtr& result) {
  return !t.empty() && is_tensor(t[0]) ? result : nullptr;
}
Value no_nested_tensors(Value*, size_t) { fail<NotImplementedError>("nested tensors are not in Umbra yet"); }
TypePtr device_rule(const Types& t) {
  bool fits = !t.empty() && t.size() <= 2 && is_string(t[0]) && (t.size() == 1 || is_int(t[1]));
  return fits ? simple_type(TypeKind::Device) : nullptr;
}
TypePtr device_text(const Types& t) { return t.size() == 1 && t[0]->is(TypeKind::Device) ? string_type() : nullptr; }
TypePtr device_index(const Types& t) {
  return t.size() == 1 && t[0]->is(TypeKind::Device) ? optional_type(int_type()) : nullptr;
}
TypePtr unwrapped(const Types& t) {
  if (t.size() != 1) return nullptr;
  return t[0]->is(TypeKind::Optional) ? t[0]->element() : t[0];
}
TypePtr hash_rule(const Types& t) { return t.size() == 1 ? int_type() : nullptr; }

size_t hash_of(const Value& v) {
  if (v.is_none()) return 0;
  if (v.is_bool()) return v.to_bool() ? 1 : 0;
  if (v.is_int()) return static_cast<size_t>(v.to_int());
  if (v.is_double()) return std::hash<double>()(v.to_double());
  if (v.is_string()) return std::hash<std::string>()(v.to_string());
  if (v.is_tensor()) return std::hash<const void*>()(v.tensor_ref().impl());
  if (v.tag() == Value::Tag::Device) return std::hash<std::string>()(to_string(v.to_device()));
  if (!v.is_list()) fail("unhashable type: '", type_of(v)->annotation(), "'");
  size_t out = v.list().size();  // a tuple
  for (const Value& part : v.list()) out = out * 1000003 ^ hash_of(part);
  return out;
}

TypePtr contains_rule(const Types& t) {
  return t.size() == 2 && is_tensor(t[0]) && is_number(t[1]) ? bool_type() : nullptr;
}
TypePtr dtype_to_bool(const Types& t) { return t.size() == 1 && is_int(t[0]) ? bool_type() : nullptr; }
TypePtr no_arguments_bool(const Types& t) { return t.empty() ? bool_type() : nullptr; }

Scalar single(const Value& v) {
  const Tensor& t = v.tensor_ref();
  check(t.numel() == 1, "a Tensor with ", t.numel(), " elements cannot be converted to Scalar");
  return t.item();
}

Value sizes_of(SymIntArrayRef sizes) {
  std::vector<Value> out;
  for (SymInt s : sizes) out.emplace_back(s);
  return make_list(int_type(), std::move(out));
}

/// The tensor of nested lists of numbers.
void gather(const Value& v, size_t depth, std::vector<int64_t>& shape, std::vector<Value>& flat) {
  auto* list = object_as<ListObject>(v);
  if (!list) {
    check<ValueError>(depth == shape.size(), "expected sequences of equal length in torch.tensor()");
    flat.push_back(v.is_tensor() ? Value(single(v)) : v);
    return;
  }
  auto n = static_cast<int64_t>(list->items.size());
  if (flat.empty() && depth == shape.size()) shape.push_back(n);
  check<ValueError>(depth < shape.size() && shape[depth] == n, "Expected sequences of equal length in torch.tensor()");
  for (const Value& item : list->items) gather(item, depth + 1, shape, flat);
}

DType inferred(const std::vector<Value>& flat, const Value& data) {
  bool floating = false, all_bool = true, complex = false;
  for (const Value& v : flat) {
    floating |= v.is_double();
    complex |= v.tag() == Value::Tag::Complex;
    all_bool &= v.is_bool();
  }
  if (flat.empty()) {
    TypePtr type = type_of(data);
    while (is_list(type)) type = type->element();
    return is_int(type) ? DType::Int64 : is_bool(type) ? DType::Bool : default_dtype();
  }
  if (complex) return complex_type(default_dtype());
  return floating ? default_dtype() : all_bool ? DType::Bool : DType::Int64;
}

Tensor tensor_of_data(const Value& data, const Value& dtype, const Value& device) {
  std::vector<int64_t> shape;
  std::vector<Value> flat;
  if (data.is_tensor()) return data.tensor_ref().detach().clone();
  gather(data, 0, shape, flat);
  DType type = dtype.is_none() ? inferred(flat, data) : dtype_of_number(dtype.to_int());
  Tensor out = empty({static_cast<int64_t>(flat.size())}, {.dtype = type});
  for (size_t i = 0; i < flat.size(); ++i) out.select(0, static_cast<int64_t>(i)).fill_(flat[i].to_scalar());
  out = out.view(shape);
  return device.is_none() || device.to_device() == out.device() ? out : out.to(device.to_device());
}

Tensor number_tensor(const Value& v) {
  Scalar number = v.to_scalar();
  DType type = number.is_bool() ? DType::Bool : number.is_integral(false) ? DType::Int64 : DType::Complex128;
  if (number.is_floating()) type = DType::Float64;
  return full({}, number, {.dtype = type});
}

}  // namespace

const std::vector<Builtin> kTensorBuiltins = {
    {"aten::hash", hash_rule, [](Value* a, size_t) { return Value(static_cast<int64_t>(hash_of(a[0]))); }},
    {"aten::Int", tensor_to_int, [](Value* a, size_t) { return Value(single(a[0]).to_int()); }},
    {"aten::Float", tensor_to_float, [](Value* a, size_t) { return Value(single(a[0]).to_double()); }},
    {"aten::Bool", tensor_to_bool,
     [](Value* a, size_t) {
       const Tensor& t = a[0].tensor_ref();
       if (t.is_fake() && t.sym_numel() == 1)
         return undecided(t.dtype() == DType::Bool && t.dim() == 0 ? t : t.reshape({}).ne(0));
       check(t.numel() == 1, "Boolean value of Tensor with ", t.numel() == 0 ? "no values" : "more than one value",
             " is ambiguous");
       return Value(single(a[0]).to_bool());
     }},
    {"aten::IntImplicit", tensor_to_int,
     [](Value* a, size_t) {
       check(a[0].tensor_ref().dim() == 0, "Cannot input a tensor of dimension other than 0 as a scalar argument");
       return Value(single(a[0]).to_int());
     }},
    {"aten::FloatImplicit", tensor_to_float, [](Value* a, size_t) { return Value(single(a[0]).to_double()); }},
    {"aten::ScalarImplicit", tensor_to_number, [](Value* a, size_t) { return Value(single(a[0])); }},
    {"aten::ComplexImplicit", [](const Types& t) { return one_tensor(t) ? simple_type(TypeKind::Complex) : nullptr; },
     [](Value* a, size_t) { return Value(single(a[0]).to_complex()); }},
    {"prim::NumToTensor", number_to_tensor, [](Value* a, size_t) { return Value(number_tensor(a[0])); }},
    {"aten::size", tensor_to_sizes, [](Value* a, size_t) { return sizes_of(a[0].tensor_ref().sym_sizes()); }},
    {"prim::shape", tensor_to_sizes, [](Value* a, size_t) { return sizes_of(a[0].tensor_ref().sym_sizes()); }},
    {"aten::stride", tensor_to_sizes, [](Value* a, size_t) { return sizes_of(a[0].tensor_ref().sym_strides()); }},
    {"aten::size", size_at, [](Value* a, size_t) { return Value(a[0].tensor_ref().sym_size(a[1].to_int())); }},
    {"aten::stride", size_at, [](Value* a, size_t) { return Value(a[0].tensor_ref().sym_stride(a[1].to_int())); }},
    {"aten::numel", tensor_to_int, [](Value* a, size_t) { return Value(a[0].tensor_ref().sym_numel()); }},
    {"aten::dim", tensor_to_int, [](Value* a, size_t) { return Value(a[0].tensor_ref().dim()); }},
    {"aten::storage_offset", tensor_to_int,
     [](Value* a, size_t) { return Value(a[0].tensor_ref().sym_storage_offset()); }},
    {"aten::element_size", tensor_to_int, [](Value* a, size_t) { return Value(a[0].tensor_ref().item_size()); }},
    {"aten::len", length,
     [](Value* a, size_t) {
       check<TypeError>(a[0].tensor_ref().dim() > 0, "len() of a 0-d tensor");
       return Value(a[0].tensor_ref().sym_size(0));
     }},
    {"prim::dtype", tensor_to_int, [](Value* a, size_t) { return Value(number_of(a[0].tensor_ref().dtype())); }},
    {"prim::layout", tensor_to_int,
     [](Value* a, size_t) { return Value(static_cast<int64_t>(a[0].tensor_ref().layout())); }},
    {"prim::device", tensor_to_device, [](Value* a, size_t) { return Value(a[0].tensor_ref().device()); }},
    {"prim::is_cuda", tensor_to_bool,
     [](Value* a, size_t) { return Value(a[0].tensor_ref().device().type == DeviceType::CUDA); }},
    {"prim::is_cpu", tensor_to_bool,
     [](Value* a, size_t) { return Value(a[0].tensor_ref().device().type == DeviceType::CPU); }},
    {"prim::is_meta", tensor_to_bool, [](Value* a, size_t) { return Value(a[0].tensor_ref().is_meta()); }},
    {"prim::is_sparse", tensor_to_bool,
     [](Value* a, size_t) { return Value(a[0].tensor_ref().layout() == Layout::SparseCoo); }},
    {"prim::is_quantized", tensor_to_bool, [](Value*, size_t) { return Value(false); }},
    {"prim::is_ipu", tensor_to_bool, [](Value*, size_t) { return Value(false); }},
    {"prim::is_xla", tensor_to_bool, [](Value*, size_t) { return Value(false); }},
    {"prim::is_mtia", tensor_to_bool, [](Value*, size_t) { return Value(false); }},
    {"prim::is_maia", tensor_to_bool, [](Value*, size_t) { return Value(false); }},
    {"prim::is_vulkan", tensor_to_bool, [](Value*, size_t) { return Value(false); }},
    {"prim::is_sparse_csr", tensor_to_bool,
     [](Value* a, size_t) { return Value(a[0].tensor_ref().layout() == Layout::SparseCsr); }},
    {"prim::nbytes", tensor_to_int,
     [](Value* a, size_t) { return Value(a[0].tensor_ref().numel() * a[0].tensor_ref().item_size()); }},
    {"aten::_unwrap_optional", unwrapped,
     [](Value* a, size_t) {
       check(!a[0].is_none(), "Unwrapping null optional");
       return a[0];
     }},
    {"prim::is_nested", tensor_to_bool, [](Value*, size_t) { return Value(false); }},
    {"prim::is_mkldnn", tensor_to_bool, [](Value*, size_t) { return Value(false); }},
    {"prim::is_xpu", tensor_to_bool, [](Value*, size_t) { return Value(false); }},
    {"prim::is_mps", tensor_to_bool, [](Value*, size_t) { return Value(false); }},
    {"prim::requires_grad", tensor_to_bool, [](Value* a, size_t) { return Value(a[0].tensor_ref().requires_grad()); }},
    {"aten::requires_grad_", requiring,
     [](Value* a, size_t n) {
       Tensor t = a[0].tensor();
       return Value(t.requires_grad_(n < 2 || a[1].to_bool()));
     }},
    {"aten::backward", [](const Types& t) { return one_tensor(t) ? none_type() : nullptr; },
     [](Value* a, size_t) { return a[0].tensor_ref().backward(), Value(); }},
    {"prim::grad", tensor_to_optional, [](Value* a, size_t) { return Value(a[0].tensor_ref().grad()); }},
    {"prim::data", tensor_to_tensor, [](Value* a, size_t) { return Value(a[0].tensor_ref().detach()); }},
    {"aten::is_floating_point", tensor_to_bool,
     [](Value* a, size_t) { return Value(a[0].tensor_ref().is_floating_point()); }},
    {"aten::is_complex", tensor_to_bool, [](Value* a, size_t) { return Value(a[0].tensor_ref().is_complex()); }},
    {"aten::is_contiguous", contiguity,
     [](Value* a, size_t n) {
       auto format = n == 2 ? static_cast<MemoryFormat>(a[1].to_int()) : MemoryFormat::Contiguous;
       return Value(a[0].tensor_ref().is_contiguous(format));
     }},
    {"aten::tensor", tensor_from_data,
     [](Value* a, size_t) {
       Tensor t = tensor_of_data(a[0], a[1], a[2]);
       return Value(!a[3].is_none() && a[3].to_bool() ? t.requires_grad_() : t);
     }},
    {"aten::as_tensor", [](const Types& t) { return t.size() == 3 && holds_data(t[0]) ? tensor_type() : nullptr; },
     [](Value* a, size_t) {
       if (!a[0].is_tensor()) return Value(tensor_of_data(a[0], a[1], a[2]));
       Tensor t = a[0].tensor();
       if (!a[1].is_none()) t = t.to(dtype_of_number(a[1].to_int()));
       return Value(a[2].is_none() ? t : t.to(a[2].to_device()));
     }},
    {"aten::device", device_rule,
     [](Value* a, size_t n) {
       std::string index = n == 2 ? ":" + std::to_string(a[1].to_int()) : "";
       return Value(Device(a[0].to_string() + index));
     }},
    {"prim::type", device_text,
     [](Value* a, size_t) {
       std::string text = to_string(a[0].to_device());
       return Value(text.substr(0, text.find(':')));
     }},
    {"prim::index", device_index,
     [](Value* a, size_t) {
       Device d = a[0].to_device();
       return d.type == DeviceType::CPU ? Value() : Value(static_cast<int64_t>(d.index));
     }},
    {"aten::__contains__", contains_rule,
     [](Value* a, size_t) { return Value(a[0].tensor_ref().eq(a[1].to_scalar()).any().item().to_bool()); }},
    {"prim::is_floating_point_dtype", dtype_to_bool,
     [](Value* a, size_t) { return Value(is_floating(dtype_of_number(a[0].to_int()))); }},
    {"aten::set_grad_enabled", [](const Types& t) { return t.size() == 1 && is_bool(t[0]) ? none_type() : nullptr; },
     [](Value* a, size_t) { return set_grad_enabled(a[0].to_bool()), Value(); }},
    {"aten::manual_seed", [](const Types& t) { return t.size() == 1 && is_int(t[0]) ? none_type() : nullptr; },
     [](Value* a, size_t) { return manual_seed(static_cast<uint64_t>(a[0].to_int())), Value(); }},
    {"aten::is_autocast_enabled", no_arguments_bool,
     [](Value*, size_t) { return Value(autocast_state(DeviceType::CUDA).enabled); }},
    {"aten::is_autocast_cpu_enabled", no_arguments_bool,
     [](Value*, size_t) { return Value(autocast_state(DeviceType::CPU).enabled); }},
    {"aten::get_autocast_dtype", [](const Types& t) { return t.size() == 1 && is_string(t[0]) ? int_type() : nullptr; },
     [](Value* a, size_t) { return Value(number_of(autocast_state(Device(a[0].to_string()).type).dtype)); }},
    {"aten::is_grad_enabled", no_arguments_bool, [](Value*, size_t) { return Value(is_grad_enabled()); }},
    // Programs of PyTorch's transformers have branches on nested tensors, which most runs do not take.
    {"aten::_nested_tensor_from_mask_left_aligned", [](const Types& t) { return starts_with_tensor(t, bool_type()); },
     no_nested_tensors},
    {"aten::_nested_tensor_from_mask", [](const Types& t) { return starts_with_tensor(t, tensor_type()); },
     no_nested_tensors},
    {"aten::to_padded_tensor", [](const Types& t) { return starts_with_tensor(t, tensor_type()); }, no_nested_tensors},
};

const std::vector<const Builtin*>& builtins(const std::string& name) {
  static const std::unordered_map<std::string, std::vector<const Builtin*>> table = [] {
    std::unordered_map<std::string, std::vector<const Builtin*>> out;
    for (const auto* list : {&kNumberBuiltins, &kContainerBuiltins, &kStringBuiltins, &kTensorBuiltins})
      for (const Builtin& b : *list) out[b.name].push_back(&b);
    return out;
  }();
  static const std::vector<const Builtin*> none;
  auto found = table.find(name);
  return found == table.end() ? none : found->second;
}

const Builtin* find_builtin(const std::string& name, const Types& types, TypePtr* result) {
  for (const Builtin* b : builtins(name))
    if (TypePtr type = b->rule(types)) {
      *result = type;
      return b;
    }
  return nullptr;
}

}  // namespace umbra::jit
