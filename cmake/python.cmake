# The Python module umbra._C. The folder `build` has it in place: python/umbra is the package, and .venv's path file points to it.
# Another build folder keeps its own, which is taken instead where PYTHONPATH has <build folder>/python.
file(GLOB_RECURSE binding_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/bindings/*.cpp)
if(NOT binding_sources)
  return()
endif()

set(Python_EXECUTABLE ${CMAKE_SOURCE_DIR}/.venv/bin/python)
if(NOT EXISTS ${Python_EXECUTABLE})
  message(FATAL_ERROR "The Python module needs .venv: run tools/setup, or configure with -DUMBRA_PYTHON_MODULE=OFF")
endif()
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(
  COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
  OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)

nanobind_add_module(_C NOMINSIZE ${binding_sources})
target_link_libraries(_C PRIVATE umbra umbra_warnings fmt::fmt nlohmann_json::nlohmann_json)
target_include_directories(_C PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/python/bindings)
target_compile_definitions(_C PRIVATE UMBRA_INTERNAL)
add_dependencies(_C generate_operators)
if(UMBRA_SANITIZE) # what a class is cannot be asked where the library keeps its type to itself
  target_compile_options(_C PRIVATE -fno-sanitize=vptr)
endif()
umbra_precompile(_C precompiled_bindings.h)
if("${CMAKE_BINARY_DIR}" STREQUAL "${CMAKE_SOURCE_DIR}/build")
  set(module_folder ${CMAKE_SOURCE_DIR}/python/umbra)
else()
  set(module_folder ${CMAKE_BINARY_DIR}/python/umbra)
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/python/sitecustomize.py CONTENT [[
"""Made by cmake/python.cmake: the package's compiled module is that of this build folder."""
import importlib.util
import sys


class ThisBuild:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return importlib.util.spec_from_file_location(name, "$<TARGET_FILE:_C>") if name == "umbra._C" else None


sys.meta_path.insert(0, ThisBuild)
]])
endif()
set_target_properties(_C PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${module_folder})

# A Python that is not compiled with the sanitizers loads their library first, and the one that throws (make asan-python).
set(sanitizer_environment)
if(UMBRA_SANITIZE)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libasan.so OUTPUT_VARIABLE asan OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libstdc++.so OUTPUT_VARIABLE throws OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(sanitizer_environment LD_PRELOAD=${asan}:${throws} ASAN_OPTIONS=detect_leaks=0)
endif()

# Type stubs for editors and checkers, from the schemas of the operators that were built.
add_custom_command(TARGET _C POST_BUILD
  COMMAND ${CMAKE_COMMAND} -E env ${sanitizer_environment} PYTHONPATH=${CMAKE_BINARY_DIR}/python ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/generate_stubs.py --out ${CMAKE_SOURCE_DIR}/python/umbra
  VERBATIM)
