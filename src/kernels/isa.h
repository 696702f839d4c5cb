// Which instruction set the vector kernels run with. Each file of kernels/vector is compiled once for every set, its
// code in the namespace of that name; the choice is made once, at run time.
//
// Functors and inline functions outside those namespaces are instantiated by several of the objects; the linker keeps
// the first, and the objects stand in the order baseline, avx2, avx512, so that what is kept runs on every machine.
#pragma once

namespace umbra::kernels {

enum class Isa { Avx2, Avx512 };

/// The best set that this machine can run. The environment's UMBRA_ISA=avx2 asks for less.
Isa isa();

/// `UMBRA_DECLARE_VECTOR(void, sum, (const Tensor& out, const Tensor& self))` declares the function of every set;
/// `UMBRA_VECTOR(sum)(out, self)` calls the one to use.
#define UMBRA_DECLARE_VECTOR(Result, name, parameters) \
  namespace avx2 {                                     \
  Result name parameters;                              \
  }                                                    \
  namespace avx512 {                                   \
  Result name parameters;                              \
  }
#define UMBRA_VECTOR(name) (::umbra::kernels::isa() == ::umbra::kernels::Isa::Avx512 ? &avx512::name : &avx2::name)

}  // namespace umbra::kernels
