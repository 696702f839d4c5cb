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

/// Tensors of a .safetensors, .npz, .npy, .pt or .pth file, or the weights of a .pt2 file.
NamedTensors load_tensors(const std::string& path);
/// The same, written.
void save_tensors(const std::string& path, const NamedTensors& tensors);

/// The flat inputs that a program was saved with; an error where there are none.
std::vector<Value> example_inputs(const ExportedProgram& program);
/// The program's flat inputs from files (.npy: one tensor; others: all their tensors) and numbers, in order. Values
/// that the program was captured with and takes no others of need not be given.
std::vector<Value> read_inputs(const ExportedProgram& program, const std::vector<std::string>& given);

}  // namespace umbra::cli
