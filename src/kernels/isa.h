// Which instruction set the vector kernels run with. Each file of kernels/vector is compiled once for every set, its
// code in the namespace of that name; the choice is made once, at run time. The sets are listed in
// cmake/instruction_sets.cmake, and nowhere else.
//
// Functors and inline functions outside those namespaces are instantiated by several of the objects; the linker keeps
// the first, and the objects stand in the order of their sets, so that what is kept runs on every machine.
#pragma once

#include "umbra/generated/instruction_sets.h"

namespace umbra::kernels {

#define UMBRA_NAME_OF_SET(set, condition, ...) set,
enum class Isa { UMBRA_EACH_INSTRUCTION_SET(UMBRA_NAME_OF_SET) };
#undef UMBRA_NAME_OF_SET

/// The best set that this machine can run. The environment's UMBRA_ISA=avx2 asks for less.
Isa isa();

/// `UMBRA_DECLARE_VECTOR(void, sum, (const Tensor& out, const Tensor& self))` declares the function of every set;
/// `UMBRA_VECTOR(sum)(out, self)` calls the one to use.
#define UMBRA_DECLARE_VECTOR(Result, name, parameters) \
  UMBRA_EACH_INSTRUCTION_SET(UMBRA_DECLARE_IN_SET, Result, name, parameters)
#define UMBRA_DECLARE_IN_SET(set, condition, Result, name, parameters) \
  namespace set {                                                      \
  Result name parameters;                                              \
  }
#define UMBRA_VECTOR(name) (UMBRA_EACH_INSTRUCTION_SET(UMBRA_CHOOSE_SET, name) nullptr)
#define UMBRA_CHOOSE_SET(set, condition, ...) ::umbra::kernels::isa() == ::umbra::kernels::Isa::set ? &set::__VA_ARGS__:

}  // namespace umbra::kernels
