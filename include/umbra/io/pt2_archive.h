// A .pt2 file as plain data: its programs, their tensors, and the user's extra files.
//
//     Pt2Archive archive = load_pt2("program.pt2");
//     const pt2::Graph& graph = archive.programs[0].program.graph_module.graph;
//     for (const Pt2Tensor& weight : archive.programs[0].weights) { weight.name; weight.tensor; }
//     save_pt2("copy.pt2", archive);                  // torch.export.load reads it
#pragma once

#include <string>
#include <vector>

#include "umbra/core/named.h"
#include "umbra/io/file.h"
#include "umbra/io/pt2_json.h"

namespace UMBRA_API umbra {
namespace io {

/// A parameter, buffer or constant by its path in the module. The tensor is a plain one; whether it should require a
/// gradient stands beside it.
struct Pt2Tensor {
  std::string name;
  Tensor tensor;
  bool is_param = false;
  bool requires_grad = false;
};

struct Pt2Program {
  std::string name = "model";
  pt2::ExportedProgram program;
  std::vector<Pt2Tensor> weights;    // parameters and persistent buffers
  std::vector<Pt2Tensor> constants;  // constant tensors and buffers that are not persistent
  Bytes sample_inputs;               // a torch.save file of the example inputs, not looked at; may be empty
  std::string label;                 // what errors call the file it was read from; empty where it is from none
};

struct Pt2Archive {
  std::vector<Pt2Program> programs;
  NamedTexts extra_files;
};

/// Reads both containers: that of today, and that of PyTorch 2.4. Programs are verified (pt2_verify.h), and every
/// parameter, buffer and constant of a signature is there. Weights are views of the mapped file; entries that share a
/// storage share it here.
Pt2Archive load_pt2(const std::string& path);
/// The same from bytes, whose memory the tensors share. `label` is what errors call the file.
Pt2Archive read_pt2(const Bytes& bytes, const std::string& label);

/// Saves atomically, laid out as PyTorch does it. Tensors that share a storage share it in the file; tensors without
/// data (fake ones) become entries of no bytes, which read as zeros.
void save_pt2(const std::string& path, const Pt2Archive& archive);
/// The same into a sink; `root` is the archive's one folder.
void write_pt2(ByteSink& sink, const Pt2Archive& archive, const std::string& root = "archive");

}  // namespace io
}  // namespace umbra
