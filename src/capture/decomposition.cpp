#include "umbra/capture/decomposition.h"

#include <unordered_map>

#include "capture/core/core.h"

namespace umbra {

struct DecompositionTable::Functions final : RefCounted {
  std::unordered_map<const Operator*, Function> of;
};

DecompositionTable::DecompositionTable() = default;
DecompositionTable::~DecompositionTable() = default;
DecompositionTable::DecompositionTable(const DecompositionTable& other) = default;
DecompositionTable& DecompositionTable::operator=(const DecompositionTable& other) = default;

DecompositionTable::Functions& DecompositionTable::own() {
  if (!functions_ || functions_->use_count() > 1) {
    auto copy = make_counted<Functions>();
    if (functions_) copy->of = functions_->of;
    functions_ = std::move(copy);
  }
  return *functions_;
}

void DecompositionTable::set(const Operator& op, Function f) { own().of[&op] = std::move(f); }
void DecompositionTable::remove(const Operator& op) { own().of.erase(&op); }
size_t DecompositionTable::size() const { return functions_ ? functions_->of.size() : 0; }

const DecompositionTable::Function* DecompositionTable::find(const Operator& op) const {
  if (empty()) return nullptr;
  auto found = functions_->of.find(&op);
  return found == functions_->of.end() ? nullptr : &found->second;
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
  core_table::add_resampling(table);
  core_table::add_losses(table);
  core_table::add_recurrent(table);
  return table;
}

}  // namespace umbra
