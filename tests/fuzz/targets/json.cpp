// JSON: what is read is written and read again as the same value.
#include "umbra/io/json.h"

#include <cstdlib>

#include "target.h"

void umbra::fuzz::run(std::string_view input) {
  io::Json value = io::parse_json(input, "input");
  if (!(io::parse_json(io::write_json(value), "written") == value)) std::abort();
}
