// What files say that users have noted of nodes.
#pragma once

#include "umbra/graph/node.h"

namespace umbra::io {

/// The notes in a text of JSON; an error where it is none.
IntrusivePtr<fx::Annotations> read_annotations(const std::string& text);

}  // namespace umbra::io
