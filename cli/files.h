// Tensors and values from the files that people have.
#pragma once

#include <string>
#include <vector>

#include "umbra/core/named.h"
#include "umbra/umbra.h"

namespace umbra::cli {

/// Whether a path ends in ".pt2", say; "two.pt2#encoder" does.
bool has_extension(const std::string& path, const char* extension);

/// The program of a .pt2 file; of a file that holds several, the one named behind its path: "two.pt2#encoder".
ExportedProgram load_program(const std::string& place);

/// Writes a program to a .pt2 or .onnx file, and says on a terminal how far it is.
void save_program(const ExportedProgram& program, const std::string& path);

/// Whether a file is a TorchScript archive, and its parameters and buffers.
bool is_torchscript(const std::string& path);
NamedTensors load_torchscript_tensors(const std::string& path);

/// Tensors of a .safetensors, .npz, .npy, .pt or .pth file, or the weights of a .pt2 file.
NamedTensors load_tensors(const std::string& path);
/// The same, written; on a terminal it says how far it is.
void save_tensors(const std::string& path, const NamedTensors& tensors);

/// An error where no file can be written: what takes long is not done in vain.
void check_place(const std::string& path);
/// The same of a file of tensors, whose kind has to be known.
void check_tensor_place(const std::string& path);
/// The same of a program.
void check_program_place(const std::string& path);
/// An error where two paths lead to one file.
void check_other_file(const std::string& read, const std::string& written);

/// "float32[2, 3]".
std::string look_of(const Tensor& tensor);
/// 2704 bytes as "2.704 kB".
std::string amount(int64_t number, const char* unit);

/// The flat inputs that a program was saved with; an error where there are none.
std::vector<Value> example_inputs(const ExportedProgram& program);
/// The program's flat inputs from files (.npy: one tensor; others: all their tensors) and numbers, in order. Values
/// that the program was captured with and takes no others of need not be given.
std::vector<Value> read_inputs(const ExportedProgram& program, const std::vector<std::string>& given);

}  // namespace umbra::cli
