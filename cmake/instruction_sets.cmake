# The instruction sets of the kernels, the least first: a name, and what a processor must have (as both the compiler and
# __builtin_cpu_supports call it). The compiler's flags, the declarations and the choice at run time (kernels/isa.h) follow
# from this list. The least one is what all kernels are compiled for and what the library needs: x86-64-v3. (Every processor
# with AVX2, FMA and BMI2 has F16C and LZCNT, which not every compiler can ask for.)
set(UMBRA_INSTRUCTION_SETS avx2 avx512)
set(UMBRA_FEATURES_avx2 avx2 fma bmi bmi2)
set(UMBRA_OPTIONS_avx2 -mf16c -mlzcnt)
set(UMBRA_FEATURES_avx512 ${UMBRA_FEATURES_avx2} avx512f avx512bw avx512dq avx512vl)
set(UMBRA_OPTIONS_avx512 ${UMBRA_OPTIONS_avx2} -mprefer-vector-width=512)

# UMBRA_EACH_INSTRUCTION_SET(X, ...) is X(set, condition, ...) for each, the best first.
set(sets)
foreach(set ${UMBRA_INSTRUCTION_SETS})
  list(TRANSFORM UMBRA_FEATURES_${set} PREPEND -m OUTPUT_VARIABLE UMBRA_FLAGS_${set})
  list(APPEND UMBRA_FLAGS_${set} ${UMBRA_OPTIONS_${set}})
  list(TRANSFORM UMBRA_FEATURES_${set} REPLACE "(.+)" "__builtin_cpu_supports(\"\\1\")" OUTPUT_VARIABLE conditions)
  list(JOIN conditions " && " condition)
  string(PREPEND sets " \\\n  X(${set}, ${condition}, __VA_ARGS__)")
endforeach()
file(CONFIGURE OUTPUT ${UMBRA_GENERATED}/include/umbra/generated/instruction_sets.h
  CONTENT "// Made by cmake/instruction_sets.cmake.\n#pragma once\n#define UMBRA_EACH_INSTRUCTION_SET(X, ...)@sets@\n" @ONLY)
list(GET UMBRA_INSTRUCTION_SETS 0 UMBRA_LEAST_INSTRUCTION_SET)
