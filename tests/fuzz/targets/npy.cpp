// .npy as it is, .npz as the text of an archive.
#include "umbra/io/npy.h"

#include "target.h"

void umbra::fuzz::run(std::string_view input) {
  if (input.starts_with("@@@ ")) {
    for (const auto& [name, tensor] : io::read_npz(pack(input), "input"))
      if (tensor.numel() < 1000) tensor.clone();
    return;
  }
  Tensor tensor = io::read_npy(io::Bytes(std::string(input)), "input");
  io::BufferSink sink;
  io::write_npy(sink, tensor);
  io::read_npy(io::Bytes(std::move(sink.text)), "written");
}
