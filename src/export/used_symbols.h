// The symbols that a graph's values are made of.
#pragma once

#include <unordered_set>

#include "umbra/graph/graph_module.h"
#include "umbra/sym/expression.h"

namespace umbra {

/// Symbols in sizes and numbers of a graph and of its subgraphs.
std::unordered_set<const sym::Expression*> used_symbols(const fx::GraphModule& module);

}  // namespace umbra
