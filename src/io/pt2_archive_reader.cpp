// Reads .pt2 archives, of today and of older versions: programs, weights and constants.
#include <unordered_map>
#include <unordered_set>

#include "io/tensor_bytes.h"
#include "umbra/io/pickle.h"
#include "umbra/io/pt2_archive.h"
#include "umbra/io/pt2_verify.h"
#include "umbra/io/zip.h"

namespace umbra::io {
namespace {

constexpr const char* kOldProgram = "serialized_exported_program.json";

/// Plain sizes, strides or offsets; a weight has no symbolic ones.
int64_t plain(const pt2::SymIntValue& value, const std::string& what) {
  const int64_t* number = std::get_if<int64_t>(&value);
  check<ValueError>(number, what, " has a symbolic size");
  return *number;
}
std::vector<int64_t> plain(const std::vector<pt2::SymIntValue>& values, const std::string& what) {
  std::vector<int64_t> numbers;
  for (const pt2::SymIntValue& value : values) numbers.push_back(plain(value, what));
  return numbers;
}

/// An archive of today: one root folder, raw bytes for every storage.
class ArchiveReader {
 public:
  explicit ArchiveReader(const ZipReader& zip) : zip_(zip), root_(zip.root()) {}

  Pt2Archive run() {
    expect("archive_format", "pt2", true);
    expect("archive_version", "0", true);
    expect("byteorder", "little", false);
    Pt2Archive archive;
    for (const ZipEntry& entry : zip_.entries()) {
      std::string name = entry.name.substr(root_.size());
      if (name.starts_with("models/") && name.ends_with(".json") && name.size() > 12)
        archive.programs.push_back(program(name.substr(7, name.size() - 12)));
      else if (name.starts_with("extra/") && name.size() > 6)
        archive.extra_files.emplace_back(name.substr(6), zip_.read(entry).text());
    }
    check<ValueError>(!archive.programs.empty(), "'", zip_.label(), "' holds no program (models/*.json)");
    return archive;
  }

 private:
  void expect(const char* name, std::string_view value, bool required) const {
    const ZipEntry* entry = zip_.find(root_ + name);
    check<ValueError>(entry || !required, "'", zip_.label(), "' is no .pt2 archive: it has no entry '", name, "'");
    if (!entry) return;
    std::string_view text = zip_.read(*entry).text();
    check<ValueError>(text == value, "'", zip_.label(), "': ", name, " is '", text.substr(0, 80), "', and only '",
                      value, "' is supported");
  }

  std::string label(const std::string& entry) const { return concat(zip_.label(), ":", entry); }

  Pt2Program program(const std::string& name) {
    Pt2Program result;
    result.name = name;
    std::string entry = concat("models/", name, ".json");
    result.program = pt2::parse_program(zip_.read(root_ + entry).text(), label(entry));
    result.weights = payloads("data/weights/", concat(name, "_weights_config.json"));
    result.constants = payloads("data/constants/", concat(name, "_constants_config.json"));
    if (const ZipEntry* inputs = zip_.find(concat(root_, "data/sample_inputs/", name, ".pt")))
      result.sample_inputs = zip_.read(*inputs);
    return result;
  }

  std::vector<Pt2Tensor> payloads(const std::string& folder, const std::string& config_name) {
    std::string entry = folder + config_name;
    check<ValueError>(zip_.find(root_ + entry), "'", zip_.label(), "' has no entry '", entry, "'");
    pt2::PayloadConfig config = pt2::parse_payload_config(zip_.read(root_ + entry).text(), label(entry));
    std::vector<Pt2Tensor> result;
    for (const auto& [name, payload] : config.config) result.push_back(tensor(folder, name, payload));
    return result;
  }

  Pt2Tensor tensor(const std::string& folder, const std::string& name, const pt2::PayloadMeta& payload) {
    std::string what = concat("'", zip_.label(), "': the weight '", name, "'");
    check<ValueError>(!payload.use_pickle, what, " is a pickled object, which could run code; it is not loaded");
    check<ValueError>(payload.tensor_meta.has_value(), what, " is no tensor");
    check<ValueError>(payload.path_name.find('/') == std::string::npos && is_safe_entry_name(payload.path_name), what,
                      " lies at '", payload.path_name, "', outside of its folder");
    const pt2::TensorMeta& meta = *payload.tensor_meta;
    check<ValueError>(meta.layout == Layout::Strided, what, " is not a dense tensor");
    std::vector<int64_t> sizes = plain(meta.sizes, what), strides = plain(meta.strides, what);
    int64_t offset = plain(meta.storage_offset, what);

    std::string path = root_ + folder + payload.path_name;
    const ZipEntry* entry = zip_.find(path);
    check<ValueError>(entry, what, " should lie in '", folder, payload.path_name, "', which is missing");
    check<ValueError>(entry->size % static_cast<uint64_t>(item_size(meta.dtype)) == 0, what, " has ", entry->size,
                      " bytes, which is no whole number of ", umbra::name(meta.dtype), " elements");
    Storage& storage = storages_[path];
    if (!storage && entry->size > 0) storage = storage_over(zip_.read_lazily(*entry), meta.dtype);
    // No bytes: of the meta device, or zeros of the stated size, as fake weights are saved. They take memory only when
    // touched.
    Tensor tensor = storage ? tensor_over(storage, meta.dtype, sizes, strides, offset, what)
                            : zeros_of(meta.dtype, sizes, strides, offset, what);
    if (!storage && meta.device.type == DeviceType::Meta) tensor = without_data(tensor);
    return {name, std::move(tensor), payload.is_param, meta.requires_grad};
  }

  const ZipReader& zip_;
  std::string root_;
  std::unordered_map<std::string, Storage> storages_;
};

/// The archive of PyTorch 2.4: no root folder, tensors in torch.save files.
std::vector<Pt2Tensor> old_tensors(const ZipReader& zip, const char* entry) {
  std::string label = concat(zip.label(), ":", entry);
  PickleValue value = read_pickle(zip.read(entry), label);
  check<ValueError>(value.is_dict(), "'", label, "' holds ", value.kind_name(), ", not tensors by name");
  std::vector<Pt2Tensor> result;
  for (const auto& [key, tensor] : value.pairs()) {
    check<ValueError>(key.is_string() && tensor.is_tensor(), "'", label,
                      "' holds something other than tensors by name");
    result.push_back({key.as_string(), tensor.as_tensor(), tensor.is_parameter(), tensor.requires_grad()});
  }
  return result;
}

Pt2Archive read_old(const ZipReader& zip) {
  Pt2Program program;
  program.program = pt2::parse_program(zip.read(kOldProgram).text(), concat(zip.label(), ":", kOldProgram));
  program.weights = old_tensors(zip, "serialized_state_dict.pt");
  program.constants = old_tensors(zip, "serialized_constants.pt");
  if (const ZipEntry* inputs = zip.find("serialized_example_inputs.pt")) program.sample_inputs = zip.read(*inputs);
  Pt2Archive archive;
  archive.programs.push_back(std::move(program));
  constexpr std::string_view kExtra = "extra_files/";
  for (const ZipEntry& entry : zip.entries())
    if (entry.name.starts_with(kExtra) && entry.name.size() > kExtra.size())
      archive.extra_files.emplace_back(entry.name.substr(kExtra.size()), zip.read(entry).text());
  return archive;
}

/// Every tensor that the signature takes from the file must be in it.
void check_signature(const Pt2Program& program, const std::string& label) {
  std::unordered_set<std::string_view> weights, constants;
  for (const Pt2Tensor& weight : program.weights) weights.insert(weight.name);
  for (const Pt2Tensor& constant : program.constants) constants.insert(constant.name);
  auto need = [&](const std::string& name, const auto& place, const char* what) {
    check<ValueError>(place.contains(name), "'", label, "': the program takes the ", what, " '", name,
                      "', which the file does not hold");
  };
  for (const pt2::InputSpec& spec : program.program.graph_module.signature.input_specs) {
    if (auto* parameter = std::get_if<pt2::InputToParameterSpec>(&spec))
      need(parameter->parameter_name, weights, "parameter");
    if (auto* buffer = std::get_if<pt2::InputToBufferSpec>(&spec))
      need(buffer->buffer_name, buffer->persistent ? weights : constants, "buffer");
    if (auto* constant = std::get_if<pt2::InputToTensorConstantSpec>(&spec))
      need(constant->tensor_constant_name, constants, "constant");
  }
}

}  // namespace

Pt2Archive read_pt2(const Bytes& bytes, const std::string& label) {
  ZipReader zip(bytes, label);
  Pt2Archive archive = zip.find(kOldProgram) ? read_old(zip) : ArchiveReader(zip).run();
  for (Pt2Program& program : archive.programs) {
    pt2::verify(program.program, label);
    check_signature(program, label);
    program.label = label;
  }
  return archive;
}

Pt2Archive load_pt2(const std::string& path) { return read_pt2(map_file(path), path); }

}  // namespace umbra::io
