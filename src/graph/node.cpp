#include "umbra/graph/node.h"

#include "umbra/dispatch/effects.h"
#include "umbra/graph/graph.h"

namespace umbra::fx {

const char* to_string(Op op) {
  constexpr const char* kNames[] = {"placeholder", "get_attr", "call_function", "call_module",
                                    "call_method", "output",   "root"};
  return kNames[static_cast<int>(op)];
}

std::string Target::text() const {
  if (const Operator* op = this->op()) {
    const Schema& schema = op->schema();
    return "torch.ops." + schema.space + "." + schema.name + "." +
           (schema.overload.empty() ? "default" : schema.overload);
  }
  if (const Function* function = this->function()) return function->name;
  return name();
}

const Value* Meta::find(std::string_view key) const {
  for (const auto& [name, value] : extra)
    if (name == key) return &value;
  return nullptr;
}

void Meta::set(std::string_view key, Value value) {
  for (auto& [name, held] : extra)
    if (name == key) return void(held = std::move(value));
  extra.emplace_back(std::string(key), std::move(value));
}

// ---- arguments and uses ----

const Argument& Node::arg(size_t i) const {
  check<IndexError>(i < args_.size(), "node ", name_, " has ", args_.size(), " arguments, there is no argument ", i);
  return args_[i];
}

const Argument* Node::kwarg(std::string_view name) const {
  for (const auto& [key, value] : kwargs_)
    if (key == name) return &value;
  return nullptr;
}

const Argument* Node::argument(size_t schema_position) const {
  if (schema_position < args_.size()) return &args_[schema_position];
  const Operator* op = target_.op();
  if (!op || schema_position >= op->argument_count()) return nullptr;
  return kwarg(op->schema().arguments[schema_position].name);
}

void Node::add_uses() {
  auto add = [this](Node* input) {
    for (Node* known : inputs_)
      if (known == input) return;
    inputs_.push_back(input);
    input->users_.push_back(this);
  };
  for (const Argument& a : args_) a.each_node(add);
  for (const auto& entry : kwargs_) entry.second.each_node(add);
  ++graph_->version_;
}

void Node::remove_uses() {
  for (Node* input : inputs_) {
    // Most often this node is the latest user.
    for (size_t i = input->users_.size(); i-- > 0;) {
      if (input->users_[i] != this) continue;
      input->users_.erase(i);
      break;
    }
  }
  inputs_.clear();
}

void Node::set_target(Target target) {
  target_ = std::move(target);
  ++graph_->version_;
}

void Node::set_args(Arguments args) {
  for (const Argument& a : args) graph_->check_argument(a);
  remove_uses();
  args_ = std::move(args);
  add_uses();
}

void Node::set_kwargs(KeywordArguments kwargs) {
  for (const auto& entry : kwargs) graph_->check_argument(entry.second);
  remove_uses();
  kwargs_ = std::move(kwargs);
  add_uses();
}

void Node::set_arg(size_t i, Argument value) {
  arg(i);  // checks
  graph_->check_argument(value);
  remove_uses();
  args_[i] = std::move(value);
  add_uses();
}

void Node::set_kwarg(std::string_view name, Argument value) {
  graph_->check_argument(value);
  remove_uses();
  Argument* held = const_cast<Argument*>(kwarg(name));
  if (held) *held = std::move(value);
  else kwargs_.emplace_back(std::string(name), std::move(value));
  add_uses();
}

void Node::replace_input(Node* old_input, Node* new_input) {
  graph_->check_argument(new_input);
  auto replace = [&](Node* input) { return Argument(input == old_input ? new_input : input); };
  remove_uses();
  for (Argument& a : args_)
    if (a.has_nodes()) a = a.map_nodes(replace);
  for (auto& entry : kwargs_)
    if (entry.second.has_nodes()) entry.second = entry.second.map_nodes(replace);
  add_uses();
}

std::vector<Node*> Node::replace_all_uses_with(Node* other, const std::function<bool(Node*)>& wanted) {
  std::vector<Node*> changed;
  for (Node* user : users().vec()) {
    if (wanted && !wanted(user)) continue;
    user->replace_input(this, other);
    changed.push_back(user);
  }
  return changed;
}

// ---- place and name ----

void Node::set_name(std::string_view name) {
  if (name == name_) return;
  name_ = graph_->names_.create(name);
  ++graph_->version_;
}

void Node::set_reserved_name(std::string_view name) {
  if (name == name_) return;
  name_ = graph_->names_.take(name);
  ++graph_->version_;
}

void Node::link_before(Node* other) {
  next_ = other;
  previous_ = other->previous_;
  previous_->next_ = this;
  other->previous_ = this;
}

void Node::unlink() {
  previous_->next_ = next_;
  next_->previous_ = previous_;
}

void Node::move_before(Node* other) {
  if (other == this) return;
  check(graph_ == other->graph_, "Attempting to move node ", name_, " into another graph");
  unlink();
  link_before(other);
  ++graph_->version_;
}

void Node::move_after(Node* other) {
  if (other != this && other->next_ != this) move_before(other->next_);
}

// ---- what it does ----

bool Node::is_impure() const {
  if (op_ == Op::Placeholder || op_ == Op::Output || op_ == Op::CallModule) return true;
  if (op_ == Op::CallMethod)  // x.add_(1) writes, x.__getitem__(0) does not
    return target_.name().ends_with('_') && !target_.name().ends_with("__");
  if (const Operator* op = target_.op())
    return op->is_mutable() || op->return_count() == 0 || op->definition().random ||
           op->has_tag(Tag::NondeterministicSeeded) || has_effect(*op);
  if (const Function* function = target_.function()) return function->has_side_effects;
  return false;
}

}  // namespace umbra::fx
