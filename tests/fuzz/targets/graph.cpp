// The JSON of a program, without weights: read, verified, made a graph, printed, and written again.
#include "target.h"
#include "umbra/io/pt2_program.h"
#include "umbra/io/pt2_verify.h"

void umbra::fuzz::run(std::string_view input) {
  io::Pt2Program stored;
  stored.program = io::pt2::parse_program(input, "input");
  io::pt2::verify(stored.program, "input");
  ExportedProgram program = io::from_pt2(stored);
  to_string(program);
  missing_operators(program);
  io::pt2::write_program(io::to_pt2(program).program);
}
