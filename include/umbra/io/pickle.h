// Files of torch.save: read without running anything they hold, and written so that torch.load(weights_only=True) takes
// them.
//
// A pickle is a program that may call any function by name. This reader knows the few names that tensors, state dicts
// and checkpoints need, does itself what they stand for, and refuses every other by name.
//
//     NamedTensors weights = load_state_dict("weights.pt");
//     save_state_dict("copy.pt", weights);
#pragma once

#include <string>

#include "umbra/core/named.h"
#include "umbra/io/pickle_value.h"

namespace UMBRA_API umbra {
namespace io {

class Bytes;      // io/file.h
class ByteSink;   // io/file.h
class ZipReader;  // io/zip.h

struct PickleOptions {
  /// Accept instances of TorchScript classes (`__torch__.…`) as Objects.
  bool script_classes = false;
};

/// The object of a torch.save file: the zip form, or the older stream. Tensors are views of the mapped file where they
/// can be, and all on the CPU, wherever they were when saved.
PickleValue load_pickle(const std::string& path, const PickleOptions& options = {});
/// The same from bytes, whose memory the tensors share. `label` is what errors call the file.
PickleValue read_pickle(const Bytes& bytes, const std::string& label, const PickleOptions& options = {});
/// One pickle of an archive that has several, with its storages in a folder: "scripted/constants.pkl",
/// "scripted/constants/".
PickleValue read_pickle(const ZipReader& zip, const std::string& entry, const std::string& storage_folder,
                        const PickleOptions& options = {});

/// The tensors of a state dict; an error where the file holds anything else. `label` is what errors call the value.
NamedTensors load_state_dict(const std::string& path);
NamedTensors to_state_dict(const PickleValue& value, const std::string& label = "the value");

/// Saves atomically in the zip form. Tensors that share memory share it in the file; views keep their whole storage.
void save_pickle(const std::string& path, const PickleValue& value);
/// The same into a sink; `root` is the archive's one folder.
void write_pickle(ByteSink& sink, const PickleValue& value, const std::string& root = "archive");
void save_state_dict(const std::string& path, const NamedTensors& tensors);

/// The folder that an archive saved at this path has: its file name without the extension.
std::string archive_root(const std::string& path);

}  // namespace io
}  // namespace umbra
