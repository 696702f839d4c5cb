// From TorchScript to captured programs: what an owner of old files needs to go on.
//
//     Value module = io::load_torchscript("model.pt");
//     ExportedProgram program = jit::to_exported_program(module, {Value(x)});
//     save(program, "model.pt2");
//
// The program runs once on tensors without data. Branches and loops that data decides become cond and while_loop;
// what these cannot carry (numbers, writes to containers) is refused by name.
#pragma once

#include "umbra/export/export.h"
#include "umbra/jit/objects.h"

namespace UMBRA_API umbra {
namespace jit {

/// A module's `forward` for arguments like these, with its parameters and buffers under their names.
ExportedProgram to_exported_program(const Value& module, const std::vector<Value>& arguments,
                                    const std::vector<std::pair<std::string, Value>>& keywords = {},
                                    const ExportOptions& options = {});
/// The same as a graph that holds its tensors itself.
IntrusivePtr<fx::GraphModule> to_graph_module(const Value& module, const std::vector<Value>& arguments);

}  // namespace jit
}  // namespace umbra
