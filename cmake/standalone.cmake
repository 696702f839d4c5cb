# `make standalone`: the command line as a folder that needs nothing but the C library. The library's objects, LAPACK and zlib are
# part of the program; oneDNN and Sleef, which Debian has as shared libraries alone, lie beside it. BLAS and LAPACK are the reference
# ones, of which the linker takes what is used (OpenBLAS has kernels for every processor: 36 MB); products of floats are oneDNN's.
find_library(umbra_lapacke_archive liblapacke.a)
find_library(umbra_lapack_archive liblapack.a PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/lapack NO_DEFAULT_PATH)
find_library(umbra_blas_archive libblas.a PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/blas NO_DEFAULT_PATH)
find_library(umbra_zlib_archive libz.a)
find_library(umbra_gfortran_archive libgfortran.a HINTS ${CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES})
find_library(umbra_quadmath_archive libquadmath.a HINTS ${CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES})
set(standalone_archives ${umbra_lapacke_archive} ${umbra_lapack_archive} ${umbra_blas_archive} ${umbra_gfortran_archive}
  ${umbra_quadmath_archive} ${umbra_zlib_archive})
if(standalone_archives MATCHES "NOTFOUND")
  add_custom_target(standalone
    COMMAND ${CMAKE_COMMAND} -E echo "standalone: static BLAS, LAPACK or Fortran libraries are missing (Debian: libblas-dev liblapack-dev gfortran)"
    COMMAND false VERBATIM)
  return()
endif()

add_executable(umbra_standalone EXCLUDE_FROM_ALL ${cli_sources})
foreach(target umbra ${umbra_object_targets})
  target_sources(umbra_standalone PRIVATE $<TARGET_OBJECTS:${target}>)
endforeach()
target_link_libraries(umbra_standalone PRIVATE
  CLI11::CLI11 umbra_warnings Threads::Threads fmt::fmt nlohmann_json::nlohmann_json umbra_onednn umbra_sleef umbra_of_gcc
  -Wl,--start-group ${standalone_archives} -Wl,--end-group ${CMAKE_DL_LIBS} m)
target_include_directories(umbra_standalone PRIVATE
  ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src ${UMBRA_GENERATED}/include)
target_compile_features(umbra_standalone PRIVATE cxx_std_20)
target_compile_definitions(umbra_standalone PRIVATE UMBRA_INTERNAL UMBRA_VERSION="${PROJECT_VERSION}")
target_link_options(umbra_standalone PRIVATE -Wl,--gc-sections -Wl,-s)
add_dependencies(umbra_standalone generate_operators)
set_target_properties(umbra_standalone PROPERTIES
  OUTPUT_NAME umbra RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/standalone
  BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/lib")
add_custom_target(standalone
  COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:umbra_standalone> -DSTRIP=${CMAKE_STRIP} -P ${CMAKE_SOURCE_DIR}/cmake/bundle.cmake
  DEPENDS umbra_standalone VERBATIM)
