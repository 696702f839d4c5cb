// What the allowed names stand for: each is done here, none is looked up anywhere else.
#include "io/text.h"
#include "io/unpickler.h"

namespace umbra::io {
namespace {

enum class Name {
  OrderedDict,
  RebuildTensor,
  RebuildTensorV2,
  RebuildTensorV3,
  RebuildParameter,
  RebuildParameterWithState,
  RebuildFromType,
  TensorType,
  ParameterType,
  Size,
  Device,
  EncodeBytes,
  TypedStorage,
  UntypedStorage,
  ScriptList,
  ScriptTag,
  ScriptClass,
};

struct Known {
  const char* name;
  Name id;
  DType dtype = DType::Undefined;
};

constexpr Known kNames[] = {
    {"collections.OrderedDict", Name::OrderedDict},
    {"torch._utils._rebuild_tensor", Name::RebuildTensor},
    {"torch._utils._rebuild_tensor_v2", Name::RebuildTensorV2},
    {"torch._utils._rebuild_tensor_v3", Name::RebuildTensorV3},
    {"torch._utils._rebuild_parameter", Name::RebuildParameter},
    {"torch._utils._rebuild_parameter_with_state", Name::RebuildParameterWithState},
    {"torch._tensor._rebuild_from_type_v2", Name::RebuildFromType},
    {"torch.Tensor", Name::TensorType},
    {"torch.nn.parameter.Parameter", Name::ParameterType},
    {"torch.Size", Name::Size},
    {"torch.device", Name::Device},
    {"_codecs.encode", Name::EncodeBytes},
    {"torch.DoubleStorage", Name::TypedStorage, DType::Float64},
    {"torch.FloatStorage", Name::TypedStorage, DType::Float32},
    {"torch.HalfStorage", Name::TypedStorage, DType::Float16},
    {"torch.BFloat16Storage", Name::TypedStorage, DType::BFloat16},
    {"torch.LongStorage", Name::TypedStorage, DType::Int64},
    {"torch.IntStorage", Name::TypedStorage, DType::Int32},
    {"torch.ShortStorage", Name::TypedStorage, DType::Int16},
    {"torch.CharStorage", Name::TypedStorage, DType::Int8},
    {"torch.ByteStorage", Name::TypedStorage, DType::UInt8},
    {"torch.BoolStorage", Name::TypedStorage, DType::Bool},
    {"torch.ComplexFloatStorage", Name::TypedStorage, DType::Complex64},
    {"torch.ComplexDoubleStorage", Name::TypedStorage, DType::Complex128},
    {"torch.storage.UntypedStorage", Name::UntypedStorage},
};

/// Only in TorchScript's pickles.
constexpr Known kScriptNames[] = {
    {"torch.jit._pickle.build_intlist", Name::ScriptList},   {"torch.jit._pickle.build_doublelist", Name::ScriptList},
    {"torch.jit._pickle.build_boollist", Name::ScriptList},  {"torch.jit._pickle.build_tensorlist", Name::ScriptList},
    {"torch.jit._pickle.restore_type_tag", Name::ScriptTag},
};

/// The name behind a Global: its place in the tables.
const Known& known(int64_t index) {
  static constexpr Known kScriptClass{"", Name::ScriptClass};
  auto i = static_cast<size_t>(index);
  if (i < std::size(kNames)) return kNames[i];
  return i - std::size(kNames) < std::size(kScriptNames) ? kScriptNames[i - std::size(kNames)] : kScriptClass;
}

constexpr int64_t kScriptClassIndex = std::size(kNames) + std::size(kScriptNames);

}  // namespace

PickleValue Unpickler::global(std::string_view module, std::string_view name) const {
  std::string full = concat(module, ".", name);
  auto make = [&](int64_t index) {
    PickleValue value(Kind::Global, std::make_shared<Node>());
    value.node_->text = full;
    value.int_ = index;
    return value;
  };
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (full == kNames[i].name) return make(static_cast<int64_t>(i));
  if (module == "torch") {
    DType dtype = dtype_from_name(std::string(name));
    if (dtype != DType::Undefined) return PickleValue(dtype);
  }
  if (options_.script_classes) {
    for (size_t i = 0; i < std::size(kScriptNames); ++i)
      if (full == kScriptNames[i].name) return make(static_cast<int64_t>(std::size(kNames) + i));
    if (full.starts_with("__torch__.")) return make(kScriptClassIndex);
  }
  refuse("it refers to '", printable(full),
         "', which is not among the names that files of tensors may use; nothing was run");
}

PickleValue Unpickler::reduce(const PickleValue& function, const PickleValue& arguments) {
  if (function.kind() == Kind::Global && known(function.int_).id == Name::ScriptClass && !arguments.is_tuple()) {
    PickleValue member = keep(PickleValue::object(function.node_->text));  // an enum's, by its value
    member.node_->items[0] = arguments;
    return member;
  }
  if (function.kind() != Kind::Global || !arguments.is_tuple())
    refuse("its pickle is damaged: it calls ", function.kind_name(), " with ", arguments.kind_name());
  const Items& args = arguments.items();
  switch (known(function.int_).id) {
    case Name::OrderedDict: return ordered_dict(args);
    case Name::RebuildTensor:
    case Name::RebuildTensorV2: return rebuild_tensor(args, false);
    case Name::RebuildTensorV3: return rebuild_tensor(args, true);
    case Name::RebuildParameter:
    case Name::RebuildParameterWithState: return rebuild_parameter(args);
    case Name::RebuildFromType: {
      // (function, type, arguments, attributes): a tensor that had attributes of the user's. They are left out.
      bool plain = args.size() == 4 && args[1].kind() == Kind::Global &&
                   (known(args[1].int_).id == Name::TensorType || known(args[1].int_).id == Name::ParameterType);
      bool nested = plain && args[0].kind() == Kind::Global && known(args[0].int_).id != Name::RebuildFromType;
      if (!nested) refuse("it holds a tensor of a class that is not supported");
      return reduce(args[0], args[2]);
    }
    case Name::Size: {
      if (args.size() != 1) break;
      Items sizes;
      for (int64_t size : integers(args[0], "a torch.Size")) sizes.emplace_back(size);
      return keep(PickleValue::size(std::move(sizes)));
    }
    case Name::Device: return make_device(args);
    case Name::EncodeBytes: return make_bytes(args);
    case Name::ScriptList:
    case Name::ScriptTag:
      if (args.empty()) break;
      return args[0];
    case Name::TensorType:
    case Name::ParameterType:
    case Name::TypedStorage:
    case Name::UntypedStorage:
    case Name::ScriptClass: break;
  }
  refuse("it calls '", function.node_->text, "' in a way that is not supported");
}

PickleValue Unpickler::create(const PickleValue& type, const PickleValue& arguments) {
  if (type.kind() == Kind::Global && arguments.is_tuple() && arguments.items().empty()) {
    Name id = known(type.int_).id;
    if (id == Name::OrderedDict) return ordered_dict({});
    if (id == Name::ScriptClass) return keep(PickleValue::object(type.node_->text));
  }
  refuse("its pickle makes an object of ", type.kind() == Kind::Global ? type.node_->text : type.kind_name(),
         ", which is not supported");
}

/// Attributes for an object that exists: those of dicts (a state dict's `_metadata`) and tensors are left out.
void Unpickler::build(PickleValue& target, const PickleValue& state) {
  if (target.kind() == Kind::Object) {
    target.node_->items[0] = state;
  } else if (!target.is_dict() && !target.is_tensor()) {
    refuse("its pickle is damaged: it sets attributes of ", target.kind_name());
  }
}

/// ('storage', type, key, device, elements), and in the older stream a sixth part for views of storages.
PickleValue Unpickler::persistent(const PickleValue& id) {
  const char* malformed = "its pickle refers to outside data in a way that is not supported";
  if (!id.is_tuple() || id.items().size() < 5) refuse(malformed);
  const Items& parts = id.items();
  bool fits = parts[0].is_string() && parts[0].as_string() == "storage" && parts[1].kind() == Kind::Global &&
              parts[2].is_string() && parts[4].kind() == Kind::Int;
  if (!fits || (parts.size() > 5 && !parts[5].is_none())) refuse(malformed);
  const Known& type = known(parts[1].int_);
  if (type.id != Name::TypedStorage && type.id != Name::UntypedStorage) refuse(malformed);

  PickledStorage storage{parts[2].as_string(), type.dtype, parts[4].as_int(), {}};
  if (storage.numel < 0) refuse("the storage '", storage.key, "' has a negative size");
  auto [found, fresh] = storage_of_.try_emplace(storage.key, storages_.size());
  if (fresh) {
    storages_.push_back(storage);
  } else {
    const PickledStorage& earlier = storages_[found->second];
    if (earlier.dtype != storage.dtype || earlier.numel != storage.numel)
      refuse("the storage '", storage.key, "' is described in two ways");
  }
  PickleValue value(Kind::Storage, std::make_shared<Node>());
  value.int_ = static_cast<int64_t>(found->second);
  return value;
}

/// (storage, offset, size, stride, requires_grad, hooks, [dtype,] metadata)
PickleValue Unpickler::rebuild_tensor(const Items& args, bool with_dtype) {
  size_t plain = with_dtype ? 7 : 4;
  if (args.size() < plain || args[0].kind() != Kind::Storage || args[1].kind() != Kind::Int)
    refuse("its pickle is damaged: a tensor is described in an unknown way");
  auto storage = static_cast<size_t>(args[0].int_);
  DType dtype = storages_[storage].dtype;
  if (with_dtype) {
    if (args[6].kind() != Kind::DType) refuse("its pickle is damaged: a tensor without a dtype");
    dtype = args[6].as_dtype();
  }
  if (dtype == DType::Undefined) refuse("its pickle is damaged: a tensor without a dtype");

  PickleValue value{umbra::Tensor()};
  value.node_->requires_grad = args.size() > 4 && args[4].kind() == Kind::Bool && args[4].as_bool();
  Recipe recipe{
      value.node_,     storage, dtype, integers(args[2], "a tensor's size"), integers(args[3], "a tensor's stride"),
      args[1].as_int()};
  size_t metadata = with_dtype ? 7 : 6;
  if (args.size() > metadata && args[metadata].is_dict()) {
    auto flag = [&](const char* name) { return args[metadata].find(name) != nullptr; };
    recipe.conj = flag("conj") && is_complex(dtype);
    recipe.neg = flag("neg");
  }
  recipe_of_[value.node_.get()] = recipes_.size();
  recipes_.push_back(std::move(recipe));
  return value;
}

/// (data, requires_grad, hooks[, attributes])
PickleValue Unpickler::rebuild_parameter(const Items& args) {
  auto found = args.size() >= 2 && args[0].is_tensor() ? recipe_of_.find(args[0].node_.get()) : recipe_of_.end();
  if (found == recipe_of_.end() || args[1].kind() != Kind::Bool)
    refuse("its pickle is damaged: a parameter is described in an unknown way");
  PickleValue value = PickleValue::parameter(umbra::Tensor(), args[1].as_bool());
  Recipe recipe = recipes_[found->second];
  recipe.node = value.node_;
  recipe_of_[value.node_.get()] = recipes_.size();
  recipes_.push_back(std::move(recipe));
  return value;
}

PickleValue Unpickler::ordered_dict(const Items& args) {
  PickleValue dict = keep(PickleValue::dict({}, true));
  if (args.empty()) return dict;
  if (args.size() != 1 || !args[0].is_sequence()) refuse("its pickle is damaged: an OrderedDict of something unknown");
  for (const PickleValue& pair : args[0].items()) {
    if (!pair.is_sequence() || pair.items().size() != 2) refuse("its pickle is damaged: an OrderedDict without pairs");
    dict.node_->items.push_back(pair.items()[0]);
    dict.node_->items.push_back(pair.items()[1]);
  }
  return dict;
}

PickleValue Unpickler::make_device(const Items& args) const {
  bool fits = (args.size() == 1 || (args.size() == 2 && args[1].kind() == Kind::Int)) && args[0].is_string();
  if (!fits) refuse("its pickle is damaged: a device is described in an unknown way");
  return umbra::Device(args.size() == 1 ? args[0].as_string() : concat(args[0].as_string(), ":", args[1].as_int()));
}

/// Protocol 2 has no bytes: they stand as text of the characters 0 to 255.
PickleValue Unpickler::make_bytes(const Items& args) const {
  if (args.size() != 2 || !args[0].is_string() || !args[1].is_string() || args[1].as_string() != "latin1")
    refuse("it encodes text in a way that is not supported");
  const std::string& text = args[0].as_string();
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80) {
      bytes += text[i];
    } else if ((first == 0xc2 || first == 0xc3) && i + 1 < text.size()) {
      bytes += static_cast<char>((first & 3) << 6 | (text[++i] & 0x3f));
    } else {
      refuse("it encodes text that is not latin1");
    }
  }
  return PickleValue::bytes(std::move(bytes));
}

std::vector<int64_t> Unpickler::integers(const PickleValue& value, const char* what) const {
  std::vector<int64_t> result;
  bool fits = value.is_sequence();
  if (fits)
    for (const PickleValue& item : value.items()) {
      fits &= item.kind() == Kind::Int;
      if (fits) result.push_back(item.as_int());
    }
  if (!fits) refuse("its pickle is damaged: ", what, " that is no tuple of ints");
  return result;
}

}  // namespace umbra::io
