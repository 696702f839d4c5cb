// Calls of old programs, which give a factor by its place: x.add_(2, y) for x.add_(y, alpha=2).
#pragma once

#include <optional>

#include "arguments.h"

namespace umbra::python {

/// The same call with its factors by name.
struct RewrittenCall {
  std::vector<PyObject*> values;  // borrowed from the call that it was made of
  size_t positional;
  nb::object keywords;

  CallArguments arguments() const { return {values.data(), positional, keywords.ptr()}; }
};

/// Nothing where the function has no such form, or where the arguments are not of it.
std::optional<RewrittenCall> with_named_factors(const std::string& function, Reading reading,
                                                const CallArguments& call);

/// Whether a function has such a form, which messages do not show.
bool has_unnamed_factors(const std::string& function);

/// Says, once, that the form is deprecated.
void warn_of_unnamed_factors(const std::string& function);

}  // namespace umbra::python
