#include "umbra/capture/decomposition.h"

#include "capture/core/core.h"

namespace umbra {

void DecompositionTable::set(const Operator& op, Function f) { functions_[&op] = std::move(f); }
void DecompositionTable::remove(const Operator& op) { functions_.erase(&op); }
const DecompositionTable::Function* DecompositionTable::find(const Operator& op) const {
  if (functions_.empty()) return nullptr;
  auto found = functions_.find(&op);
  return found == functions_.end() ? nullptr : &found->second;
}

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

DecompositionTable core_decompositions() {
  DecompositionTable table;
  core_table::add_factories(table);
  core_table::add_shapes(table);
  core_table::add_pointwise(table);
  core_table::add_activations(table);
  core_table::add_reductions(table);
  core_table::add_indexing(table);
  core_table::add_layers(table);
  core_table::add_losses(table);
  return table;
}

}  // namespace umbra
