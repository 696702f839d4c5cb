// Writes .pt2 archives: programs, weights and constants.
#include <map>

#include "io/tensor_bytes.h"
#include "umbra/io/pickle.h"
#include "umbra/io/pt2_archive.h"
#include "umbra/io/zip.h"

namespace umbra::io {
namespace {

pt2::TensorMeta meta_of(const Pt2Tensor& item) {
  const Tensor& tensor = item.tensor;
  pt2::TensorMeta meta;
  meta.dtype = tensor.dtype();
  meta.requires_grad = item.requires_grad;
  for (int64_t size : tensor.sizes()) meta.sizes.emplace_back(size);
  for (int64_t stride : tensor.strides()) meta.strides.emplace_back(stride);
  meta.storage_offset = tensor.storage_offset();
  if (tensor.device().type == DeviceType::Meta) meta.device = tensor.device();  // all others are read into memory
  return meta;
}

class ArchiveWriter {
 public:
  ArchiveWriter(ByteSink& sink, std::string root) : zip_(sink), root_(std::move(root) + "/") {}

  void run(const Pt2Archive& archive) {
    check<ValueError>(!archive.programs.empty(), "a .pt2 archive needs a program");
    for (const Pt2Program& program : archive.programs) write(program);
    for (const auto& [name, contents] : archive.extra_files) add("extra/" + name, contents);
    add("archive_format", "pt2");
    add("archive_version", "0");
    add(".data/version", "6\n");
    add("byteorder", "little");
    add(".data/serialization_id", zip_.serialization_id());
    zip_.finish();
  }

 private:
  void add(const std::string& name, std::string_view contents) { zip_.add(root_ + name, contents); }

  void write(const Pt2Program& program) {
    payloads(program.weights, "data/weights/", "weight_", program.name + "_weights_config.json");
    payloads(program.constants, "data/constants/", "tensor_", program.name + "_constants_config.json");
    add(concat("models/", program.name, ".json"), pt2::write_program(program.program));
    add(concat("data/sample_inputs/", program.name, ".pt"), program.sample_inputs.text());
  }

  /// One entry for each storage and dtype, numbered through the whole archive, then the table of what lies where.
  void payloads(const std::vector<Pt2Tensor>& tensors, const std::string& folder, const std::string& prefix,
                const std::string& config_name) {
    pt2::PayloadConfig config;
    std::map<std::pair<const StorageImpl*, DType>, std::string> paths;
    size_t& count = counts_[prefix];
    for (const Pt2Tensor& item : tensors) {
      std::string what = concat("the weight '", item.name, "'");
      check<ValueError>(item.tensor.defined() && !item.tensor.is_symbolic(), what,
                        " has no plain size, and cannot be saved");
      check<ValueError>(!item.tensor.is_conj() && !item.tensor.is_neg(), what,
                        " is a lazy conjugate; use resolve_conj() first");
      std::string& path = paths[{item.tensor.storage().get(), item.tensor.dtype()}];
      if (path.empty()) {
        path = concat(prefix, count++);
        bool has_data = item.tensor.storage()->has_data();
        add(folder + path, has_data ? storage_bytes_of(item.tensor) : std::string_view());
      }
      config.config.emplace_back(item.name, pt2::PayloadMeta{path, item.is_param, false, meta_of(item)});
    }
    add(folder + config_name, pt2::write_payload_config(config));
  }

  ZipWriter zip_;
  std::string root_;
  std::map<std::string, size_t> counts_;
};

}  // namespace

void write_pt2(ByteSink& sink, const Pt2Archive& archive, const std::string& root) {
  ArchiveWriter(sink, root).run(archive);
}

void save_pt2(const std::string& path, const Pt2Archive& archive) {
  AtomicFile file(path);
  write_pt2(file, archive, archive_root(path));
  file.commit();
}

}  // namespace umbra::io
