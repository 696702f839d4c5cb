# The libraries Umbra stands on. All come from Debian's packages (tools/setup).
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)

# umbra_dependency(<target> <package> <header> <library>...): an interface target for a library that has no usable CMake
# package. (oneDNN's own asks for OpenCL's headers, which nothing here uses.)
function(umbra_dependency target package header)
  find_path(${target}_include ${header} REQUIRED)
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE ${${target}_include})
  foreach(library ${ARGN})
    find_library(${target}_${library} ${library})
    if(NOT ${target}_${library})
      message(FATAL_ERROR "lib${library} is missing (Debian: ${package}); run tools/setup")
    endif()
    target_link_libraries(${target} INTERFACE ${${target}_${library}})
  endforeach()
endfunction()

umbra_dependency(umbra_onednn libdnnl-dev dnnl.hpp dnnl)
umbra_dependency(umbra_sleef libsleef-dev sleef.h sleef)
umbra_dependency(umbra_boost_math libboost-math-dev boost/math/special_functions.hpp)  # headers only
# OpenBLAS brings BLAS, CBLAS and LAPACK; Debian keeps LAPACK's C interface apart.
umbra_dependency(umbra_lapack "libopenblas-dev, liblapacke-dev" lapacke.h lapacke openblas)
# Fourier transforms: one header, which Debian has among those of gemmi. One file includes it, and gets its path.
find_path(umbra_pocketfft_header pocketfft_hdronly.h PATH_SUFFIXES gemmi/third_party)
if(NOT umbra_pocketfft_header)
  message(FATAL_ERROR "pocketfft_hdronly.h is missing (Debian: gemmi-dev); run tools/setup")
endif()
# What comes with GCC, in the compiler's own folders: the OpenMP runtime of oneDNN and OpenBLAS (kernels/openmp.h), and
# libbacktrace, which reads debug information. Other compilers look for its header in GCC's folder last, since that has
# GCC's intrinsics too.
find_library(umbra_gomp_library gomp HINTS ${CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES} REQUIRED)
find_library(umbra_backtrace_library backtrace HINTS ${CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES} REQUIRED)
add_library(umbra_of_gcc INTERFACE)
target_link_libraries(umbra_of_gcc INTERFACE ${umbra_gomp_library} ${umbra_backtrace_library})
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  execute_process(COMMAND gcc -print-file-name=include OUTPUT_VARIABLE gcc_folder OUTPUT_STRIP_TRAILING_WHITESPACE)
  find_path(umbra_backtrace_header backtrace.h HINTS ${gcc_folder} REQUIRED)
  target_compile_options(umbra_of_gcc INTERFACE "SHELL:-idirafter ${umbra_backtrace_header}")
endif()

# For programs and tests only.
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
find_package(CLI11 REQUIRED)
umbra_dependency(umbra_z3 libz3-dev z3++.h z3)
