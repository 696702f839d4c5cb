// NumPy's .npy and .npz: one array, and several by name.
//
//     Tensor x = load_npy("x.npy");
//     save_npz("batch.npz", {{"x", x}, {"y", y}});
#pragma once

#include <string>

#include "umbra/core/named.h"
#include "umbra/io/file.h"

namespace UMBRA_API umbra {
namespace io {

/// Maps the file; the tensor is a view of it, and writing to it does not change the file. Arrays of Python objects, of
/// records and of big-endian numbers are refused.
Tensor load_npy(const std::string& path);
/// The same from bytes, whose memory the tensor shares. `label` is what errors call the file.
Tensor read_npy(const Bytes& bytes, const std::string& label);
/// Saves atomically, in row-major order. NumPy has no bfloat16 or 8-bit floats: those are refused.
void save_npy(const std::string& path, const Tensor& tensor);
void write_npy(ByteSink& sink, const Tensor& tensor);

/// Arrays of an .npz archive, compressed or not, without the ".npy" of their entries.
NamedTensors load_npz(const std::string& path);
NamedTensors read_npz(const Bytes& bytes, const std::string& label);
/// As numpy.savez writes it: not compressed.
void save_npz(const std::string& path, const NamedTensors& tensors);

}  // namespace io
}  // namespace umbra
