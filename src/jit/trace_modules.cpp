// Modules in a trace: where their tensors are found, and which of them is running.
#include "umbra/jit/objects.h"
#include "umbra/jit/trace.h"

namespace umbra::jit {

namespace {
/// "__module.first/__module.first.second": the module that is called, behind those that call it.
class ScopeText final : public LateText, public RecycledObject<ScopeText> {
 public:
  ScopeText(SharedText outer, std::string path) : outer_(std::move(outer)), path_(std::move(path)) {}
  std::string text() const override { return outer_.empty() ? path_ : outer_.str() + "/" + path_; }

 private:
  SharedText outer_;
  std::string path_;
};
}  // namespace

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
  graph_->skip_numbers(instance.cls->attributes.size());  // PyTorch's traces begin with all of them
  for (size_t i = 0; i < instance.cls->attributes.size(); ++i) {
    const Attribute& a = instance.cls->attributes[i];
    const Value& value = instance.slots[i];
    if (value.is_tensor()) paths_.try_emplace(value.tensor_impl(), Path{part, static_cast<int>(i)});
    else if (auto* inner = object_as<Instance>(value); inner && inner->cls->is_module)
      find_attributes(value, part, static_cast<int>(i), concat(path, ".", a.name));
  }
}

bool Trace::is_inside(int part, int outer) const {
  while (part > outer) part = parts_[static_cast<size_t>(part)].parent;
  return part == outer;
}

void Trace::enter_module(const Value& module) {
  auto found = part_of_.find(module.object());
  check(found != part_of_.end(), "a module is called that is not part of the traced one");
  Path path{found->second};
  size_t before = late_attributes_.size();
  Variable* read = attribute(path);
  auto own = late_attributes_.begin() + static_cast<long>(before);  // named behind what is inside
  late_modules_.emplace_back(own, late_attributes_.end());
  late_attributes_.erase(own, late_attributes_.end());
  Block* block = insert(kinds().module_forward, {read})->add_block();
  Variable* self = block->add_input(read->type());
  graph_->withhold_number(*self);
  late_selves_.push_back({self, "self"});
  auto text = make_counted<ScopeText>(scopes_.back().text, parts_[static_cast<size_t>(path.part)].path);
  scopes_.push_back({path.part, block, self, std::move(text), {}});
  graph_->set_current(block);
}

void Trace::leave_module() {
  check(scopes_.size() > 1, "no module is entered");
  scopes_.pop_back();
  graph_->set_current(scopes_.back().block);
  late_attributes_.insert(late_attributes_.end(), late_modules_.back().begin(), late_modules_.back().end());
  late_modules_.pop_back();
}

/// An attribute is called what the user's variable is called that holds it, until all has been recorded.
void Trace::name_attribute(Path& path, const Tensor& tensor) {
  std::string name = variable_name(tensor);
  path.named = !name.empty();
  if (!path.named) return;
  taken_names_.push_back(graph_->unowned_value());
  taken_names_.back()->set_name(name);
}

void Trace::finish_names() {
  for (auto* late : {&late_selves_, &late_attributes_}) {
    for (auto& [variable, name] : *late) {
      graph_->number(*variable);
      variable->set_name(name);
    }
    late->clear();
  }
  forget_taken_names();
}

void Trace::forget_taken_names() {
  for (const auto& v : taken_names_) v->set_name("");
  taken_names_.clear();
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
    graph_->withhold_number(*v);
    bool digits = std::isdigit(static_cast<unsigned char>(read.name.front()));
    late_attributes_.push_back({v, digits ? "_" + read.name : read.name});
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
