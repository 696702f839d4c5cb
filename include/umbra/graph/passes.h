// Passes: rewriting and checking graphs. Each is a function, in a file with its name under src/graph/passes.
#pragma once

#include <functional>

#include "umbra/graph/graph_module.h"

namespace UMBRA_API umbra {
namespace fx {

/// Removes nodes whose values nobody uses. Inputs, outputs, writes to arguments, assertions and random numbers stay;
/// `is_impure`, where given, decides instead. True if something was removed.
bool eliminate_dead_code(Graph& graph, const std::function<bool(const Node&)>& is_impure = {});
/// The same, for the subgraphs that it calls too.
bool eliminate_dead_code(GraphModule& module, const std::function<bool(const Node&)>& is_impure = {});
/// Takes away the graphs that no node calls any more.
void remove_unused_submodules(GraphModule& module);

/// Computes once what is computed twice from the same arguments. Values that are given out stay apart, so that results
/// do not come to share memory; in a graph that writes to its values only computations on sizes are merged. Nodes of
/// which `stays`, where given, holds are computed each. True if something was merged.
bool eliminate_common_subexpressions(Graph& graph, const std::function<bool(const Node&)>& stays = {});

/// Checks that a graph is well formed: nodes belong to it, have names of their own and are defined before they are
/// used, and calls of operators fit their schemas. The error says which node is wrong and how.
void lint(const Graph& graph);
/// The same, and that the attributes it refers to exist; subgraphs too.
void lint(const GraphModule& module);

/// Puts nodes behind the nodes they use, moving as few as possible; an error if they use each other in a circle.
void sort_topologically(Graph& graph);

/// A graph that computes `outputs` from `inputs`: the nodes between them, with placeholders of the same names for the
/// inputs. An error if an output needs an input of the whole graph that is not among `inputs`. `map`, where given, is
/// filled.
///
/// Partitioners are made of this: the backward graph is what computes the gradients from the saved values and the
/// tangents.
IntrusivePtr<Graph> extract_subgraph(const Graph& graph, ArrayRef<Node*> inputs, const Arguments& outputs,
                                     NodeMap* map = nullptr);

}  // namespace fx
}  // namespace umbra
