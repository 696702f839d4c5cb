// safetensors: every tensor is read, and the file is written again.
#include "umbra/io/safetensors.h"

#include "target.h"
#include "umbra/io/file.h"

void umbra::fuzz::run(std::string_view input) {
  io::Safetensors file = io::read_safetensors(io::Bytes(std::string(input)), "input");
  io::BufferSink sink;
  io::write_safetensors(sink, file.tensors, file.metadata);
  io::read_safetensors(io::Bytes(std::move(sink.text)), "written");
}
