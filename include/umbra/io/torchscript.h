// TorchScript archives (.pt of torch.jit.save): modules with their programs, read and written as PyTorch does.
//
//     Value module = load_torchscript("model.pt");
//     Value y = jit::run(*jit::object_as<jit::Instance>(module)->cls->method("forward"), {module, x});
//
// Reading runs no code of Python: pickles make tensors, containers and objects of the classes that the archive defines,
// and its source is compiled by the compiler of jit/ when a method is first called. A class that has `__setstate__`, a
// program like any other, restores itself by it.
#pragma once

#include "umbra/io/zip.h"
#include "umbra/jit/objects.h"

namespace UMBRA_API umbra {
namespace io {

/// The module of an archive. `label` is what errors call the file.
Value read_torchscript(const Bytes& bytes, const std::string& label,
                       std::map<std::string, std::string>* extra_files = nullptr);
Value load_torchscript(const std::string& path, std::map<std::string, std::string>* extra_files = nullptr);

/// Writes a module; `root` is the archive's one folder.
void write_torchscript(ByteSink& sink, const Value& module, const std::string& root = "archive",
                       const std::map<std::string, std::string>& extra_files = {});
void save_torchscript(const std::string& path, const Value& module,
                      const std::map<std::string, std::string>& extra_files = {});

}  // namespace io
}  // namespace umbra
