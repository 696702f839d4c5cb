// Memory of expressions, for all ShapeEnvs of the process.
//
// A SymInt is a pointer that keeps nothing alive. So that one which outlives its ShapeEnv is an error and not a stray
// pointer, blocks of expressions are never given back to the system, and each expression carries the number of its
// environment's generation: a SymInt knows the generation it was made in, and zero means that nobody lives there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace umbra::sym {

inline constexpr size_t kExpressionsInBlock = 256;

/// Memory for that many expressions of `size` bytes, 16-aligned: fresh, or of an environment that ended long ago.
std::byte* take_expression_block(size_t size);
/// Hands a block back; its expressions have got generation zero.
void give_back_expression_block(std::byte* block);

/// A number from 1 up that the environments of a long time before do not have.
uint16_t next_generation();

}  // namespace umbra::sym
