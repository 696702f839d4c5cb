// Symbolic numbers, as the files that bind them read them.
#pragma once

#include <optional>

#include "umbra/sym/shape_env.h"
#include "values.h"

namespace umbra::python {

inline sym::ShapeEnv& env_of(const SymNode* node) { return static_cast<const sym::Expression*>(node)->env(); }
/// The expression behind a symbolic number; anything else is an error.
const SymNode* expect_node(nb::handle object);
/// Python's truth of an object that is no SymBool.
bool plain_truth(nb::handle object);
/// A bool, symbolic or not; nothing for any other object.
std::optional<SymBool> read_bool(PyObject* object);

void bind_sym_questions(nb::module_& m);

}  // namespace umbra::python
