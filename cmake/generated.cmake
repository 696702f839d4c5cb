# Typed functions and methods, written from the schemas in src/ops before anything is compiled.
set(UMBRA_GENERATED ${CMAKE_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${UMBRA_GENERATED}/include)
set(generator ${CMAKE_SOURCE_DIR}/tools/generate_operators.py)
set(schemas ${CMAKE_SOURCE_DIR}/src/ops/aten_schemas.txt)
set(UMBRA_GENERATED_SOURCES)

if(NOT EXISTS ${generator})
  add_custom_target(generate_operators)
  return()
endif()

find_program(UMBRA_PYTHON3 python3 REQUIRED)
# A fixed number of parts: the build has to know its sources beforehand, and several compile in parallel.
foreach(part RANGE 7)
  list(APPEND UMBRA_GENERATED_SOURCES ${UMBRA_GENERATED}/src/functions_${part}.cpp)
endforeach()
file(GLOB_RECURSE operator_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/*.cpp)

# The generator leaves a file alone whose contents would not change. With the files as by-products of a stamp, Ninja looks
# at their times after the run, and an edit to an operator's body rebuilds that one source and nothing else.
add_custom_command(
  OUTPUT ${UMBRA_GENERATED}/stamp
  BYPRODUCTS
    ${UMBRA_GENERATED}/include/umbra/generated/functions.h
    ${UMBRA_GENERATED}/include/umbra/generated/methods.inc
    ${UMBRA_GENERATED}/installed/umbra/generated/functions.h
    ${UMBRA_GENERATED}/installed/umbra/generated/methods.inc
    ${UMBRA_GENERATED_SOURCES}
  COMMAND ${UMBRA_PYTHON3} ${generator} --sources ${CMAKE_SOURCE_DIR}/src/ops --out ${UMBRA_GENERATED}
  COMMAND ${CMAKE_COMMAND} -E touch ${UMBRA_GENERATED}/stamp
  DEPENDS ${generator} ${schemas} ${operator_sources}
  COMMENT "Generating typed operators"
  VERBATIM)
add_custom_target(generate_operators DEPENDS ${UMBRA_GENERATED}/stamp)
