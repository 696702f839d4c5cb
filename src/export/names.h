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

/// The order in which a program that was captured again has its inputs: its own tensors as a tree of modules has them,
/// a module's own before those of its parts; parameters first, then buffers and constants.
std::vector<size_t> order_of_inputs(const std::vector<InputSpec>& inputs);

/// A size of an input that may vary, and what guards call it: L['x'].size()[0].
struct SizePlace {
  fx::Node* input;
  int64_t dimension;
  std::string source;
};

/// Adds the sizes of an input that are no numbers; `source` is what guards call the input.
void add_places(fx::Node* input, const std::string& source, std::vector<SizePlace>& places);
/// The sizes of a program's inputs that are no numbers, as a graph shows them whose inputs have their names.
std::vector<SizePlace> symbolic_sizes(const fx::Graph& graph);

/// How many sizes a graph asks for.
size_t count_sizes(const fx::Graph& graph);

/// Reads the sizes of inputs before anything else, in the inputs' order: a symbol from the input that it has its name
/// from; what follows from symbols where it is used. They have the names that PyTorch's have, which are made anew at
/// that place, for every size that varies and then for those of results, after the `recorded` ones of the run.
void settle_sizes(fx::Graph& graph, sym::ShapeEnv& env, const std::vector<SizePlace>& places, size_t recorded);

/// A number that a graph computes several times is computed where it was first.
void merge_repeated_numbers(fx::Graph& graph);

}  // namespace umbra
