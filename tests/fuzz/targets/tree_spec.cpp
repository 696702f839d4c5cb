// Shapes of nested arguments, as programs hold them: JSON inside of JSON.
#include "target.h"
#include "umbra/io/pt2_program.h"

void umbra::fuzz::run(std::string_view input) {
  TreeSpec spec = io::parse_tree_spec(std::string(input));
  io::parse_tree_spec(io::write_tree_spec(spec));
}
