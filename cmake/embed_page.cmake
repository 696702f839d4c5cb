# cmake -DPAGE=... -DOUT=... -P embed_page.cmake: a C++ source with the page as bytes. (As text, CMake's lists and the
# compiler's limits on literals would have a say in what it may contain.)
file(READ ${PAGE} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "// Made from viewer/dist/viewer.html by cmake/embed_page.cmake.
#include \"view/assets.h\"

namespace umbra {
namespace {
constexpr unsigned char kPage[] = {
${bytes}};
}
std::string_view viewer_page() { return {reinterpret_cast<const char*>(kPage), sizeof kPage}; }
}  // namespace umbra
")
