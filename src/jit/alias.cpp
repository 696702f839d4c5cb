#include "umbra/jit/alias.h"

#include <algorithm>
#include <unordered_set>

namespace umbra::jit {

namespace {

bool is_mutable(const TypePtr& type) {
  switch (type->kind) {
    case TypeKind::Tensor:
    case TypeKind::List:
    case TypeKind::Dict:
    case TypeKind::Class:
    case TypeKind::Any:
    case TypeKind::Future: return true;
    default: return std::ranges::any_of(type->elements, is_mutable);
  }
}

/// The type as far as it tells what memory a value may be; an empty text: anything.
std::string key_of(const TypePtr& type) {
  if (type->is(TypeKind::Optional) || type->is(TypeKind::Future)) return key_of(type->element());
  return type->is(TypeKind::Any) || type->is(TypeKind::Union) ? "" : without_details(type)->text();
}

using Names = std::unordered_set<std::string_view>;

/// Built-in functions that write their first argument; what else they are given goes into it.
const Names& writing_builtins() {
  static const Names names = {"aten::append",  "aten::extend", "aten::insert",     "aten::pop",    "aten::popitem",
                              "aten::reverse", "aten::sort",   "aten::clear",      "aten::remove", "aten::_set_item",
                              "aten::Delete",  "aten::update", "aten::setdefault", "aten::add_"};
  return names;
}
/// Nodes that give their first input under another type.
const Names& casts() {
  static const Names names = {"prim::unchecked_cast", "prim::unchecked_unwrap_optional", "prim::data", "aten::wait"};
  return names;
}
/// Nodes that hand values to code that the graph does not show.
const Names& unknown_code() {
  static const Names names = {"prim::CallFunction", "prim::CallMethod", "prim::PythonOp",
                              "prim::Enter",        "prim::Exit",       "prim::fork"};
  return names;
}
const Names& containers() {
  static const Names names = {"prim::ListConstruct", "prim::TupleConstruct", "prim::DictConstruct"};
  return names;
}

}  // namespace

bool only_writes(const Node& n) {
  if (n.op) return n.op->is_mutable() && !n.op->definition().random;
  return n.is("prim::SetAttr") || writing_builtins().contains(n.kind());
}

AliasAnalysis::AliasAnalysis(const Graph& graph) : graph_(graph) {
  each_node(graph.block(), [&](const Node& n) {
    for (const Variable* v : n.inputs) readers_[v].push_back(&n);
    for (const auto& inner : n.blocks())
      for (const Variable* v : inner->outputs) readers_[v].push_back(&n);
  });
  for (const Variable* v : graph.block().outputs) readers_[v].push_back(nullptr);
  for (const auto& v : graph.block().inputs()) make_outside(v.get());
  do {  // what a loop's body does shows at its beginning
    grown_ = false;
    visit(graph.block());
  } while (grown_);
}

// ---- places ----

int AliasAnalysis::fresh() {
  all_.emplace_back();
  return static_cast<int>(all_.size()) - 1;
}

int AliasAnalysis::outside(const TypePtr& type) {
  auto [found, is_new] = outside_.try_emplace(key_of(type), 0);
  if (!is_new) return found->second;
  int place = found->second = fresh();
  all_[static_cast<size_t>(place)].is_outside = true;
  std::vector<TypePtr> inside = type->is(TypeKind::Optional) ? type->element()->elements : type->elements;
  if (type->cls)
    for (const Attribute& a : type->cls->attributes) inside.push_back(a.type);
  for (const TypePtr& t : inside)
    if (is_mutable(t)) {
      int held = outside(t);
      all_[static_cast<size_t>(place)].contents.insert(held);
    }
  return place;
}

void AliasAnalysis::add(const Variable* v, int place) { grown_ |= values_[v].insert(place).second; }
void AliasAnalysis::add(const Variable* v, const Places& from) {
  for (int p : Places(from)) add(v, p);
}

void AliasAnalysis::make_fresh(const Variable* v) {
  if (!is_mutable(v->type())) return;
  auto [found, is_new] = own_.try_emplace(v, 0);
  if (is_new) found->second = fresh();
  add(v, found->second);
}

void AliasAnalysis::make_outside(const Variable* v) {
  if (is_mutable(v->type())) add(v, outside(v->type()));
}

void AliasAnalysis::put_into(const Variable* container, const Variable* v) {
  if (!is_mutable(v->type())) return;
  make_outside(v);
  for (int p : places(container))
    for (int held : places(v)) grown_ |= all_[static_cast<size_t>(p)].contents.insert(held).second;
}

void AliasAnalysis::take_from(const Variable* v, const Variable* container) {
  if (!is_mutable(v->type())) return;
  make_outside(v);
  for (int p : places(container)) add(v, all_[static_cast<size_t>(p)].contents);
}

void AliasAnalysis::write(const Node& node, const Variable* v, bool with_contents) {
  Places written = with_contents ? reachable(places(v)) : places(v);
  for (int p : written) grown_ |= writes_[&node].insert(p).second;
}

const AliasAnalysis::Places& AliasAnalysis::places(const Variable* v) const {
  static const Places none;
  auto found = values_.find(v);
  return found == values_.end() ? none : found->second;
}

AliasAnalysis::Places AliasAnalysis::reachable(const Places& from) const {
  Places out = from;
  std::vector<int> open(from.begin(), from.end());
  while (!open.empty()) {
    int p = open.back();
    open.pop_back();
    for (int held : all_[static_cast<size_t>(p)].contents)
      if (out.insert(held).second) open.push_back(held);
  }
  return out;
}

// ---- nodes ----

void AliasAnalysis::visit(const Block& block) {
  for (const auto& n : block.nodes()) visit(*n);
}

void AliasAnalysis::visit(const Node& n) {
  if (n.op) return visit_operator(n);
  if (n.is("prim::If")) return visit_branch(n);
  if (n.is("prim::Loop")) return visit_loop(n);
  if (containers().contains(n.kind())) return visit_container(n);
  if (unknown_code().contains(n.kind())) return visit_unknown(n);
  if (casts().contains(n.kind())) return add(n.output(), places(n.inputs[0]));
  if (n.is("prim::SetAttr")) {
    write(n, n.inputs[0]);
    return put_into(n.inputs[0], n.inputs[1]);
  }
  for (const auto& inner : n.blocks()) visit(*inner);  // of a module's call in a trace
  bool makes_new = n.is("prim::Constant") || n.is("prim::CreateObject") || n.is("prim::Uninitialized") ||
                   n.is("prim::tolist") || n.is("prim::NumToTensor");
  bool takes_apart = n.is("prim::TupleUnpack") || n.is("prim::ListUnpack") || n.is("prim::GetAttr") ||
                     n.is("prim::ModuleContainerIndex") || n.is("prim::TupleIndex");
  if (!makes_new && !takes_apart) return visit_builtin(n);
  for (const auto& v : n.outputs()) {
    if (makes_new) make_fresh(v.get());
    else take_from(v.get(), n.inputs[0]);
  }
}

void AliasAnalysis::visit_operator(const Node& n) {
  const Schema& schema = n.op->schema();
  for (size_t i = 0; i < schema.arguments.size(); ++i)
    if (schema.arguments[i].alias.write) write(n, n.inputs[i], schema.arguments[i].type.list);
  for (size_t k = 0; k < n.outputs().size(); ++k) {
    const Variable* out = n.output(k);
    const AliasInfo& alias = schema.returns[k].alias;
    bool is_list = schema.returns[k].type.list, known = false;
    if (alias.set.empty() || is_list) make_fresh(out);
    if (alias.set == "*") make_outside(out);
    for (size_t i = 0; i < schema.arguments.size() && !alias.set.empty(); ++i) {
      if (schema.arguments[i].alias.set != alias.set) continue;
      known = true;
      Places of = places(n.inputs[i]);
      if (schema.arguments[i].type.list) of = reachable(of);
      if (!is_list) add(out, of);
      else  // a new list of parts of the argument
        for (int p : of) grown_ |= all_[static_cast<size_t>(own_.at(out))].contents.insert(p).second;
    }
    if (!alias.set.empty() && !known) make_outside(out);
  }
}

/// Functions of containers and numbers: what they give may be any of what they were given, or in it.
void AliasAnalysis::visit_builtin(const Node& n) {
  bool writes_first = writing_builtins().contains(n.kind()) && !n.inputs.empty();
  if (writes_first) {
    write(n, n.inputs[0]);
    for (size_t i = 1; i < n.inputs.size(); ++i) {
      if (n.is("aten::extend") || n.is("aten::update") || n.is("aten::add_"))  // the contents of the other one go in
        for (int p : places(n.inputs[0]))
          for (int from : places(n.inputs[i]))
            for (int held : Places(all_[static_cast<size_t>(from)].contents))
              grown_ |= all_[static_cast<size_t>(p)].contents.insert(held).second;
      else put_into(n.inputs[0], n.inputs[i]);
    }
  }
  for (const auto& v : n.outputs()) {
    if (!is_mutable(v->type())) continue;
    if (n.is("aten::add_")) {
      add(v.get(), places(n.inputs[0]));
      continue;
    }
    make_fresh(v.get());
    for (const Variable* in : n.inputs) {
      if (!is_mutable(in->type())) continue;
      take_from(v.get(), in);
      Places held = reachable(places(in));
      for (int p : held) grown_ |= all_[static_cast<size_t>(own_.at(v.get()))].contents.insert(p).second;
    }
  }
}

/// A list that one operator reads, and nothing else, keeps its elements as they are: `cat([a, b])`.
void AliasAnalysis::visit_container(const Node& n) {
  const Variable* out = n.output();
  if (!is_mutable(out->type())) return;
  make_fresh(out);
  const auto found = readers_.find(out);
  const Node* reader = found != readers_.end() && found->second.size() == 1 ? found->second[0] : nullptr;
  bool passing = reader && reader->op && !reader->op->schema().is_mutable();
  for (const SchemaReturn& r : passing ? reader->op->schema().returns : std::vector<SchemaReturn>{})
    passing &= r.alias.set.empty();
  for (const Variable* v : n.inputs) {
    if (!passing) put_into(out, v);
    else
      for (int p : places(v)) grown_ |= all_[static_cast<size_t>(own_.at(out))].contents.insert(p).second;
  }
}

void AliasAnalysis::visit_branch(const Node& n) {
  for (const auto& inner : n.blocks()) {
    visit(*inner);
    for (size_t i = 0; i < n.outputs().size(); ++i) add(n.output(i), places(inner->outputs[i]));
  }
}

void AliasAnalysis::visit_loop(const Node& n) {
  const Block& body = *n.blocks()[0];
  for (size_t i = 0; i < n.outputs().size(); ++i) {
    add(body.input(i + 1), places(n.inputs[i + 2]));
    add(body.input(i + 1), places(body.outputs[i + 1]));
  }
  visit(body);
  for (size_t i = 0; i < n.outputs().size(); ++i) {
    add(n.output(i), places(n.inputs[i + 2]));
    add(n.output(i), places(body.outputs[i + 1]));
  }
}

/// Calls: everything that they are given may be written and kept.
void AliasAnalysis::visit_unknown(const Node& n) {
  for (const Variable* v : n.inputs) {
    if (!is_mutable(v->type())) continue;
    make_outside(v);
    write(n, v, true);
  }
  for (const auto& v : n.outputs()) make_outside(v.get());
}

// ---- questions ----

/// What may be anything meets all that came from outside.
bool AliasAnalysis::meet(const Places& a, const Places& b) const {
  if (std::ranges::any_of(a, [&](int p) { return b.contains(p); })) return true;
  auto anything = outside_.find("");
  if (anything == outside_.end()) return false;
  auto is_outside = [&](int p) { return all_[static_cast<size_t>(p)].is_outside; };
  return (a.contains(anything->second) && std::ranges::any_of(b, is_outside)) ||
         (b.contains(anything->second) && std::ranges::any_of(a, is_outside));
}

bool AliasAnalysis::may_alias(const Variable* a, const Variable* b) const { return meet(places(a), places(b)); }

bool AliasAnalysis::may_contain_alias(const Variable* a, const Variable* b) const {
  return meet(reachable(places(a)), reachable(places(b)));
}

bool AliasAnalysis::has_writers(const Variable* v) const {
  return std::ranges::any_of(writes_, [&](const auto& w) { return meet(w.second, places(v)); });
}

bool AliasAnalysis::has_writers(const Node& node) const {
  return std::ranges::any_of(node.inputs, [&](const Variable* v) { return has_writers(v); }) ||
         std::ranges::any_of(node.outputs(), [&](const auto& v) { return has_writers(v.get()); });
}

AliasAnalysis::Places AliasAnalysis::written_by(const Node& node) const {
  Places out;
  if (auto found = writes_.find(&node); found != writes_.end()) out = found->second;
  for (const auto& inner : node.blocks())
    for (const auto& n : inner->nodes()) out.merge(written_by(*n));
  return out;
}

AliasAnalysis::Places AliasAnalysis::read_by(const Node& node) const {
  Places out;
  for (const Variable* v : node.inputs) out.merge(reachable(places(v)));
  for (const auto& v : node.outputs()) out.merge(reachable(places(v.get())));
  for (const auto& inner : node.blocks())
    for (const auto& n : inner->nodes()) out.merge(read_by(*n));
  return out;
}

bool AliasAnalysis::writes(const Node& node) const { return !written_by(node).empty(); }

bool AliasAnalysis::writes_outside(const Node& node) const {
  return std::ranges::any_of(written_by(node), [&](int p) { return all_[static_cast<size_t>(p)].is_outside; });
}

bool AliasAnalysis::writes_to(const Node& node, const Variables& values) const {
  Places written = written_by(node);
  return !written.empty() &&
         std::ranges::any_of(values, [&](const Variable* v) { return meet(written, reachable(places(v))); });
}

bool AliasAnalysis::escapes(const Variable* v) const {
  Places own = reachable(places(v));
  if (std::ranges::any_of(own, [&](int p) { return all_[static_cast<size_t>(p)].is_outside; })) return true;
  return std::ranges::any_of(graph_.block().outputs,
                             [&](const Variable* out) { return meet(own, reachable(places(out))); });
}

bool AliasAnalysis::exchangeable(const Variable* a, const Variable* b) const {
  if (!is_mutable(a->type())) return true;
  return !has_writers(a) && !has_writers(b) && !(escapes(a) && escapes(b));
}

// ---- moves ----

namespace {

bool reads_output(const Node& node, const Node& of) {
  auto is_output = [&](const Variable* v) { return v->node() == &of; };
  if (std::ranges::any_of(node.inputs, is_output)) return true;
  for (const auto& inner : node.blocks()) {
    if (std::ranges::any_of(inner->outputs, is_output)) return true;
    for (const auto& n : inner->nodes())
      if (reads_output(*n, of)) return true;
  }
  return false;
}

}  // namespace

bool AliasAnalysis::depends(const Node& later, const Node& earlier) const {
  if (reads_output(later, earlier)) return true;
  if (later.has_side_effects() && earlier.has_side_effects() && !later.is("prim::Constant")) {
    bool both_only_write = writes(later) && writes(earlier);
    if (!both_only_write) return true;
  }
  return meet(written_by(later), read_by(earlier)) || meet(written_by(earlier), read_by(later));
}

bool AliasAnalysis::move(Node& node, Node& other, bool after) const {
  check(node.block() == other.block() && &node != &other, "nodes are moved within one block");
  std::vector<Node*> between;  // from the node to the other one
  bool inside = false;
  for (const auto& n : node.block()->nodes()) {
    if (n.get() == &node || n.get() == &other) {
      if (inside) break;
      inside = true;
      if (n.get() == (after ? &node : &other)) continue;
      return true;  // it stands there already
    }
    if (inside) between.push_back(n.get());
  }
  if (!after) std::ranges::reverse(between);
  between.push_back(&other);
  std::vector<Node*> moving{&node};
  for (Node* n : between) {
    bool bound = std::ranges::any_of(moving, [&](Node* m) { return after ? depends(*n, *m) : depends(*m, *n); });
    if (!bound) continue;
    if (n == &other) return false;
    moving.push_back(n);
  }
  Node* at = &other;
  for (Node* n : moving) {
    if (after) node.graph()->move_after(*n, *at);
    else node.graph()->move_before(*n, *at);
    at = n;
  }
  return true;
}

bool AliasAnalysis::move_after(Node& node, Node& other) const { return move(node, other, true); }
bool AliasAnalysis::move_before(Node& node, Node& other) const { return move(node, other, false); }

// ---- text ----

std::string AliasAnalysis::text() const {
  std::string out = "\n===1. GRAPH===\n" + graph_.text() + "\n===2. ALIAS DB===\n";
  auto listed = [&](const Variable* v) {
    std::string line;
    for (int p : places(v)) {
      std::string name;
      for (const auto& [key, place] : outside_)
        if (place == p) name = "any " + (key.empty() ? "value" : key) + " from outside";
      for (const auto& [made, place] : own_)
        if (place == p) name = "%" + made->debug_name();
      line += (line.empty() ? "" : ", ") + name;
    }
    if (!line.empty()) out += concat("%", v->debug_name(), " may be: ", line, "\n");
  };
  for (const auto& v : graph_.block().inputs()) listed(v.get());
  each_node(graph_.block(), [&](const Node& n) {
    for (const auto& v : n.outputs()) listed(v.get());
  });
  out += "\n===3. Writes===\n";
  each_node(graph_.block(), [&](const Node& n) {
    if (auto found = writes_.find(&n); found == writes_.end() || found->second.empty()) return;
    out += n.kind() + " writes";
    for (const Variable* v : n.inputs)
      if (meet(writes_.at(&n), places(v))) out += " %" + v->debug_name();
    out += "\n";
  });
  return out;
}

}  // namespace umbra::jit
