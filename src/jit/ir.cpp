#include "umbra/jit/ir.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_set>

#include "core/per_thread.h"
#include "dispatch/host_lock.h"
#include "umbra/jit/objects.h"

namespace umbra::jit {

namespace {
class PlainText final : public LateText {
 public:
  explicit PlainText(std::string text) : text_(std::move(text)) {}
  std::string text() const override { return text_; }

 private:
  std::string text_;
};
}  // namespace

SharedText::SharedText(std::string text) {
  if (!text.empty()) text_ = make_counted<PlainText>(std::move(text));
}

// ---- values ----

namespace {
/// A name without the number that tells it from others.
std::string_view base_of(std::string_view name) {
  size_t digits = name.size();
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1]))) --digits;
  bool numbered = digits > 0 && digits < name.size() && name[digits - 1] == '.';
  return numbered ? name.substr(0, digits - 1) : name;
}
}  // namespace

/// The numbers are odd, as PyTorch's are.
Graph::Names::value_type& Graph::numbered_name(Names::value_type& base) {
  for (;;) {
    size_t number = base.second.number + 1;
    base.second.number += 2;
    Names::value_type& found = *names_.try_emplace(concat(base.first, ".", number)).first;
    if (!found.second.holder) return found;
  }
}

std::string Variable::base_name() const { return std::string(base_of(name_)); }

std::string Graph::fresh_name(const std::string& wanted) {
  know_names();
  return numbered_name(*names_.try_emplace(std::string(base_of(wanted))).first).first;
}

void Graph::know_names() {
  if (std::exchange(names_known_, true)) return;
  for (auto& [text, name] : names_) name.holder = nullptr;
  auto note = [&](const OwnVariables& values) {
    for (const auto& v : values)
      if (!v->name_.empty()) names_[v->name_].holder = v.get();
  };
  note(block_->inputs());
  each_node(*block_, [&](const Node& n) {
    note(n.outputs());
    for (const auto& inner : n.blocks()) note(inner->inputs());
  });
}

// The newest holder has the plain name; an older one of the same name gets a number.
void Variable::set_name(const std::string& name) {
  graph_->forget_name(*this);
  name_.clear();
  if (name.empty()) return;
  graph_->know_names();
  Graph::Names::value_type& entry = *graph_->names_.try_emplace(name).first;
  if (Variable* older = std::exchange(entry.second.holder, this)) {
    std::string_view base = base_of(name);
    auto& renamed = graph_->numbered_name(base == name ? entry : *graph_->names_.try_emplace(std::string(base)).first);
    renamed.second.holder = older;
    older->name_ = renamed.first;
  }
  name_ = name;
}

std::unique_ptr<Variable> Graph::make_variable(Node* node, size_t offset, TypePtr type) {
  auto v = std::make_unique<Variable>();
  v->graph_ = this;
  v->node_ = node;
  v->offset_ = offset;
  v->unique_ = next_++;
  v->type_ = std::move(type);
  return v;
}

std::unique_ptr<Variable> Graph::unowned_value() {
  auto v = make_variable(nullptr, 0, nullptr);
  withhold_number(*v);
  return v;
}

void Graph::forget_numbers() {
  next_ = 0;
  for (const auto& v : block_->inputs()) v->unique_ = SIZE_MAX;
  for (const auto& n : block_->nodes())
    for (const auto& v : n->outputs()) v->unique_ = SIZE_MAX;
}

// ---- nodes and blocks ----

namespace {
bool has_effects(std::string_view kind) {
  static const std::unordered_set<std::string_view> kKinds = {"prim::RaiseException",
                                                              "prim::Print",
                                                              "prim::SetAttr",
                                                              "prim::CallMethod",
                                                              "prim::CallFunction",
                                                              "prim::PythonOp",
                                                              "aten::append",
                                                              "aten::extend",
                                                              "aten::insert",
                                                              "aten::pop",
                                                              "aten::popitem",
                                                              "aten::reverse",
                                                              "aten::sort",
                                                              "aten::clear",
                                                              "aten::remove",
                                                              "aten::_set_item",
                                                              "aten::Delete",
                                                              "aten::setdefault",
                                                              "aten::update",
                                                              "aten::add_",
                                                              "aten::warn",
                                                              "prim::fork",
                                                              "aten::requires_grad_",
                                                              "aten::backward",
                                                              "prim::CreateObject",
                                                              "prim::Enter",
                                                              "prim::Exit",
                                                              "aten::manual_seed",
                                                              "aten::set_grad_enabled",
                                                              "aten::is_grad_enabled"};
  return kKinds.contains(kind);
}
}  // namespace

const Kind* Kind::of(std::string_view text) {
  static PerThread<std::unordered_map<std::string_view, const Kind*>> of_thread;
  auto& known = *of_thread;
  if (auto found = known.find(text); found != known.end()) return found->second;
  static std::mutex mutex;
  static std::map<std::string, Kind, std::less<>> all;
  std::lock_guard lock(mutex);
  auto found = all.find(text);
  if (found == all.end()) found = all.emplace(text, Kind{std::string(text), jit::has_effects(text)}).first;
  return known[found->first] = &found->second;
}

std::unique_ptr<Node> Graph::make_node(const Kind* kind) {
  auto node = std::make_unique<Node>();
  node->graph_ = this;
  node->kind_ = kind;
  return node;
}

Node* Node::previous() const { return position_ == block_->nodes_.begin() ? nullptr : std::prev(position_)->get(); }

Node* Node::next() const {
  auto after = std::next(position_);
  return after == block_->nodes_.end() ? nullptr : after->get();
}

Variable* Node::add_output(TypePtr type) {
  outputs_.push_back(graph_->make_variable(this, outputs_.size(), std::move(type)));
  return outputs_.back().get();
}

void Node::erase_output(size_t i) {
  graph_->forget_name(*outputs_[i]);
  outputs_.erase(outputs_.begin() + static_cast<long>(i));
  for (size_t k = i; k < outputs_.size(); ++k) outputs_[k]->offset_ = k;
}

Block* Node::add_block() {
  auto block = std::make_unique<Block>();
  block->owner_ = this;
  block->parameter_ = graph_->make_node(Kind::of("prim::Param"));
  block->parameter_->block_ = block.get();
  blocks_.push_back(std::move(block));
  return blocks_.back().get();
}

const umbra::Value* Node::attribute(std::string_view name) const {
  for (const auto& [key, value] : attributes)
    if (key == name) return &value;
  return nullptr;
}

void Node::set_attribute(std::string_view name, umbra::Value value) {
  for (auto& [key, old] : attributes)
    if (key == name) return void(old = std::move(value));
  attributes.emplace_back(name, std::move(value));
}

bool Node::has_side_effects() const {
  if (kind_->has_effects) return true;
  if (op && (op->is_mutable() || op->definition().random)) return true;
  for (const auto& block : blocks_)
    for (const auto& node : block->nodes())
      if (node->has_side_effects()) return true;
  return false;
}

Variable* Block::add_input(TypePtr type, const std::string& name) {
  Variable* v = parameter_->add_output(std::move(type));
  if (!name.empty()) v->set_name(name);
  return v;
}

Graph::Graph() : block_(std::make_unique<Block>()) {
  block_->parameter_ = make_node(Kind::of("prim::Param"));
  block_->parameter_->block_ = block_.get();
  current_ = block_.get();
}

Node* Graph::insert(std::string_view kind, Variables inputs, std::vector<TypePtr> outputs) {
  Node* node = insert(Kind::of(kind), std::move(inputs));
  for (TypePtr& type : outputs) node->add_output(std::move(type));
  return node;
}

Node* Graph::insert(const Kind* kind, Variables inputs) {
  auto made = make_node(kind);
  Node* node = made.get();
  node->inputs = std::move(inputs);
  node->block_ = current_;
  auto place = current_->nodes_.end();
  if (before_) place = before_->position_;
  node->position_ = current_->nodes_.insert(place, std::move(made));
  return node;
}

Variable* Graph::insert_constant(const umbra::Value& value, TypePtr type) {
  if (!type) type = type_of(value);
  Node* node = insert("prim::Constant", {}, {type});
  if (!value.is_none()) node->attributes.emplace_back("value", value);
  return node->output();
}

namespace {
void replace_in(Block& block, Variable* from, Variable* to) {
  for (auto& node : block.nodes()) {
    for (Variable*& input : node->inputs)
      if (input == from) input = to;
    for (auto& inner : node->blocks()) replace_in(*inner, from, to);
  }
  for (Variable*& output : block.outputs)
    if (output == from) output = to;
}
}  // namespace

void Graph::replace_uses(Variable* from, Variable* to) { replace_in(*block_, from, to); }

void Graph::erase(Node* node) {
  auto forget = [&](const Variable& v) { forget_name(v); };
  for (const auto& inner : node->blocks_) {  // names inside are free again, too
    for (const auto& v : inner->inputs()) forget(*v);
    each_node(*inner, [&](const Node& n) {
      for (const auto& v : n.outputs()) forget(*v);
      for (const auto& b : n.blocks())
        for (const auto& v : b->inputs()) forget(*v);
    });
  }
  while (!node->outputs_.empty()) node->erase_output(node->outputs_.size() - 1);
  node->block_->nodes_.erase(node->position_);
}

void Graph::move_after(Node& node, Node& other) {
  Block::Nodes& nodes = node.block_->nodes_;
  nodes.splice(std::next(other.position_), nodes, node.position_);
}

void Graph::move_before(Node& node, Node& other) {
  Block::Nodes& nodes = node.block_->nodes_;
  nodes.splice(other.position_, nodes, node.position_);
}

void Graph::adopt(Node& node) {
  node.graph_->names_known_ = false;
  node.graph_ = this;
  for (const auto& v : node.outputs_) {
    v->graph_ = this;
    v->unique_ = next_++;
  }
  for (const auto& inner : node.blocks_) {
    adopt(*inner->parameter_);
    for (const auto& n : inner->nodes_) adopt(*n);
  }
}

void Graph::take_nodes(Block& from) {
  for (const auto& node : from.nodes_) {
    adopt(*node);
    node->block_ = block_.get();
  }
  block_->nodes_.splice(block_->nodes_.end(), from.nodes_);  // positions stay valid
  names_known_ = false;
  for (const auto& input : block_->inputs()) {  // what came keeps its names
    bool taken = false;
    if (input->name_.empty()) continue;
    each_node(*block_, [&](const Node& n) {
      for (const auto& v : n.outputs()) taken |= v->name_ == input->name_;
    });
    if (!taken) continue;
    input->name_ = fresh_name(input->name_);
    names_[input->name_].holder = input.get();
  }
}

Variables copy_into(Graph& graph, const Block& block, ValueMap& values) {
  auto mapped = [&](Variable* v) {
    auto found = values.find(v);
    return found == values.end() ? v : found->second;
  };
  for (const auto& node : block.nodes()) {
    Variables inputs;
    for (Variable* v : node->inputs) inputs.push_back(mapped(v));
    Node* copy = graph.insert(node->kind(), std::move(inputs), {});
    copy->op = node->op;
    copy->attributes = node->attributes;
    copy->scope = node->scope;
    copy->source = node->source;
    copy->callee = node->callee;
    copy->op_types = node->op_types;
    for (const auto& output : node->outputs()) {
      Variable* v = copy->add_output(output->type());
      if (!output->name().empty()) v->set_name(output->name());
      values[output.get()] = v;
    }
    Block* current = graph.current();
    Node* before = graph.before();
    for (const auto& inner : node->blocks()) {
      Block* to = copy->add_block();
      for (const auto& input : inner->inputs()) values[input.get()] = to->add_input(input->type(), input->name());
      graph.set_current(to);
      to->outputs = copy_into(graph, *inner, values);
    }
    graph.set_current(current);
    if (before) graph.set_before(before);
  }
  Variables outputs;
  for (Variable* v : block.outputs) outputs.push_back(mapped(v));
  return outputs;
}

std::shared_ptr<Graph> Graph::copy() const {
  auto graph = std::make_shared<Graph>();
  ValueMap values;
  for (const auto& input : block_->inputs()) {
    Variable* v = graph->block().add_input(input->type());
    if (!input->name().empty()) v->set_name(input->name());
    values[input.get()] = v;
  }
  graph->block().outputs = copy_into(*graph, *block_, values);
  return graph;
}

// ---- functions ----

std::string parameter_name(const Variable& input) {
  return input.name().empty() ? "argument_" + std::to_string(input.offset()) : input.base_name();
}

const std::shared_ptr<Graph>& Function::ensure() {
  static std::recursive_mutex mutex;  // of all: definitions need one another's
  HostedGuard alone(mutex);
  if (define) {
    auto compile = std::exchange(define, nullptr);
    compiling = true;
    try {
      compile(*this);
    } catch (...) {  // whoever asks again is told again
      compiling = false;
      define = compile;
      graph = nullptr;
      throw;
    }
    compiling = false;
  }
  return graph;
}

std::string Function::schema() const {
  std::string out = name.substr(name.rfind('.') + 1) + "(";
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (i) out += ", ";
    if (parameters[i].keyword_only && (i == 0 || !parameters[i - 1].keyword_only)) out += "*, ";
    out += parameters[i].type->text() + " " + parameters[i].name;
    if (parameters[i].default_value) out += "=" + to_source(*parameters[i].default_value);
  }
  out += ") -> ";
  if (!result) return out + "?";
  bool several = result->is(TypeKind::Tuple) && result->name.empty() && !result->elements.empty();
  return out + (several ? "(" + result->text() + ")" : result->text());
}

}  // namespace umbra::jit
