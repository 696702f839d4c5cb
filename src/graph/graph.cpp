#include "umbra/graph/graph.h"

#include "graph/names.h"

namespace umbra::fx {

struct Graph::Block {
  static constexpr size_t kNodes = 64;
  ~Block() {
    for (size_t i = 0; i < used; ++i) (*this)[i].~Node();
  }
  Node& operator[](size_t i) { return reinterpret_cast<Node*>(memory)[i]; }
  alignas(Node) std::byte memory[kNodes * sizeof(Node)];
  size_t used = 0;
};

Graph::Graph() {
  root_ = allocate(Op::Root, Target("root"));
  insertion_ = {root_};
}
Graph::~Graph() = default;

Node* Graph::allocate(Op op, Target target) {
  if (blocks_.empty() || blocks_.back()->used == Block::kNodes) blocks_.push_back(std::unique_ptr<Block>(new Block));
  Block& block = *blocks_.back();
  Node* node = new (&block[block.used]) Node(this, next_id_, op, std::move(target));
  ++block.used;
  ++next_id_;
  return node;
}

Node* Graph::checked(Node* node) const {
  check<ValueError>(node, "a node is needed here, not null");
  check(node->graph_ == this, "Node ", node->name(), " is not in this graph");
  check(!node->is_erased(), "Node ", node->name(), " was erased from its graph");
  return node;
}

namespace {
/// The name torch.fx takes from a target when none is given.
std::string default_name(const Target& target) {
  if (const Operator* op = target.op()) {
    const Schema& schema = op->schema();
    return name_from(schema.name + "." + (schema.overload.empty() ? "default" : schema.overload));
  }
  if (const Function* function = target.function()) return name_from(function->short_name());
  return name_from(target.name());
}
}  // namespace

void Graph::check_argument(const Argument& argument) const {
  argument.each_node([this](Node* input) {
    check<ValueError>(input, "an argument is a null node");
    check(input->graph_ == this, "node ", input->name(), " belongs to another graph and cannot be an argument here");
    check(!input->is_erased(), "node ", input->name(), " was erased from its graph and cannot be an argument");
  });
}

void Graph::restore_insertion_point(InsertionPoint point) {
  while (point.node->is_erased()) point.node = point.after ? point.node->previous() : point.node->next();
  insertion_ = point;
}

Node* Graph::create_node(Op op, Target target, Arguments args, KeywordArguments kwargs, std::string_view name) {
  for (const Argument& a : args) check_argument(a);
  for (const auto& entry : kwargs) check_argument(entry.second);
  std::string unique = names_.create(name.empty() ? default_name(target) : name);
  Node* node = allocate(op, std::move(target));
  node->name_ = std::move(unique);
  node->args_ = std::move(args);
  node->kwargs_ = std::move(kwargs);
  node->link_before(insertion_.after ? insertion_.node->next_ : insertion_.node);
  node->add_uses();
  ++size_;
  return node;
}

Node* Graph::placeholder(std::string_view name) { return create_node(Op::Placeholder, std::string(name)); }
Node* Graph::placeholder(std::string_view name, Argument default_value) {
  Arguments args;
  args.push_back(std::move(default_value));
  return create_node(Op::Placeholder, std::string(name), std::move(args));
}
Node* Graph::get_attr(std::string_view path) { return create_node(Op::GetAttr, std::string(path)); }
Node* Graph::call(const Operator& op, Arguments args, KeywordArguments kwargs) {
  return create_node(Op::CallFunction, op, std::move(args), std::move(kwargs), name_from(op.schema().name));
}
Node* Graph::call(const Function& function, Arguments args, KeywordArguments kwargs) {
  return create_node(Op::CallFunction, function, std::move(args), std::move(kwargs));
}
Node* Graph::call_module(std::string_view path, Arguments args, KeywordArguments kwargs) {
  return create_node(Op::CallModule, std::string(path), std::move(args), std::move(kwargs));
}
Node* Graph::output(Argument result) {
  check(!output_node(), "the graph has an output already");
  Arguments args;
  args.push_back(std::move(result));
  return create_node(Op::Output, "output", std::move(args));
}

void Graph::erase_node(Node* node) {
  if (!node->users_.empty()) {
    std::string users;
    for (Node* user : node->users_) users += (users.empty() ? "" : ", ") + user->name() + ": None";
    fail("Tried to erase Node ", node->name(), " but it still had ", node->users_.size(), " users in the graph: {",
         users, "}!");
  }
  check(node->graph_ == this, "Attempting to remove ", node->name(), " from wrong graph!");
  if (node->erased_) return;
  if (insertion_.node == node) insertion_.node = insertion_.after ? node->previous_ : node->next_;
  node->unlink();
  node->erased_ = true;
  node->remove_uses();
  node->args_.clear();
  node->kwargs_.clear();
  --size_;
  ++version_;
}

// ---- copying ----

Node* Graph::adopt(const Node& node, Arguments args, KeywordArguments kwargs) {
  Node* copy = create_node(node.op(), node.target(), std::move(args), std::move(kwargs), node.name());
  copy->meta = node.meta;
  return copy;
}

Argument Graph::copy_nodes(const Graph& from, NodeMap& map) {
  auto mapped = [&](Node* input) {
    auto found = map.find(input);
    check(found != map.end(), "the node ", input->name(), " is used in a graph that it is not part of");
    return Argument(found->second);
  };
  auto is_known = [&](Node* input) { return map.contains(input); };
  // Uses may stand before what they use until a pass puts the graph in order: these get their arguments last.
  std::vector<Node*> early;
  Node* output = nullptr;
  for (Node* node : from.nodes()) {
    if (map.contains(node)) continue;
    if (node->op() == Op::Output) output = node;
    else if (std::ranges::all_of(node->inputs(), is_known)) map[node] = copy_node(*node, mapped);
    else early.push_back(node), map[node] = adopt(*node, {}, {});
  }
  for (Node* node : early) {
    map[node]->set_args(map_arguments(node->args(), mapped));
    map[node]->set_kwargs(map_keywords(node->kwargs(), mapped));
  }
  Argument result = output ? output->arg(0).map_nodes(mapped) : Argument();
  for (const auto& object : from.kept_alive_) keep_alive(object);
  return result;
}

IntrusivePtr<Graph> Graph::copy(NodeMap* map) const {
  NodeMap own;
  NodeMap& nodes = map ? *map : own;
  auto result = make_counted<Graph>();
  Argument returned = result->copy_nodes(*this, nodes);
  if (Node* old_output = output_node()) {
    Node* output = result->output(std::move(returned));
    output->meta = old_output->meta;
    nodes[old_output] = output;
  }
  result->pytree = pytree;
  return result;
}

void Graph::keep_alive(IntrusivePtr<RefCounted> object) {
  for (const auto& held : kept_alive_)
    if (held == object) return;
  kept_alive_.push_back(std::move(object));
}

// ---- reading ----

std::vector<Node*> Graph::placeholders() const {
  std::vector<Node*> out;
  for (Node* node : nodes())
    if (node->op() == Op::Placeholder) out.push_back(node);
  return out;
}

Node* Graph::output_node() const {
  Node* last = root_->previous();
  if (last->op() == Op::Output) return last;
  for (Node* node : reversed())
    if (node->op() == Op::Output) return node;
  return nullptr;
}

Arguments Graph::outputs() const {
  Node* output = output_node();
  if (!output) return {};
  const Argument& result = output->arg(0);
  if (result.is_sequence()) return result.elements();
  Arguments single;
  single.push_back(result);
  return single;
}

Node* Graph::find_node(std::string_view name) const {
  for (Node* node : nodes())
    if (node->name() == name) return node;
  return nullptr;
}

}  // namespace umbra::fx
