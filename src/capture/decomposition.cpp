#include "umbra/capture/decomposition.h"

namespace umbra {

DecompositionTable own_decompositions(const std::vector<std::string>& names) {
  DecompositionTable table;
  for (const std::string& name : names) {
    const Operator& op = get_operator(name);
    const Definition& d = op.definition();
    const BoxedFunction& parts = d.decomposition ? d.decomposition : d.composite ? d.composite : d.all_backends;
    check(static_cast<bool>(parts), op.name(), " has a kernel of its own and no decomposition");
    table.set(op, [parts](Value* frame) { parts(frame); });
  }
  return table;
}

}  // namespace umbra
