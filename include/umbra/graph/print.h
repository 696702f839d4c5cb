// Graphs as text, in the forms torch.fx has made known: the list of nodes, Python code, annotated code, a table.
#pragma once

#include <string>

#include "umbra/graph/graph.h"

namespace UMBRA_API umbra {
namespace fx {

class GraphModule;

struct CodeOptions {
  bool verbose = false;         // annotate values with their types, and lines with where they came from
  bool include_stride = false;  // "f32[8, 4][4, 1]"
  bool include_device = false;  // "f32[8, 4]cpu"
  bool colored = false;         // for terminals
};

/// The graph as a Python function: "def forward(self, x): ...", three blank lines before it as torch.fx has them.
std::string python_code(const Graph& graph, const CodeOptions& options = {});

/// Whether that function has statements that bind names anew (`x += y`, from `operator.iadd`): its calls one by one are
/// then another program, where values cannot be written in place.
bool has_statements(const Graph& graph);

/// The module and its submodules as annotated classes: what `print_readable()` prints.
std::string readable_code(const GraphModule& module, CodeOptions options = {});

/// The nodes as a table with the columns opcode, name, target, args, kwargs.
std::string tabular(const Graph& graph);

/// Keys of dicts are texts. One that is another literal (a number, None) is its text behind this mark.
inline constexpr char kLiteralKey = '\1';

/// A value as Python's repr writes it ('text', device(type='cpu'), [1, 2]) and as its str does (text, cpu).
std::string python_repr(const Value& value);
std::string python_str(const Value& value);
/// How values that are objects of another language are written; without it "<object>".
void set_object_printer(std::string (*printer)(const RefCounted& object));
/// An argument as code writes it: nodes by their names.
std::string python_repr(const Argument& argument);
/// An argument as the list of nodes writes it: nodes with a percent sign.
std::string format_argument(const Argument& argument);

/// "f32[s0, 8]": type and shape of a tensor; "Sym(s0)" of a symbolic number; empty for anything else.
std::string type_annotation(const Value& value, const CodeOptions& options = {});
/// "f32", "bf16", "i64".
const char* short_name(DType dtype);

}  // namespace fx
}  // namespace umbra
