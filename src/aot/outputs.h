// The part of the analysis that is about outputs: which of them are, or are views of, something that the caller has.
#pragma once

#include "umbra/aot/analysis.h"

namespace umbra::aot {

/// Fills in what `results` are to `sources` and to each other.
void describe_outputs(CallInfo& info, const std::vector<Value>& results, const std::vector<Tensor>& sources);
std::string to_string(const OutputInfo& output);

}  // namespace umbra::aot
