// Passes over graphs.
#pragma once

#include "umbra/jit/ir.h"

namespace UMBRA_API umbra {
namespace jit {

/// Takes away what nothing reads and nobody could notice.
void eliminate_dead_code(Graph& graph);
/// The same, and writes to what nobody reads any more.
void eliminate_dead_writes(Graph& graph);
/// Makes one of calls that are equal, where nobody writes their values and nobody outside could tell them apart.
void eliminate_common_subexpressions(Graph& graph);
/// Computes numbers and texts that depend on constants alone.
void propagate_constants(Graph& graph);
/// The same, and tensors that depend on constant tensors which nobody writes.
void propagate_constant_tensors(Graph& graph);
/// Puts the branch that is taken in the place of a prim::If whose condition is a constant. True where there was one.
bool fold_branches(Graph& graph);
/// Makes one of equal constants; all stand at the top of the graph.
void pool_constants(Graph& graph);
/// Numbers that go through tensors and back, as traces write sizes, stay numbers.
void simplify_numbers(Graph& graph);
/// Puts the bodies of functions and methods in the place of their calls.
void inline_calls(Graph& graph);
/// Takes away nodes whose result is there already (`x.t().t()`, the length of a list that nobody writes) or,
/// `with_shapes`, shows in a tensor's type. True where there was one.
bool peephole(Graph& graph, bool with_shapes = true);
/// A method of a module as a graph without it: the tensors that it reads are further inputs, which come beside it.
std::pair<std::shared_ptr<Graph>, std::vector<umbra::Value>> lower_module(const Graph& method,
                                                                          const umbra::Value& module);
/// Finds what tensors look like from what is known of the graph's inputs; where that depends on data, nothing is said.
void propagate_shapes(Graph& graph);
/// Nothing is said about any tensor.
void erase_shapes(Graph& graph);
/// The graph's inputs look like these; `with_grad`: and require gradients where these do.
void set_input_shapes(Graph& graph, const std::vector<umbra::Value>& examples, bool with_grad);
/// A copy of a module whose methods (`forward` and those to be kept) have its tensors and modules inside: what nothing
/// reads any more is gone, what the methods set stays an attribute. The original stays as it is.
Value freeze(const Value& module, const std::vector<std::string>& preserved);
/// An error that says what is wrong with a graph: a value that is read before it is there, a block that gives another
/// number of values than its node.
void lint(const Graph& graph);
/// The same up to names and places in the source.
bool same_structure(const Graph& a, const Graph& b);

}  // namespace jit
}  // namespace umbra
