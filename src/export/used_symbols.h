// The symbols that a graph's values are made of.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "umbra/graph/graph_module.h"
#include "umbra/sym/expression.h"

namespace UMBRA_API umbra {

/// Symbols in sizes and numbers of a graph and of its subgraphs.
std::unordered_set<const sym::Expression*> used_symbols(const fx::GraphModule& module);

/// The floats that a graph reads from data, by name: their ranges are whole.
std::vector<std::string> float_symbols(const fx::Graph& graph);

}  // namespace umbra
