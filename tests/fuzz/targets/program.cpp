// A .pt2 file, as the text of an archive: read whole, printed, made callable, and written again.
#include "target.h"
#include "umbra/io/pt2_program.h"

void umbra::fuzz::run(std::string_view input) {
  io::Pt2Archive archive = io::read_pt2(pack(input), "input");
  for (const io::Pt2Program& stored : archive.programs) {
    ExportedProgram program = io::from_pt2(stored);
    to_string(program);
    if (missing_operators(program).empty()) program.module();
    io::BufferSink sink;
    io::write_pt2(sink, {{io::to_pt2(program)}, archive.extra_files});
  }
}
