// What operators of libraries that write their arguments compute as values, for functionalisation: operators of the
// namespace `auto_functionalized`, made from the schema.
#pragma once

#include "umbra/dispatch/operator.h"

namespace umbra {

/// Gives an operator that writes single tensors its functional form; does nothing for others.
void define_functional_form(Operator& op);
/// An operator that writes lists or optional tensors has one form for each number of them: makes it, and goes on with
/// it at Functionalize. False where the operator is not of that kind.
bool functionalize_writes(const Operator& op, DispatchKeySet keys, Value* frame);
/// Whether this is a functional form, which runs the operator of a library on copies of what it writes.
bool runs_on_copies(const Operator& op);
/// The name of the operator that a form stands for; of any other operator its own.
std::string name_for_users(const Operator& op);
/// The operator of a library whose functional form this is; null of any other.
const Operator* original_of(const Operator& functional);
/// Takes back what was made for an operator.
void remove_functional_forms(const Operator& op);

}  // namespace umbra
