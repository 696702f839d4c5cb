// What the build puts into the library from viewer/dist (cmake/viewer.cmake).
#pragma once

#include <string_view>

namespace umbra {

/// The viewer's page, with places for a title and a program.
std::string_view viewer_page();

}  // namespace umbra
