#include <bit>
#include <unordered_set>

#include "io/script_pickle.h"
#include "io/tensor_bytes.h"
#include "io/torchscript_origins.h"
#include "umbra/io/pickle.h"
#include "umbra/io/torchscript.h"
#include "umbra/jit/interpreter.h"
#include "umbra/jit/source.h"

namespace umbra::io {
namespace {

using jit::TypeKind;
using jit::TypePtr;

const char* known_storage_class(DType dtype) {
  const char* name = storage_class(dtype);
  check<NotImplementedError>(name, "TorchScript archives: tensors of ", dtype, " cannot be saved yet");
  return name;
}

/// Writes values of a program as PyTorch's reader of archives takes them.
class ScriptPickler : private ScriptPickleWriter {
 public:
  explicit ScriptPickler(jit::SourcePrinter& source) : source_(source) {}

  std::string run(const Value& value) {
    return program([&] { write(value, nullptr); });
  }
  std::string run(const std::vector<Tensor>& constants) {
    return program([&] {
      opcode(op::kMark);
      for (const Tensor& t : constants) tensor(t);
      opcode(op::kTuple);
    });
  }
  const std::vector<Tensor>& storages() const { return storages_; }

 private:
  void write(const Value& v, const TypePtr& type) {
    using Tag = Value::Tag;
    switch (v.tag()) {
      case Tag::None: return opcode(op::kNone);
      case Tag::Tensor: return tensor(v.tensor_ref());
      case Tag::Int: return integer(v.to_int());
      case Tag::Bool: return boolean(v.to_bool());
      case Tag::Double:
        opcode(op::kBinFloat);
        return bytes(__builtin_bswap64(std::bit_cast<uint64_t>(v.to_double())), 8);
      case Tag::String: return text(v.to_string());
      case Tag::Device:
        global("torch", "device");
        text(to_string(v.to_device()));
        opcode(op::kTuple1);
        return opcode(op::kReduce);
      case Tag::List: {
        opcode(op::kMark);
        for (const Value& item : v.list()) write(item, nullptr);
        return opcode(op::kTuple);
      }
      default: break;
    }
    if (auto* list = jit::object_as<jit::ListObject>(v)) return write_list(*list);
    if (auto* dict = jit::object_as<jit::DictObject>(v)) return write_dict(*dict);
    if (auto* instance = jit::object_as<jit::Instance>(v)) return object(v, *instance);
    if (auto* member = jit::object_as<jit::EnumValue>(v)) {
      source_.add_class(member->cls);
      size_t dot = member->cls->name.rfind('.');
      global(member->cls->name.substr(0, dot), member->cls->name.substr(dot + 1));
      write(member->cls->constants[member->member].second, nullptr);
      return opcode(op::kReduce);
    }
    fail<NotImplementedError>("TorchScript archives: an attribute of type ",
                              type ? type->annotation() : jit::type_of(v)->annotation(), " cannot be saved yet");
  }

  void write_list(const jit::ListObject& list) {
    const char* special = list.element->is(TypeKind::Int)      ? "build_intlist"
                          : list.element->is(TypeKind::Float)  ? "build_doublelist"
                          : list.element->is(TypeKind::Bool)   ? "build_boollist"
                          : list.element->is(TypeKind::Tensor) ? "build_tensorlist"
                                                               : nullptr;
    global("torch.jit._pickle", special ? special : "restore_type_tag");
    opcode(op::kEmptyList);
    opcode(op::kMark);
    for (const Value& item : list.items) write(item, list.element);
    opcode(op::kAppends);
    if (!special) text("List[" + list.element->annotation() + "]");
    opcode(special ? op::kTuple1 : op::kTuple2);
    opcode(op::kReduce);
  }

  void write_dict(const jit::DictObject& dict) {
    global("torch.jit._pickle", "restore_type_tag");
    opcode(op::kEmptyDict);
    opcode(op::kMark);
    for (const auto& [k, item] : dict.items) {
      write(k, dict.key);
      write(item, dict.value);
    }
    opcode(op::kSetItems);
    text("Dict[" + dict.key->annotation() + ", " + dict.value->annotation() + "]");
    opcode(op::kTuple2);
    opcode(op::kReduce);
  }

  void object(const Value& v, const jit::Instance& instance) {
    if (auto found = memo_.find(v.object()); found != memo_.end()) {
      opcode(op::kLongBinGet);
      return bytes(found->second, 4);
    }
    check(open_.insert(v.object()).second, "an object that holds itself cannot be saved");
    source_.add_class(instance.cls);
    size_t dot = instance.cls->name.rfind('.');
    global(instance.cls->name.substr(0, dot), instance.cls->name.substr(dot + 1));
    opcode(op::kEmptyTuple);
    opcode(op::kNewObject);
    jit::FunctionPtr get = instance.cls->method("__getstate__");
    if (get && instance.cls->method("__setstate__")) write(jit::run(*get, {v}), get->result);
    else attributes(instance);
    opcode(op::kBuild);
    opcode(op::kLongBinPut);
    size_t slot = memo_.size();
    memo_[v.object()] = slot;
    bytes(slot, 4);
    open_.erase(v.object());
  }

  void attributes(const jit::Instance& instance) {
    opcode(op::kEmptyDict);
    opcode(op::kMark);
    for (size_t i = 0; i < instance.cls->attributes.size(); ++i) {
      text(instance.cls->attributes[i].name);
      write(i < instance.slots.size() ? instance.slots[i] : Value(), instance.cls->attributes[i].type);
    }
    opcode(op::kSetItems);
  }

  void tensor(const Tensor& t) {
    check_savable(t, "a tensor");
    global("torch._utils", "_rebuild_tensor_v2");
    opcode(op::kMark);
    auto [found, fresh] = keys_.try_emplace(t.storage().get(), storages_.size());
    if (fresh) storages_.push_back(t);
    check(storages_[found->second].dtype() == t.dtype(),
          "Cannot save multiple tensors or storages that view the same data as different types");
    opcode(op::kMark);
    text("storage");
    global("torch", known_storage_class(t.dtype()));
    text(std::to_string(found->second));
    text("cpu");
    integer(t.storage()->bytes().value() / t.item_size());
    opcode(op::kTuple);
    opcode(op::kBinPersistentId);
    integer(t.storage_offset());
    integers(t.sizes());
    integers(t.strides());
    boolean(t.requires_grad());
    global("collections", "OrderedDict");
    opcode(op::kEmptyTuple);
    opcode(op::kReduce);
    opcode(op::kTuple);
    opcode(op::kReduce);
  }

  jit::SourcePrinter& source_;
  std::vector<Tensor> storages_;
  std::unordered_map<const StorageImpl*, size_t> keys_;
  std::unordered_map<const void*, size_t> memo_;
  std::unordered_set<const void*> open_;
};

}  // namespace

void write_torchscript(ByteSink& sink, const Value& module, const std::string& root,
                       const std::map<std::string, std::string>& extra_files) {
  jit::SourcePrinter source(true);
  ScriptPickler data(source), constants(source);
  std::string data_program = data.run(module);
  auto files = source.files();
  std::string constants_program = constants.run(source.constants());
  ZipWriter zip(sink);
  for (size_t i = 0; i < data.storages().size(); ++i)
    zip.add(concat(root, "/data/", i), storage_bytes_of(data.storages()[i]));
  zip.add(root + "/data.pkl", data_program);
  for (const auto& [name, file] : files) {
    zip.add(root + "/" + name, file.text);
    zip.add(root + "/" + name + kOriginsSuffix, write_origins(file.origins));
  }
  for (const auto& [name, contents] : extra_files) zip.add(root + "/extra/" + name, contents);
  for (size_t i = 0; i < constants.storages().size(); ++i)
    zip.add(concat(root, "/constants/", i), storage_bytes_of(constants.storages()[i]));
  zip.add(root + "/constants.pkl", constants_program);
  zip.add(root + "/.data/version", std::to_string(jit::kArchiveVersion) + "\n");
  zip.add(root + "/byteorder", "little");
  zip.add(root + "/.data/serialization_id", zip.serialization_id());
  zip.finish();
}

void save_torchscript(const std::string& path, const Value& module,
                      const std::map<std::string, std::string>& extra_files) {
  AtomicFile file(path);
  write_torchscript(file, module, archive_root(path), extra_files);
  file.commit();
}

}  // namespace umbra::io
