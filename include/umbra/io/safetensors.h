// safetensors: named tensors behind a JSON header. Nothing in such a file can run.
//
//     save_safetensors("model.safetensors", {{"weight", weight}, {"bias", bias}});
//     for (auto& [name, tensor] : load_safetensors("model.safetensors")) { ... }
#pragma once

#include <string>

#include "umbra/core/named.h"

namespace UMBRA_API umbra {
namespace io {

class Bytes;     // io/file.h
class ByteSink;  // io/file.h

struct Safetensors {
  NamedTensors tensors;
  NamedTexts metadata;
};

/// Maps the file: tensors are views of it, and what is never touched is never read. Writing to them does not change the
/// file.
NamedTensors load_safetensors(const std::string& path);
/// The same from bytes, whose memory the tensors share, with the metadata. `label` is what errors call the file.
Safetensors read_safetensors(const Bytes& bytes, const std::string& label);

/// Saves atomically, in the library's own order: widest elements first, then by name. Tensors need not be contiguous;
/// ones that share memory are written once each.
void save_safetensors(const std::string& path, const NamedTensors& tensors, const NamedTexts& metadata = {});
void write_safetensors(ByteSink& sink, const NamedTensors& tensors, const NamedTexts& metadata = {});

}  // namespace io
}  // namespace umbra
