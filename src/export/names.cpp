#include "export/names.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_set>

#include "sym/source_hash.h"

namespace umbra {

namespace {

/// Names that are taken, and how far numbers were counted.
class Names {
 public:
  /// An input's name, with a number behind it where it is taken: "x_foo_0", "x_foo_0_1".
  std::string input(const std::string& name) { return used_.insert(name).second ? name : next(name); }

  /// Another node's name: "mul_1" where it is taken becomes "mul_2".
  std::string node(const std::string& name) {
    if (used_.insert(name).second) return name;
    size_t digits = name.find_last_not_of("0123456789");
    bool numbered = digits != std::string::npos && digits > 0 && digits + 1 < name.size() && name[digits] == '_';
    return next(numbered ? name.substr(0, digits) : name);
  }

 private:
  std::string next(const std::string& base) {
    std::string name;
    do name = base + "_" + std::to_string(++counts_[base]);
    while (!used_.insert(name).second);
    return name;
  }
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int64_t> counts_;
};

/// Placeholders have no capitals, as in PyTorch.
std::string in_small_letters(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

/// What a module's nodes are to be called: inputs as given, others by what does not collide with them.
std::vector<std::string> new_names(const fx::Graph& graph, const std::vector<std::string>& inputs, Names& names) {
  std::vector<std::string> out;
  size_t next_input = 0;
  for (fx::Node* node : graph.nodes()) {
    if (node->op() == fx::Op::Placeholder) out.push_back(inputs.at(next_input++));
    else out.push_back(node->op() == fx::Op::Output ? node->name() : names.node(node->name()));
  }
  return out;
}

/// Renames nodes where no new name is another's old one. What was renamed, by the old names; nothing where one is.
std::optional<std::unordered_map<std::string, std::string>> rename_in_place(fx::Graph& graph,
                                                                            const std::vector<std::string>& names) {
  std::unordered_map<std::string, std::string> renamed;
  std::unordered_set<std::string> taken;
  for (fx::Node* node : graph.nodes()) taken.insert(node->name());
  std::vector<std::pair<fx::Node*, const std::string*>> changes;
  size_t next = 0;
  for (fx::Node* node : graph.nodes()) {
    const std::string& name = names[next++];
    if (node->name() == name) continue;
    if (taken.count(name)) return std::nullopt;
    changes.emplace_back(node, &name);
  }
  for (auto [node, name] : changes) {
    std::string before = node->name();
    if (node->op() == fx::Op::Placeholder) node->set_reserved_name(*name);
    else node->set_name(*name);
    renamed.emplace(std::move(before), node->name());
    if (node->op() == fx::Op::Placeholder) node->set_target(fx::Target(*name));
  }
  return renamed;
}

/// Gives a module's nodes other names, in a graph made anew where names change hands. What was renamed, by the old
/// names.
std::unordered_map<std::string, std::string> rename(fx::GraphModule& module, const std::vector<std::string>& inputs,
                                                    Names& names) {
  const fx::Graph& old = module.graph();
  std::vector<std::string> wanted = new_names(old, inputs, names);
  if (auto renamed = rename_in_place(module.graph(), wanted)) return *renamed;
  auto graph = make_counted<fx::Graph>();
  for (const auto& object : old.kept_alive()) graph->keep_alive(object);
  fx::NodeMap map;
  auto mapped = [&](fx::Node* node) -> fx::Argument { return map.at(node); };
  std::unordered_map<std::string, std::string> renamed;
  size_t next = 0;
  for (fx::Node* node : old.nodes()) {
    fx::Arguments arguments;
    for (const fx::Argument& a : node->args()) arguments.push_back(a.map_nodes(mapped));
    fx::KeywordArguments keywords;
    for (const auto& [key, a] : node->kwargs()) keywords.emplace_back(key, a.map_nodes(mapped));
    const std::string& name = wanted[next++];
    bool input = node->op() == fx::Op::Placeholder;
    fx::Node* made = graph->create_node(node->op(), input ? fx::Target(name) : node->target(), std::move(arguments),
                                        std::move(keywords), name);
    if (input) made->set_reserved_name(name);
    made->meta = node->meta;
    map[node] = made;
    renamed.emplace(node->name(), made->name());
  }
  module.set_graph(graph);
  return renamed;
}

/// A subgraph and what its inputs are called.
struct Use {
  std::string path;
  std::vector<std::string> inputs;
};

void add_names(const fx::Argument& argument, std::vector<std::string>& names) {
  if (argument.node()) names.push_back(argument.node()->name());
  else if (!argument.is_value())
    for (const fx::Argument& item : argument.items()) add_names(item, names);
}

/// The subgraphs that a node of cond, map or a region of another grad mode calls have inputs by the names of the nodes
/// whose values they are, those of a loop by number.
std::vector<Use> subgraphs_of(const fx::Node& node) {
  const fx::Function* function = node.target().function();
  if (!function) return {};
  std::string_view name = function->short_name();
  size_t first, last, operands;
  if (name == "cond" && node.args().size() == 4) first = 1, last = 3, operands = 3;
  else if (name == "map_impl" && node.args().size() == 3) first = 0, last = 1, operands = 1;
  else if (name == "wrap_with_set_grad_enabled") first = 1, last = 2, operands = 2;
  else if (name == "while_loop" && node.args().size() == 4) first = 0, last = 2, operands = 2;
  else return {};
  std::vector<std::string> inputs;
  if (name == "while_loop")
    for (size_t i = 0; i < node.arg(2).items().size() + node.arg(3).items().size(); ++i)
      inputs.push_back(concat("arg", i, "_1"));
  else
    for (size_t i = operands; i < node.args().size(); ++i) add_names(node.arg(i), inputs);
  std::vector<Use> uses;
  for (size_t i = first; i < last; ++i)
    if (node.arg(i).node() && node.arg(i).node()->op() == fx::Op::GetAttr)
      uses.push_back({node.arg(i).node()->target().name(), inputs});
  return uses;
}

void name_subgraphs(fx::GraphModule& module) {
  for (const fx::Node* node : module.graph().nodes())
    for (const Use& use : subgraphs_of(*node)) {
      fx::GraphModule& part = module.submodule(use.path);
      if (part.graph().placeholders().size() != use.inputs.size()) continue;
      Names names;
      std::vector<std::string> inputs;
      for (const std::string& name : use.inputs) inputs.push_back(names.input(name));
      rename(part, inputs, names);
      name_subgraphs(part);
    }
}

}  // namespace

std::string identifier(const std::string& prefix, const std::string& path) {
  std::string out;
  for (char c : path) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return prefix + (out.starts_with("self_") ? out.substr(5) : out);
}

void number_constants(ExportedProgram& program, const std::unordered_set<std::string>& made_up) {
  size_t next = 0;
  for (InputSpec& spec : program.signature.inputs) {
    if (spec.kind != InputKind::TensorConstant || !made_up.contains(spec.target)) continue;
    std::string owner = spec.target.substr(0, spec.target.rfind(kUnnamedConstant));
    std::string name = owner + kUnnamedConstant + std::to_string(next++);
    for (auto& [known, tensor] : program.constants)
      if (known == spec.target) known = name;
    spec.name = identifier("c_", name);
    spec.target = std::move(name);
  }
}

void name_nodes(ExportedProgram& program) {
  std::vector<InputSpec>& specs = program.signature.inputs;
  Names names;
  for (bool users : {true, false})
    for (InputSpec& spec : specs)
      if ((spec.kind == InputKind::UserInput || spec.kind == InputKind::ConstantInput) == users)
        spec.name = names.input(in_small_letters(spec.name));
  std::vector<std::string> inputs;
  for (const InputSpec& spec : specs) inputs.push_back(spec.name);
  auto renamed = rename(*program.graph_module, inputs, names);
  for (ModuleCall& call : program.module_calls) {
    if (!call.signature) continue;
    for (std::vector<CallArgument>* list : {&call.signature->inputs, &call.signature->outputs})
      for (CallArgument& argument : *list)
        if (auto found = renamed.find(argument.name); found != renamed.end()) argument.name = found->second;
  }
  name_subgraphs(*program.graph_module);
}

namespace {

/// The modules that the names of tensors tell of.
struct Part {
  std::vector<size_t> parameters, others;
  std::vector<std::pair<std::string, std::unique_ptr<Part>>> parts;  // as they were met

  Part& at(const std::string& name) {
    for (auto& [known, part] : parts)
      if (known == name) return *part;
    return *parts.emplace_back(name, std::make_unique<Part>()).second;
  }

  void list(std::vector<size_t> Part::*kind, std::vector<size_t>& order) const {
    order.insert(order.end(), (this->*kind).begin(), (this->*kind).end());
    for (const auto& [name, part] : parts) part->list(kind, order);
  }
};

}  // namespace

std::vector<size_t> order_of_inputs(const std::vector<InputSpec>& inputs) {
  Part whole;
  std::vector<size_t> order, rest;
  for (size_t i = 0; i < inputs.size(); ++i) {
    InputKind kind = inputs[i].kind;
    bool parameter = kind == InputKind::Parameter,
         other = kind == InputKind::Buffer || kind == InputKind::TensorConstant;
    if (!parameter && !other) {
      (kind == InputKind::Token ? order : rest).push_back(i);
      continue;
    }
    Part* owner = &whole;
    size_t start = 0;
    for (size_t dot; (dot = inputs[i].target.find('.', start)) != std::string::npos; start = dot + 1)
      owner = &owner->at(inputs[i].target.substr(start, dot - start));
    (parameter ? owner->parameters : owner->others).push_back(i);
  }
  whole.list(&Part::parameters, order);
  whole.list(&Part::others, order);
  order.insert(order.end(), rest.begin(), rest.end());
  return order;
}

void add_places(fx::Node* input, const std::string& source, std::vector<SizePlace>& places) {
  if (!input->meta.val.is_tensor()) return;
  SymIntArrayRef sizes = input->meta.val.tensor_ref().sym_sizes();
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d].is_symbolic()) places.push_back({input, static_cast<int64_t>(d), concat(source, ".size()[", d, "]")});
}

std::vector<SizePlace> symbolic_sizes(const fx::Graph& graph) {
  std::vector<SizePlace> places;
  for (fx::Node* input : graph.placeholders()) add_places(input, "L['" + input->name() + "']", places);
  return places;
}

size_t count_sizes(const fx::Graph& graph) {
  static const Operator& size = get_operator("aten::sym_size.int");
  std::set<std::pair<const fx::Node*, int64_t>> sizes;
  for (const fx::Node* node : graph.nodes())
    if (node->calls(size)) sizes.emplace(node->arg(0).node(), node->arg(1).value().to_int());
  return sizes.size();
}

namespace {

/// The sizes that a graph reads, put in order.
class SizeReader {
 public:
  SizeReader(fx::Graph& graph, sym::ShapeEnv& env, const std::vector<SizePlace>& places, size_t recorded)
      : graph_(graph), env_(env), places_(places), next_(recorded) {}

  void run() {
    std::vector<fx::Node*> calls;
    for (fx::Node* node : graph_.nodes())
      if (node->calls(size_)) calls.push_back(node);
    for (fx::Node* node : calls)
      if (is_of_input(node)) sort_out(node);
    fx::Node* last = nullptr;
    for (fx::Node* input : graph_.placeholders()) last = input;
    for (const auto& [place, node] : own_) {
      node->move_after(last);
      number(node, next_ + place);
      last = node;
    }
    size_t of_results = next_ + places_.size();
    for (fx::Node* node : calls)
      if (!erased_.contains(node) && !is_of_input(node)) number(node, of_results++);
  }

 private:
  static bool is_of_input(const fx::Node* node) {
    return node->arg(0).node() && node->arg(0).node()->op() == fx::Op::Placeholder;
  }

  const sym::Expression* size_at(const SizePlace& place) const {
    SymInt size = place.input->meta.val.tensor_ref().sym_sizes()[place.dimension];
    return size.is_symbolic() ? env_.simplify(env_.expression(size)) : nullptr;
  }

  /// The place that a symbol has its name from, or the first that it stands in by itself. Symbols of files know their
  /// names alone.
  size_t place_of(const sym::Expression* symbol) const {
    const sym::Symbol& known = env_.symbol(symbol);
    size_t first = places_.size();
    for (size_t i = 0; i < places_.size(); ++i) {
      if (size_at(places_[i]) != symbol) continue;
      const std::string& source = places_[i].source;
      if (known.sources.empty() ? known.name == concat("s", sym::source_number(source))
                                : known.sources.front() == source)
        return i;
      first = std::min(first, i);
    }
    return first;
  }

  void sort_out(fx::Node* node) {
    const Value& value = node->meta.val;
    const sym::Expression* e = value.is_sym_int() ? env_.simplify(env_.expression(value.to_sym_int())) : nullptr;
    size_t place = e && e->is(sym::Kind::Symbol) ? place_of(e) : places_.size();
    if (place == places_.size()) return read_where_used(node);
    auto [known, added] = own_.emplace(place, node);
    if (!added) {
      node->replace_all_uses_with(known->second);
      erased_.insert(node);
      graph_.erase_node(node);
      return;
    }
    const SizePlace& from = places_[place];
    node->set_args({from.input, from.dimension});
    node->meta.val = Value(from.input->meta.val.tensor_ref().sym_sizes()[from.dimension]);
  }

  void read_where_used(fx::Node* node) {
    for (fx::Node* other = node->next(); other->op() != fx::Op::Output; other = other->next())
      if (std::ranges::count(node->users(), other) > 0) return node->move_before(other);
  }

  static void number(fx::Node* node, size_t number) {
    node->set_name(number == 0 ? "sym_size_int" : concat("sym_size_int_", number));
  }

  fx::Graph& graph_;
  sym::ShapeEnv& env_;
  const std::vector<SizePlace>& places_;
  size_t next_;
  const Operator& size_ = get_operator("aten::sym_size.int");
  std::map<size_t, fx::Node*> own_;  // by their places
  std::unordered_set<const fx::Node*> erased_;
};

}  // namespace

void settle_sizes(fx::Graph& graph, sym::ShapeEnv& env, const std::vector<SizePlace>& places, size_t recorded) {
  SizeReader(graph, env, places, recorded).run();
}

void merge_repeated_numbers(fx::Graph& graph) {
  std::unordered_map<int64_t, fx::Node*> first;
  std::vector<fx::Node*> repeated;
  for (fx::Node* node : graph.nodes()) {
    if (!node->target().function() || !node->meta.val.is_sym_int()) continue;
    auto [known, added] = first.emplace(node->meta.val.to_sym_int().raw(), node);
    if (added) continue;
    node->replace_all_uses_with(known->second);
    repeated.push_back(node);
  }
  for (fx::Node* node : repeated) graph.erase_node(node);
}

}  // namespace umbra
