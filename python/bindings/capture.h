// What capture takes from Python: functions of lists, and tables of decompositions.
#pragma once

#include "graph.h"
#include "umbra/capture/make_fx.h"

namespace umbra::python {

/// A Python function from a list of leaves to a list of leaves.
ValueFunction value_function(nb::handle callable);
/// {OpOverload: function}, or None.
DecompositionTable read_decompositions(nb::handle table);

}  // namespace umbra::python
