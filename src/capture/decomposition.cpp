#include "umbra/capture/decomposition.h"

namespace umbra {

DecompositionTable own_decompositions(const std::vector<std::string>& names) {
  DecompositionTable table;
  for (const std::string& name : names) {
    const Operator& op = get_operator(name);
    const Definition& d = op.definition();
    check(d.composite || d.all_backends, op.name(), " has a kernel of its own and no decomposition");
    BoxedFunction parts = d.composite ? d.composite : d.all_backends;
    table.set(op, [parts](Value* frame) { parts(frame); });
  }
  return table;
}

}  // namespace umbra
