# Command line, tests, golden report, benchmarks and examples: a folder's sources become programs in the build folder. Who
# builds the library builds the command line with it; the others are built by name, or all by the target `programs`.
enable_testing()
add_custom_target(programs)

# umbra_program(<name> <library>... SOURCES <source>...): an executable that may look into the library's private headers.
function(umbra_program name)
  cmake_parse_arguments(PARSE_ARGV 1 program "" "" "SOURCES")
  add_executable(${name} EXCLUDE_FROM_ALL ${program_SOURCES})
  add_dependencies(programs ${name})
  target_link_libraries(${name} PRIVATE
    umbra umbra_warnings fmt::fmt nlohmann_json::nlohmann_json ZLIB::ZLIB Threads::Threads ${program_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_compile_definitions(${name} PRIVATE UMBRA_INTERNAL)
  add_dependencies(${name} generate_operators)
endfunction()

# umbra_user_program(<name> <source> <library>...): an executable that sees what a user sees: the public headers alone, with
# the operators as they are installed.
function(umbra_user_program name source)
  add_executable(${name} EXCLUDE_FROM_ALL ${source})
  add_dependencies(programs ${name})
  target_include_directories(${name} BEFORE PRIVATE ${UMBRA_GENERATED}/installed)
  target_link_libraries(${name} PRIVATE umbra umbra_warnings ${ARGN})
  add_dependencies(${name} generate_operators)
endfunction()

# ---- command line: build/umbra
file(GLOB_RECURSE cli_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cli/*.cpp)
if(cli_sources)
  # The target's name is the library's already; the program's file is called umbra all the same.
  umbra_program(umbra_cli CLI11::CLI11 SOURCES ${cli_sources})
  set_target_properties(umbra_cli PROPERTIES OUTPUT_NAME umbra EXCLUDE_FROM_ALL OFF)
  target_compile_definitions(umbra_cli PRIVATE UMBRA_VERSION="${PROJECT_VERSION}")
  umbra_precompile(umbra_cli umbra/umbra.h)
  include(standalone)
endif()

# ---- tests: one program for each folder of tests/cpp
file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/cpp/*.cpp)
list(FILTER test_sources EXCLUDE REGEX "/tests/cpp/[^/]+$")
set(test_folders)
foreach(source ${test_sources})
  string(REGEX REPLACE "^.*/tests/cpp/([^/]+)/.*$" "\\1" folder ${source})
  if(source MATCHES "/tests/cpp/[^/]+/.*_test\\.cpp$")
    list(APPEND test_folders ${folder})
  endif()
  list(APPEND test_sources_${folder} ${source})
endforeach()
list(REMOVE_DUPLICATES test_folders)
# Compilers take most of a test's time in the headers of GoogleTest and of the library, and in making its checks fast, which
# they need not be. The headers are precompiled once for all programs; those that look at lines of code are compiled as users
# compile.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/src/precompiled_tests.cpp CONTENT "// The precompiled header needs a target.\n")
umbra_program(precompiled_tests GTest::gtest_main GTest::gmock SOURCES ${CMAKE_BINARY_DIR}/generated/src/precompiled_tests.cpp)
target_include_directories(precompiled_tests PRIVATE ${CMAKE_SOURCE_DIR}/tests/cpp)
target_compile_options(precompiled_tests PRIVATE -O0)
umbra_precompile(precompiled_tests precompiled_tests.h)
foreach(folder ${test_folders})
  umbra_program(test_${folder} GTest::gtest_main GTest::gmock umbra_z3 SOURCES ${test_sources_${folder}})
  target_include_directories(test_${folder} PRIVATE ${CMAKE_SOURCE_DIR}/tests/cpp)
  if(folder STREQUAL "kernels") # stands below the operators, and has names of theirs
    target_compile_options(test_kernels PRIVATE -O0)
    umbra_precompile(test_kernels gmock/gmock.h)
  elseif(NOT folder MATCHES "^(location|sym)$")
    target_compile_options(test_${folder} PRIVATE -O0 ${umbra_precompiled_options})
    target_precompile_headers(test_${folder} REUSE_FROM precompiled_tests)
  endif()
  add_test(NAME ${folder} COMMAND test_${folder} --gtest_brief=1 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endforeach()
# A file beside the folders is a program of its own.
file(GLOB user_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/cpp/*_test.cpp)
foreach(source ${user_tests})
  cmake_path(GET source STEM name)
  string(REGEX REPLACE "_test$" "" name ${name})
  umbra_user_program(test_${name} ${source} GTest::gtest_main GTest::gmock)
  target_compile_options(test_${name} PRIVATE -O0)
  add_test(NAME ${name} COMMAND test_${name} --gtest_brief=1 WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
endforeach()
# Kernels are hidden in the library: their tests are linked with its objects instead.
if(TARGET test_kernels)
  get_target_property(libraries test_kernels LINK_LIBRARIES)
  list(REMOVE_ITEM libraries umbra)
  set_target_properties(test_kernels PROPERTIES LINK_LIBRARIES "${libraries}")
  foreach(target umbra ${umbra_object_targets})
    target_sources(test_kernels PRIVATE $<TARGET_OBJECTS:${target}>)
  endforeach()
  target_link_libraries(test_kernels PRIVATE umbra_private)
  # Whatever this processor has, the least instruction set too.
  add_test(NAME kernels_${UMBRA_LEAST_INSTRUCTION_SET} COMMAND test_kernels --gtest_brief=1 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(kernels_${UMBRA_LEAST_INSTRUCTION_SET} PROPERTIES ENVIRONMENT UMBRA_ISA=${UMBRA_LEAST_INSTRUCTION_SET})
endif()
# Lines of the user's program are found with debug information, and whatever the optimiser does. (A compiler cache may answer
# with an object whose debug information names another checkout.)
if(TARGET test_location)
  umbra_program(test_location_unoptimised GTest::gtest_main GTest::gmock SOURCES ${test_sources_location})
  add_test(NAME location_unoptimised COMMAND test_location_unoptimised --gtest_brief=1)
  foreach(target test_location test_location_unoptimised)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "")
  endforeach()
  target_compile_options(test_location PRIVATE -g)
  target_compile_options(test_location_unoptimised PRIVATE -g -O0)
endif()

# ---- fuzz targets: one program for each file of tests/fuzz/targets, which runs over a corpus (tests/fuzz/CMakeLists.txt
# makes them for libFuzzer). Each is a test over the corpus in the repository and a number of changed copies of it.
file(GLOB fuzz_targets CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/targets/*.cpp)
add_library(umbra_fuzz OBJECT EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/fuzz/entry.cpp ${CMAKE_SOURCE_DIR}/tests/fuzz/run_corpus.cpp)
target_link_libraries(umbra_fuzz PRIVATE umbra umbra_warnings)
target_compile_definitions(umbra_fuzz PRIVATE UMBRA_INTERNAL)
foreach(source ${fuzz_targets})
  cmake_path(GET source STEM name)
  umbra_program(fuzz_${name} umbra_fuzz SOURCES ${source})
  target_include_directories(fuzz_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/fuzz)
  add_test(NAME fuzz_${name} COMMAND fuzz_${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name} --changes 100)
endforeach()

# ---- golden report: build/golden_report
file(GLOB_RECURSE golden_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/golden/*.cpp)
if(golden_sources)
  umbra_program(golden_report SOURCES ${golden_sources})
  umbra_precompile(golden_report umbra/umbra.h)
  target_compile_definitions(golden_report PRIVATE UMBRA_GOLDEN_DATA="${CMAKE_SOURCE_DIR}/tests/golden/data")
  # No level may fall below the share of records that floor.txt demands; it is raised as operators get better.
  add_test(NAME golden COMMAND golden_report --floor ${CMAKE_SOURCE_DIR}/tests/golden/floor.txt)
  add_test(NAME robust COMMAND golden_report --level robust --floor ${CMAKE_SOURCE_DIR}/tests/golden/floor.txt)
  add_test(NAME symbolic COMMAND golden_report --level symbolic --floor ${CMAKE_SOURCE_DIR}/tests/golden/floor.txt)
  add_test(NAME vmap COMMAND golden_report --level vmap --floor ${CMAKE_SOURCE_DIR}/tests/golden/floor.txt)
  add_test(NAME second COMMAND golden_report --level second --floor ${CMAKE_SOURCE_DIR}/tests/golden/floor.txt)
  add_test(NAME calls COMMAND golden_report --level calls --floor ${CMAKE_SOURCE_DIR}/tests/golden/floor.txt)
  add_test(NAME aot_records COMMAND golden_report --level aot --floor ${CMAKE_SOURCE_DIR}/tests/golden/floor.txt)
  add_test(NAME properties COMMAND golden_report --level variants,layout,replay,hooks --floor ${CMAKE_SOURCE_DIR}/tests/golden/floor.txt)
endif()

# ---- interop: build/interop_models and interop_train, used by tools/interop
if(EXISTS ${CMAKE_SOURCE_DIR}/tests/interop/export_models.cpp)
  umbra_program(interop_models SOURCES ${CMAKE_SOURCE_DIR}/tests/interop/export_models.cpp)
  target_include_directories(interop_models PRIVATE ${CMAKE_SOURCE_DIR}/examples/cpp)
  umbra_program(interop_train SOURCES ${CMAKE_SOURCE_DIR}/tests/interop/train_models.cpp)
  umbra_program(interop_torchscript SOURCES ${CMAKE_SOURCE_DIR}/tests/interop/torchscript_check.cpp)
endif()

# ---- benchmarks: one program for each file
file(GLOB benchmark_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/benchmarks/*.cpp)
foreach(source ${benchmark_sources})
  cmake_path(GET source STEM name)
  string(REGEX REPLACE "^bench_" "" name ${name})
  umbra_program(bench_${name} benchmark::benchmark_main SOURCES ${source})
endforeach()

# ---- examples: one program for each file, each a test too.
file(GLOB example_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/examples/cpp/*.cpp)
foreach(source ${example_sources})
  cmake_path(GET source STEM name)
  umbra_user_program(example_${name} ${source})
  # Examples may write files; those belong in the build folder.
  add_test(NAME example_${name} COMMAND example_${name} WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
endforeach()

# docs/graphs.md is what this example prints; run it again where the graphs have changed for the better.
add_test(NAME docs_graphs COMMAND sh -c "$<TARGET_FILE:example_graphs> | diff - ${CMAKE_SOURCE_DIR}/docs/graphs.md")
