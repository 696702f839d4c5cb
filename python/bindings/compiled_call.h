// The callable that users of compiled functions have: it finds the graphs of a call and runs them without Python.
#pragma once

#include "python.h"
#include "umbra/aot/compile.h"

namespace umbra::python {

struct CompiledObject {
  std::shared_ptr<aot::CompiledFunction> function;
};

/// What a user's compiler made of a graph, as a function of values: `(callable, takes a list, graph module or None)`. A
/// graph module that is given back as it is runs in C++ as long as nobody changes it.
ValueFunction run_compiled(nb::handle compiled);

}  // namespace umbra::python
