# The viewer's page becomes a source of the library. viewer/dist/viewer.html is made by npm when the viewer is changed
# (viewer/README.md) and checked in, so that a build needs neither npm nor a network.
set(viewer_page ${CMAKE_SOURCE_DIR}/viewer/dist/viewer.html)
set(UMBRA_VIEWER_SOURCE ${UMBRA_GENERATED}/src/viewer_page.cpp)
add_custom_command(
  OUTPUT ${UMBRA_VIEWER_SOURCE}
  COMMAND ${CMAKE_COMMAND} -DPAGE=${viewer_page} -DOUT=${UMBRA_VIEWER_SOURCE} -P ${CMAKE_CURRENT_LIST_DIR}/embed_page.cmake
  DEPENDS ${viewer_page} ${CMAKE_CURRENT_LIST_DIR}/embed_page.cmake
  COMMENT "Embedding the viewer"
  VERBATIM)
