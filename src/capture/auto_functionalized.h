// Calls of users' operators that write, as programs have them.
#pragma once

#include "umbra/graph/graph_module.h"

namespace umbra {

/// Functional forms of users' operators become calls of auto_functionalized_v2, as PyTorch's programs have them.
void call_by_auto_functionalized(fx::Graph& graph);

}  // namespace umbra
