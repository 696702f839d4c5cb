// Checks of what a program relies on and only its run can tell.
#pragma once

#include "umbra/graph/graph_module.h"
#include "umbra/sym/shape_env.h"

namespace UMBRA_API umbra {

/// Puts calls of _assert_scalar into a graph, and into those of the functions that it hands to operators, for what is
/// known of its unbacked symbols: the ranges they were made with, and the conditions of torch._check and of operators
/// (ShapeEnv::runtime_asserts). Each stands behind the call that gives the last of its symbols, before anything uses
/// it. Conditions on symbols that the graph does not compute are left out. `first_ranges`: the ranges that symbols were
/// made with are checked, too (a size is not negative). `earlier`: conditions that come before those of `env`.
void insert_runtime_asserts(fx::GraphModule& module, sym::ShapeEnv& env, bool first_ranges = true,
                            const std::vector<const sym::Expression*>& earlier = {});

/// Puts a call of _assert_tensor_metadata before each conversion (`to`), which is a copy or the tensor itself depending
/// on what it is given.
void insert_metadata_asserts(fx::Graph& graph);

}  // namespace umbra
