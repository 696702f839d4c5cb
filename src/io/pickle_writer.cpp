#include <bit>
#include <unordered_map>
#include <unordered_set>

#include "io/pickle_opcodes.h"
#include "io/tensor_bytes.h"
#include "umbra/io/pickle.h"
#include "umbra/io/zip.h"

namespace umbra::io {
namespace {

/// Writes a value as a pickle of protocol 2, and notes the storages its tensors need.
class Pickler {
 public:
  std::string run(const PickleValue& value) {
    opcode(op::kProto);
    out_ += '\2';
    write(value);
    opcode(op::kStop);
    return std::move(out_);
  }
  /// One tensor of each storage, by key.
  const std::vector<Tensor>& storages() const { return storages_; }

 private:
  using Kind = PickleValue::Kind;

  void opcode(unsigned char code) { out_ += static_cast<char>(code); }
  void number(uint64_t value, size_t bytes) { out_.append(reinterpret_cast<const char*>(&value), bytes); }

  void write(const PickleValue& value) {
    if (value.identity() && recall(value.identity())) return;
    switch (value.kind()) {
      case Kind::None: return opcode(op::kNone);
      case Kind::Bool: return boolean(value.as_bool());
      case Kind::Int: return integer(value.as_int());
      case Kind::Float:
        opcode(op::kBinFloat);
        return number(__builtin_bswap64(std::bit_cast<uint64_t>(value.as_float())), 8);
      case Kind::String: return text(value.as_string());
      case Kind::Bytes: return bytes(value.as_bytes());
      case Kind::List: return list(value);
      case Kind::Tuple: return tuple(value);
      case Kind::Dict: return dict(value);
      case Kind::Tensor: return value.is_parameter() ? parameter(value) : tensor(value);
      case Kind::DType: return global("torch", name(value.as_dtype()));
      case Kind::Device: return device(value.as_device());
      case Kind::Object:
      case Kind::Global:
      case Kind::Storage: break;
    }
    fail<TypeError>("cannot save ", value.kind_name());
  }

  void boolean(bool value) { opcode(value ? op::kNewTrue : op::kNewFalse); }

  void integer(int64_t value) {
    if (value >= 0 && value < 0x100) {
      opcode(op::kBinInt1);
      number(static_cast<uint64_t>(value), 1);
    } else if (value >= 0 && value < 0x10000) {
      opcode(op::kBinInt2);
      number(static_cast<uint64_t>(value), 2);
    } else if (value == static_cast<int32_t>(value)) {
      opcode(op::kBinInt);
      number(static_cast<uint64_t>(value), 4);
    } else {
      opcode(op::kLong1);
      number(8, 1);
      number(static_cast<uint64_t>(value), 8);
    }
  }

  void text(std::string_view value) {
    check<ValueError>(value.size() < 0xffffffff, "cannot save a text of ", value.size(), " bytes");
    opcode(op::kBinUnicode);
    number(value.size(), 4);
    out_ += value;
  }

  /// Protocol 2 has no bytes: Python writes them as text of the characters 0 to 255, and how to encode it.
  void bytes(const std::string& value) {
    std::string utf8;
    for (char c : value) {
      auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x80) utf8 += static_cast<char>(0xc0 | byte >> 6);
      utf8 += static_cast<char>(byte < 0x80 ? byte : 0x80 | (byte & 0x3f));
    }
    global("_codecs", "encode");
    text(utf8);
    text("latin1");
    opcode(op::kTuple2);
    opcode(op::kReduce);
  }

  void list(const PickleValue& value) {
    opcode(op::kEmptyList);
    memoize(value.identity());
    opcode(op::kMark);
    for (const PickleValue& item : value.items()) write(item);
    opcode(op::kAppends);
  }

  void tuple(const PickleValue& value) {
    if (value.is_special()) global("torch", "Size");
    opcode(op::kMark);
    for (const PickleValue& item : value.items()) write(item);
    opcode(op::kTuple);
    if (value.is_special()) {
      opcode(op::kTuple1);
      opcode(op::kReduce);
    }
    memoize(value.identity());
  }

  void dict(const PickleValue& value) {
    value.is_special() ? ordered_dict() : opcode(op::kEmptyDict);
    memoize(value.identity());
    opcode(op::kMark);
    for (const auto& [key, entry] : value.pairs()) {
      write(key);
      write(entry);
    }
    opcode(op::kSetItems);
  }

  void ordered_dict() {
    global("collections", "OrderedDict");
    opcode(op::kEmptyTuple);
    opcode(op::kReduce);
  }

  void device(Device value) {
    global("torch", "device");
    text(to_string(Device(value.type)));
    if (value.index >= 0) integer(value.index);
    opcode(value.index >= 0 ? op::kTuple2 : op::kTuple1);
    opcode(op::kReduce);
  }

  void integers(IntArrayRef values) {
    opcode(op::kMark);
    for (int64_t value : values) integer(value);
    opcode(op::kTuple);
  }

  void parameter(const PickleValue& value) {
    global("torch._utils", "_rebuild_parameter");
    describe(value.as_tensor(), false);
    boolean(value.requires_grad());
    ordered_dict();
    opcode(op::kTuple3);
    opcode(op::kReduce);
    memoize(value.identity());
  }

  void tensor(const PickleValue& value) {
    describe(value.as_tensor(), value.requires_grad());
    memoize(value.identity());
  }

  void describe(const Tensor& tensor, bool requires_grad) {
    check_savable(tensor, "a tensor");
    const char* typed = storage_class(tensor.dtype());
    global("torch._utils", typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    opcode(op::kMark);
    storage(tensor, typed);
    integer(tensor.storage_offset());
    integers(tensor.sizes());
    integers(tensor.strides());
    boolean(requires_grad);
    ordered_dict();
    if (!typed) global("torch", name(tensor.dtype()));
    if (tensor.is_conj() || tensor.is_neg()) {
      opcode(op::kEmptyDict);
      opcode(op::kMark);
      for (auto [key, set] : {std::pair("conj", tensor.is_conj()), std::pair("neg", tensor.is_neg())}) {
        if (!set) continue;  // PyTorch takes the key's presence for the flag
        text(key);
        boolean(true);
      }
      opcode(op::kSetItems);
    }
    opcode(op::kTuple);
    opcode(op::kReduce);
  }

  void storage(const Tensor& tensor, const char* typed) {
    auto [found, fresh] = keys_.try_emplace(tensor.storage().get(), storages_.size());
    if (fresh) storages_.push_back(tensor);
    check(storage_class(storages_[found->second].dtype()) == typed,
          "Cannot save multiple tensors or storages that view the same data as different types");
    int64_t size = tensor.storage()->bytes().value();
    opcode(op::kMark);
    text("storage");
    typed ? global("torch", typed) : global("torch.storage", "UntypedStorage");
    text(std::to_string(found->second));
    text("cpu");
    integer(typed ? size / tensor.item_size() : size);
    opcode(op::kTuple);
    opcode(op::kBinPersistentId);
  }

  void global(const std::string& module, const std::string& name) {
    auto [found, fresh] = globals_.try_emplace(module + "\n" + name + "\n", next_slot_);
    if (!fresh) return get(found->second);
    opcode(op::kGlobal);
    out_ += found->first;
    put(next_slot_++);
  }

  void memoize(const void* identity) {
    memo_[identity] = next_slot_;
    put(next_slot_++);
  }
  bool recall(const void* identity) {
    auto found = memo_.find(identity);
    if (found != memo_.end()) get(found->second);
    return found != memo_.end();
  }
  void put(uint32_t slot) { indexed(slot, op::kBinPut, op::kLongBinPut); }
  void get(uint32_t slot) { indexed(slot, op::kBinGet, op::kLongBinGet); }
  void indexed(uint32_t slot, unsigned char narrow, unsigned char wide) {
    opcode(slot < 0x100 ? narrow : wide);
    number(slot, slot < 0x100 ? 1 : 4);
  }

  std::string out_;
  uint32_t next_slot_ = 0;
  std::unordered_map<const void*, uint32_t> memo_;
  std::unordered_map<std::string, uint32_t> globals_;
  std::unordered_map<const StorageImpl*, size_t> keys_;
  std::vector<Tensor> storages_;
};

}  // namespace

std::string archive_root(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  name = name.substr(0, name.rfind('.'));
  return is_safe_entry_name(name) ? name : "archive";
}

void write_pickle(ByteSink& sink, const PickleValue& value, const std::string& root) {
  Pickler pickler;
  std::string program = pickler.run(value);
  ZipWriter zip(sink);
  zip.add(root + "/data.pkl", program);
  zip.add(root + "/.format_version", "1");
  zip.add(root + "/.storage_alignment", "64");
  zip.add(root + "/byteorder", "little");
  const std::vector<Tensor>& storages = pickler.storages();
  for (size_t i = 0; i < storages.size(); ++i) zip.add(concat(root, "/data/", i), storage_bytes_of(storages[i]));
  zip.add(root + "/version", "3\n");
  zip.add(root + "/.data/serialization_id", zip.serialization_id());
  zip.finish();
}

void save_pickle(const std::string& path, const PickleValue& value) {
  AtomicFile file(path);
  write_pickle(file, value, archive_root(path));
  file.commit();
}

void save_state_dict(const std::string& path, const NamedTensors& tensors) {
  std::vector<PickleValue::Pair> pairs;
  std::unordered_set<std::string_view> names;
  for (const auto& [name, tensor] : tensors) {
    check<ValueError>(names.insert(name).second, "the state dict has '", name, "' twice");
    pairs.emplace_back(name, tensor);
  }
  save_pickle(path, PickleValue::dict(pairs, true));
}

}  // namespace umbra::io
