// What the nodes of an exported program are called.
#pragma once

#include <unordered_set>

#include "umbra/export/exported_program.h"

namespace umbra {

/// The name of a lifted tensor: p_layers_0_weight. PyTorch takes a leading `self_` for its own prefix.
std::string identifier(const std::string& prefix, const std::string& path);

/// What constants without a name are called, with a number behind it.
inline constexpr const char* kUnnamedConstant = "lifted_tensor_";
/// Counts the constants whose names were made up anew: only those that are left count.
void number_constants(ExportedProgram& program, const std::unordered_set<std::string>& made_up);

/// Gives nodes their last names, as PyTorch does: inputs get those that the signature asks for, the user's before the
/// program's own; another node that has one of these takes the next number. Inputs of subgraphs are called as the
/// values they stand for. The program's graph is made anew.
void name_nodes(ExportedProgram& program);

/// Reads the sizes of inputs before anything else, in the inputs' order. They have the names that PyTorch's have, which
/// are made anew at that place: those of n sizes begin with the number n.
void read_sizes_first(fx::Graph& graph);

}  // namespace umbra
