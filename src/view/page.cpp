#include "umbra/view/page.h"

#include "view/assets.h"

namespace umbra {

namespace {

/// Text inside of an HTML element.
std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

/// JSON inside of a script element, which no text of it may end.
std::string script_text(const io::Json& value) {
  std::string out;
  for (char c : io::write_json(value)) out += c == '<' ? "\\u003c" : std::string(1, c);
  return out;
}

void fill(std::string& page, std::string_view place, const std::string& text) {
  size_t at = page.find(place);
  check(at != std::string::npos, "the viewer's page has no place for ", place);
  page.replace(at, place.size(), text);
}

}  // namespace

std::string program_page(const ExportedProgram& program, const PageOptions& options) {
  std::string page(viewer_page());
  fill(page, "@umbra:title@", escaped(options.title));
  fill(page, "\"@umbra:program@\"", script_text(program_data(program, options)));
  return page;
}

}  // namespace umbra
