// Calls of functions that take an operator and its arguments (with_effects, out_dtype), as their nodes have them.
#pragma once

#include "umbra/dispatch/operator.h"
#include "umbra/graph/graph.h"

namespace umbra {

/// A node's arguments without keywords: two of the function's own, then all of the operator's in the order of its
/// schema.
inline fx::Arguments operator_row(const fx::Node& node, const Operator& op) {
  fx::Arguments row = node.args();
  const auto& schema = op.schema().arguments;
  for (size_t i = row.size() - 2; i < schema.size(); ++i) {
    const fx::Argument* found = nullptr;
    for (const auto& [name, value] : node.kwargs())
      if (name == schema[i].name) found = &value;
    check<TypeError>(found || schema[i].default_value, op.name(), "() is missing value for argument '", schema[i].name,
                     "'");
    row.push_back(found ? *found : fx::Argument(*schema[i].default_value));
  }
  return row;
}

}  // namespace umbra
