// Modules in a trace: where their tensors are found, and which of them is running.
#include "umbra/jit/objects.h"
#include "umbra/jit/trace.h"

namespace umbra::jit {

void Trace::set_self(const Value& module) {
  auto& instance = expect_object<Instance>(module, "a module");
  scopes_[0].self = graph_->add_input("self", class_type(instance.cls));
  find_attributes(module, -1, -1, "__module");
}

/// Where the tensors of a module and of those inside it are found. The first path to a tensor is the one that counts.
void Trace::find_attributes(const Value& module, int parent, int attribute, const std::string& path) {
  auto& instance = expect_object<Instance>(module, "a module");
  int part = static_cast<int>(parts_.size());
  if (!part_of_.try_emplace(module.object(), part).second) return;
  parts_.push_back({module, parent, attribute, path});
  for (size_t i = 0; i < instance.cls->attributes.size(); ++i) {
    const Attribute& a = instance.cls->attributes[i];
    const Value& value = instance.slots[i];
    if (value.is_tensor()) paths_.try_emplace(value.tensor_impl(), Path{part, static_cast<int>(i)});
    else if (auto* inner = object_as<Instance>(value); inner && inner->cls->is_module)
      find_attributes(value, part, static_cast<int>(i), path + "." + a.name);
  }
}

bool Trace::is_inside(int part, int outer) const {
  while (part > outer) part = parts_[static_cast<size_t>(part)].parent;
  return part == outer;
}

void Trace::enter_module(const Value& module) {
  auto found = part_of_.find(module.object());
  check(found != part_of_.end(), "a module is called that is not part of the traced one");
  // Each call reads the module anew, as PyTorch's traces do.
  Path path{found->second};
  Variable* read = attribute(path);
  for (Scope& scope : scopes_) std::erase_if(scope.attributes, [&](const auto& a) { return a.first == path.key(); });
  Block* block = insert(kinds().module_forward, {read})->add_block();
  scopes_.push_back({path.part, block, block->add_input(read->type(), "self"), {}});
  graph_->set_current(block);
}

void Trace::leave_module() {
  check(scopes_.size() > 1, "no module is entered");
  scopes_.pop_back();
  graph_->set_current(scopes_.back().block);
}

/// An attribute is read at the top of the block of the innermost module that holds it.
Variable* Trace::attribute(Path path) {
  for (size_t i = scopes_.size(); i-- > 0;) {
    Scope& scope = scopes_[i];
    if (!is_inside(path.part, scope.part)) continue;
    return path.part == scope.part && path.attribute < 0 ? scope.self : attribute_in(scope, path);
  }
  fail<AssertionError>("a trace without a root");
}

Variable* Trace::attribute_in(Scope& scope, Path path) {
  for (const auto& [key, known] : scope.attributes)
    if (key == path.key()) return known;
  std::vector<Path, RecyclingAllocator<Path>> way;  // innermost first
  if (path.attribute >= 0) way.push_back(path);
  for (int part = path.part; part != scope.part;) {
    const Part& here = parts_[static_cast<size_t>(part)];
    way.push_back({here.parent, here.attribute});
    part = here.parent;
  }
  Block* before = graph_->current();
  graph_->set_current(scope.block);
  graph_->set_before(scope.block->nodes().empty() ? nullptr : scope.block->nodes().front().get());
  Variable* v = scope.self;
  for (auto step = way.rbegin(); step != way.rend(); ++step) {
    const Attribute& read = attribute_of(*step);
    Node* node = graph_->insert(kinds().get_attr, {v});
    node->attributes.emplace_back("name", Value(read.name));
    v = node->add_output(read.type);
    v->set_name(std::isdigit(static_cast<unsigned char>(read.name.front())) ? "_" + read.name : read.name);
  }
  graph_->set_current(before);
  scope.attributes.emplace_back(path.key(), v);
  return v;
}

const Attribute& Trace::attribute_of(Path path) const {
  const Part& part = parts_[static_cast<size_t>(path.part)];
  return expect_object<Instance>(part.module, "a module").cls->attributes[static_cast<size_t>(path.attribute)];
}

}  // namespace umbra::jit
