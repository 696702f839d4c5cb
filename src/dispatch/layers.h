// The table of layer functions and the registry: what dispatch/ shares among its own files.
#pragma once

#include "umbra/dispatch/operator.h"

namespace umbra {

LayerFunction layer_function(DispatchKey key);
/// What serves operators that take functions.
LayerFunction function_layer(DispatchKey key);
/// Adds an operator; an error if the name is taken.
Operator& register_operator(Schema schema);
/// Takes the name away; the Operator itself stays, since its address is its identity.
void remove_operator(const Operator& op);

}  // namespace umbra
