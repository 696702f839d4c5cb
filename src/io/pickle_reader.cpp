// The two containers of torch.save: a zip archive, and the older stream of pickles followed by raw storages.
#include <cstring>

#include "io/unpickler.h"
#include "umbra/io/pickle.h"
#include "umbra/io/zip.h"

namespace umbra::io {
namespace {

/// The first pickle of the older stream: the number 0x1950a86a20f9469cfc6c in protocol 2.
constexpr std::string_view kLegacyMagic("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);

PickleValue read_zip(const ZipReader& zip, const PickleOptions& options) {
  std::string root = zip.root();
  bool script = zip.find(root + "constants.pkl");
  check<ValueError>(!script || options.script_classes, "cannot load '", zip.label(),
                    "': it is a TorchScript archive, not a file of torch.save; load it as a TorchScript module");
  return read_pickle(zip, root + "data.pkl", root + "data/", options);
}

/// Where each storage of the older stream lies: for every key a count of elements, then the elements.
std::unordered_map<std::string, Bytes> legacy_storages(const Unpickler& unpickler, const PickleValue& keys,
                                                       const Bytes& bytes, size_t position) {
  std::unordered_map<std::string, const PickledStorage*> by_key;
  for (const PickledStorage& storage : unpickler.storages()) by_key[storage.key] = &storage;
  std::unordered_map<std::string, Bytes> result;
  if (!keys.is_list()) unpickler.refuse("its list of storages is damaged");
  for (const PickleValue& key : keys.items()) {
    auto found = key.is_string() ? by_key.find(key.as_string()) : by_key.end();
    if (found == by_key.end()) unpickler.refuse("its list of storages names one that nothing uses");
    int64_t count = 0, size = 0;
    if (bytes.size() - position < sizeof(count))
      unpickler.refuse("it is cut: the storage '", found->first, "' is missing");
    std::memcpy(&count, bytes.data() + position, sizeof(count));
    position += sizeof(count);
    bool overflow = __builtin_mul_overflow(count, found->second->item_size(), &size);
    if (count < 0 || overflow || static_cast<uint64_t>(size) > bytes.size() - position)
      unpickler.refuse("it is cut: the storage '", found->first, "' claims ", count, " elements");
    result[found->first] = bytes.slice(position, static_cast<size_t>(size));
    position += static_cast<size_t>(size);
  }
  return result;
}

PickleValue read_legacy(const Bytes& bytes, const std::string& label, const PickleOptions& options) {
  Unpickler unpickler(bytes.text(), label, options);
  size_t position = kLegacyMagic.size();
  PickleValue protocol = unpickler.run(position);
  if (protocol.kind() != PickleValue::Kind::Int || protocol.as_int() != 1001)
    unpickler.refuse("the version of its format is not known");
  PickleValue system = unpickler.run(position);
  const PickleValue* little = system.is_dict() ? system.find("little_endian") : nullptr;
  if (little && little->kind() == PickleValue::Kind::Bool && !little->as_bool())
    unpickler.refuse("it was written on a big-endian machine");
  PickleValue result = unpickler.run(position);
  PickleValue keys = unpickler.run(position);
  auto storages = legacy_storages(unpickler, keys, bytes, position);
  unpickler.fill([&](const PickledStorage& storage) {
    auto found = storages.find(storage.key);
    if (found == storages.end()) unpickler.refuse("the storage '", storage.key, "' is missing");
    return found->second;
  });
  return unpickler.finish(std::move(result));
}

}  // namespace

PickleValue read_pickle(const ZipReader& zip, const std::string& entry, const std::string& storage_folder,
                        const PickleOptions& options) {
  std::string root = zip.root();
  if (const ZipEntry* order = zip.find(root + "byteorder"))
    check<ValueError>(zip.read(*order).text() == "little", "cannot load '", zip.label(),
                      "': its byte order is not little-endian");
  Bytes program = zip.read(entry);
  Unpickler unpickler(program.text(), zip.label(), options);
  size_t position = 0;
  PickleValue result = unpickler.run(position);
  unpickler.fill([&](const PickledStorage& storage) {
    const ZipEntry* found = zip.find(storage_folder + storage.key);
    if (!found) unpickler.refuse("the storage '", storage.key, "' is missing");
    return zip.read(*found);
  });
  return unpickler.finish(std::move(result));
}

PickleValue read_pickle(const Bytes& bytes, const std::string& label, const PickleOptions& options) {
  if (looks_like_zip(bytes.text())) return read_zip(ZipReader(bytes, label), options);
  check<ValueError>(bytes.text().starts_with(kLegacyMagic), "cannot load '", label,
                    "': it is not a file of torch.save");
  return read_legacy(bytes, label, options);
}

PickleValue load_pickle(const std::string& path, const PickleOptions& options) {
  return read_pickle(map_file(path), path, options);
}

NamedTensors to_state_dict(const PickleValue& value, const std::string& label) {
  check<ValueError>(value.is_dict(), "'", label, "' holds ", value.kind_name(), ", not a state dict");
  NamedTensors result;
  for (const auto& [key, entry] : value.pairs()) {
    check<ValueError>(key.is_string(), "'", label, "' is no state dict: one of its keys is ", key.kind_name());
    check<ValueError>(entry.is_tensor(), "'", label, "' is no state dict: '", key.as_string(), "' is ",
                      entry.kind_name(), "; load it with load_pickle and take the part that is one");
    result.emplace_back(key.as_string(), entry.as_tensor());
  }
  return result;
}

NamedTensors load_state_dict(const std::string& path) { return to_state_dict(load_pickle(path), path); }

}  // namespace umbra::io
