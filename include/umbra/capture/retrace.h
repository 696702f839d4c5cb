// Graphs that are recorded again while they run: what they become remembers where they came from.
#pragma once

#include <vector>

#include "umbra/graph/interpreter.h"
#include "umbra/graph/origin.h"

namespace UMBRA_API umbra {

/// Makes one call of a running graph; nodes that a tracer adds meanwhile get the module, the line and the function of
/// the graph's node. Their origin is what `origin` says. Modules of the graph stand inside those that are running
/// around it.
Value call_with_origin(fx::NodeCall& call, IntrusivePtr<fx::Origin> (*origin)(const fx::Node&));

/// Runs a graph, each call with its origin where a tracer is active.
std::vector<Value> run_with_origins(const IntrusivePtr<fx::GraphModule>& module, std::vector<Value> inputs);

}  // namespace umbra
