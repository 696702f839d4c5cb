// Constants: fake tensors whose values are known, since they are literals of the program or made of literals alone.
#pragma once

#include "fake/state.h"

namespace umbra {

/// A literal of the program (torch.tensor([1, 2])): fake from here on, and a small one still known.
bool lift_literal(const Operator& op, FakeModeImpl& mode, Value* frame);
/// All inputs are known: the operator runs for real and the result stays known. False where it does not.
bool fold_constants(const Operator& op, FakeModeImpl& mode, Value* frame);
/// A view of a constant is the same view of its value.
void view_constant(const Operator& op, FakeModeImpl& mode, Value* frame);
/// A write whose inputs are all known leaves known values, for all that lies in the same memory. False where it does
/// not.
bool write_constant(const Operator& op, FakeModeImpl& mode, Value* frame);
/// A constant that is written is none any more.
void forget_written_constants(const Operator& op, FakeModeImpl& mode, Value* frame);

/// Runs an operator from its definition, without data.
void run_fake(const Operator& op, FakeModeImpl& mode, Value* frame);

}  // namespace umbra
