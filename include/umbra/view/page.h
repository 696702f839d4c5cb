// A program as a page to look at: its graph by modules, with shapes, costs and source lines, in one HTML file that
// needs nothing else.
//
//     std::ofstream("mlp.html") << program_page(load("mlp.pt2"), {.title = "mlp.pt2"});
#pragma once

#include <string>
#include <vector>

#include "umbra/export/exported_program.h"
#include "umbra/io/json.h"

namespace UMBRA_API umbra {

struct PageOptions {
  std::string title = "program";
  std::vector<std::string> sizes = {};  // "s0=64": the sizes for which costs are told
};

/// The page. Programs that cannot be run (an operator that is missing, sizes that depend on data) are shown without
/// costs, and the page says why.
std::string program_page(const ExportedProgram& program, const PageOptions& options = {});

/// What the page is made from: nodes, modules, sizes, memory over time. viewer/README.md describes it.
io::Json program_data(const ExportedProgram& program, const PageOptions& options = {});

}  // namespace umbra
