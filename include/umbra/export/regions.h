// Parts of a program that run in another mode, as graphs of their own.
#pragma once

#include "umbra/graph/graph_module.h"

namespace UMBRA_API umbra {

/// Puts what stands between calls of torch._C._set_grad_enabled into submodules that wrap_with_set_grad_enabled calls,
/// as exported programs have it. `enabled` is the mode that the program is captured in: parts of that mode stay where
/// they are. The module gets a new graph; names of inputs stay.
void wrap_grad_regions(fx::GraphModule& module, bool enabled);

/// Puts what stands between calls of _enter_autocast and _exit_autocast into submodules that wrap_with_autocast calls;
/// regions inside each other become submodules of submodules.
void wrap_autocast_regions(fx::GraphModule& module);

}  // namespace umbra
