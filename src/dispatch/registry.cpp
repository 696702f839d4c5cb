// All operators, by name and by the overloads of a name.
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "dispatch/layers.h"

namespace umbra {

namespace {
struct Registry {
  std::shared_mutex mutex;
  std::unordered_map<std::string, std::unique_ptr<Operator>> by_name;
  std::unordered_map<std::string, std::vector<const Operator*>> overloads;
  std::vector<const Operator*> all;
  std::vector<std::unique_ptr<Operator>> removed;
};
// Never destroyed: static tensors of users may still call operators while the process ends.
Registry& registry() {
  static Registry* r = new Registry;
  return *r;
}
}  // namespace

Operator& register_operator(Schema schema) {
  Registry& r = registry();
  std::unique_lock lock(r.mutex);
  auto op = std::make_unique<Operator>(std::move(schema));
  std::string name = op->name();
  auto [slot, fresh] = r.by_name.try_emplace(name, nullptr);
  check(
      fresh, "Tried to register an operator (", to_string(op->schema()),
      ") with the same name and overload name multiple times. Each overload's schema should only be registered once.");
  slot->second = std::move(op);
  const Operator* added = slot->second.get();
  r.overloads[added->schema().space + "::" + added->schema().name].push_back(added);
  r.all.push_back(added);
  return *slot->second;
}

void remove_operator(const Operator& op) {
  Registry& r = registry();
  std::unique_lock lock(r.mutex);
  auto found = r.by_name.find(op.name());
  if (found == r.by_name.end() || found->second.get() != &op) return;
  r.removed.push_back(std::move(found->second));
  r.by_name.erase(found);
  std::string packet = op.schema().space + "::" + op.schema().name;
  std::erase(r.overloads[packet], &op);
  if (r.overloads[packet].empty()) r.overloads.erase(packet);
  std::erase(r.all, &op);
}

const Operator* find_operator(std::string_view name) {
  std::string key(name);
  if (key.ends_with(".default")) key.resize(key.size() - 8);
  Registry& r = registry();
  std::shared_lock lock(r.mutex);
  auto found = r.by_name.find(key);
  return found == r.by_name.end() ? nullptr : found->second.get();
}

const Operator& get_operator(std::string_view name) {
  const Operator* op = find_operator(name);
  if (!op) fail<AttributeError>("no operator named '", std::string(name), "'");
  return *op;
}

std::vector<const Operator*> operator_overloads(std::string_view name) {
  Registry& r = registry();
  std::shared_lock lock(r.mutex);
  auto found = r.overloads.find(std::string(name));
  return found == r.overloads.end() ? std::vector<const Operator*>() : found->second;
}

std::vector<const Operator*> all_operators() {
  Registry& r = registry();
  std::shared_lock lock(r.mutex);
  return r.all;
}

}  // namespace umbra
