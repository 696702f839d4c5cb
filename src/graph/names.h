// How names of nodes follow from what they call.
#pragma once

#include <string>
#include <string_view>

namespace umbra::fx {

class Node;

/// A name that code may not give to a variable: a keyword, a builtin function, or one that generated code imports.
bool is_reserved_name(std::string_view name);
/// What code calls a node: an input may have a name that code has another use for, and is called otherwise then.
std::string name_in_code(const Node& node);
/// "fooBar" -> "foo_bar", "__add__" -> "add": the name a node takes from a Python function's or attribute's.
std::string name_from(std::string_view target);
bool is_identifier(std::string_view text);

}  // namespace umbra::fx
