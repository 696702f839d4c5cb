# cmake --install: headers, library, command line and a CMake package, for find_package(umbra) and umbra::umbra.
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/umbra)

install(TARGETS umbra EXPORT umbra-targets)
if(TARGET umbra_cli)
  file(RELATIVE_PATH to_library ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(umbra_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${to_library}")
  install(TARGETS umbra_cli)
endif()
foreach(folder ${CMAKE_SOURCE_DIR}/include/ ${UMBRA_GENERATED}/installed/)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.inc")
endforeach()

# Nothing else to find: the public headers use the standard library only, and the rest is linked privately.
install(EXPORT umbra-targets NAMESPACE umbra:: FILE umbra-config.cmake DESTINATION ${package_folder})
write_basic_package_version_file(umbra-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/umbra-config-version.cmake DESTINATION ${package_folder})

# How gdb shows tensors: beside the library, where gdb looks by itself, and where a user may source it.
install(FILES ${CMAKE_SOURCE_DIR}/tools/gdb/umbra.py DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RENAME libumbra.so.${PROJECT_VERSION}-gdb.py)
install(FILES ${CMAKE_SOURCE_DIR}/tools/gdb/umbra.py DESTINATION ${CMAKE_INSTALL_DATADIR}/umbra/gdb)

# An outside project builds against an installed tree.
if(EXISTS ${CMAKE_SOURCE_DIR}/include/umbra/umbra.h AND NOT UMBRA_SANITIZE AND NOT UMBRA_SANITIZE_THREADS)
  add_test(NAME install COMMAND ${CMAKE_SOURCE_DIR}/tests/install/run ${CMAKE_BINARY_DIR} ${CMAKE_CXX_COMPILER})
endif()
