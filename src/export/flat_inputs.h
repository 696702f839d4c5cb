// The inputs of a program that is exported, one after the other.
#pragma once

#include <string>
#include <vector>

#include "umbra/capture/pytree.h"

namespace umbra {

/// The flat user inputs: what each is called in the graph (parts_b_0), and in guards and dynamic_shapes
/// (parts['b'][0]).
struct FlatInputs {
  std::vector<Value> values;
  std::vector<std::string> names, paths;
  TreeSpec spec;
};

FlatInputs flatten_inputs(const Tree& arguments, const Tree& keywords, const std::vector<std::string>& argument_names);

}  // namespace umbra
