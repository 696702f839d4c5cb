#include "umbra/export/regions.h"

#include <algorithm>

namespace umbra {

namespace {

/// The nodes from one switch of the mode to the next.
struct Region {
  fx::Node* entry;  // the switch; null for what comes before the first one
  bool is_wrapped;  // becomes a graph of its own
  std::vector<fx::Node*> nodes = {};
  // Made before and used here; made here and used later: in the order of their use.
  std::vector<fx::Node*> inputs = {}, outputs = {};
};

/// Makes submodules of regions. What begins one, and how its submodule is called, is for the derived classes to say.
class Wrapper {
 public:
  explicit Wrapper(fx::GraphModule& module) : module_(module), graph_(make_counted<fx::Graph>()) {}
  virtual ~Wrapper() = default;

  void run() {
    regions_.push_back({nullptr, false});
    for (fx::Node* node : module_.graph().nodes())
      if (node->op() != fx::Op::Placeholder && node->op() != fx::Op::Output) add(node);
    for (const Region& region : regions_)
      for (fx::Node* node : region.nodes) wrap_subgraphs(node, region);
    if (regions_.size() == 1) return;
    find_uses();
    rebuild();
    fx::Graph& old = module_.graph();
    graph_->pytree = old.pytree;
    for (const auto& object : old.kept_alive()) graph_->keep_alive(object);
    module_.set_graph(graph_);
    module_.remove_unused_attributes();
  }

 protected:
  /// Puts the next node into the last region, or begins one.
  virtual void add(fx::Node* node) = 0;
  /// The function that calls a region's submodule, and its arguments before the submodule.
  virtual const fx::Function& function() const = 0;
  virtual fx::Arguments leading_arguments(const Region& region) const = 0;
  /// Does the same with a graph that a node of a region refers to: a branch of cond.
  virtual void wrap_part(fx::GraphModule& part, const Region& region) = 0;
  /// Called for each submodule that is made.
  virtual void finish_part(fx::GraphModule& /*part*/) {}

  std::vector<Region> regions_;

 private:
  void wrap_subgraphs(fx::Node* node, const Region& region) {
    if (node->op() != fx::Op::GetAttr) return;
    for (const auto& [path, part] : module_.submodules())
      if (path == node->target().name()) wrap_part(*part, region);
  }

  void find_uses() {
    std::unordered_map<const fx::Node*, Region*> made_in;
    for (Region& region : regions_)
      for (fx::Node* node : region.nodes) made_in.emplace(node, &region);
    auto add = [](std::vector<fx::Node*>& list, fx::Node* node) {
      if (std::find(list.begin(), list.end(), node) == list.end()) list.push_back(node);
    };
    auto use = [&](fx::Node* user, Region* region) {
      for (fx::Node* input : user->inputs()) {
        auto maker = made_in.find(input);
        if (maker != made_in.end() && maker->second == region) continue;
        if (region) add(region->inputs, input);
        if (maker != made_in.end()) add(maker->second->outputs, input);
      }
    };
    for (Region& region : regions_)
      for (fx::Node* node : region.nodes) use(node, &region);
    use(module_.graph().output_node(), nullptr);
  }

  fx::Argument mapped(fx::Node* node) const { return map_.at(node); }

  void rebuild() {
    for (fx::Node* node : module_.graph().placeholders()) copy(node);
    // PyTorch has given names to the parts of every region's results before the regions of the program's own mode are
    // dissolved.
    for (const Region& region : regions_)
      if (region.outputs.size() > 1)
        for (size_t i = 0; i < region.outputs.size(); ++i) graph_->names().create("getitem");
    size_t wrapped = 0;
    for (size_t i = 0; i < regions_.size(); ++i) {
      const Region& region = regions_[i];
      if (!region.is_wrapped)
        for (fx::Node* node : region.nodes) copy(node);
      else call(region, unused_path(i), "submod_" + std::to_string(regions_.size() + wrapped++));
    }
    copy(module_.graph().output_node());
  }

  /// The name of a region's submodule by its number, or the next that regions of another mode have left free.
  std::string unused_path(size_t number) const {
    while (module_.find("submod_" + std::to_string(number))) ++number;
    return "submod_" + std::to_string(number);
  }

  void copy(fx::Node* node) {
    map_[node] = graph_->copy_node(*node, [this](fx::Node* input) { return mapped(input); });
  }

  void call(const Region& region, const std::string& path, const std::string& name) {
    module_.set_submodule(path, submodule(region));
    fx::Node* part = graph_->create_node(fx::Op::GetAttr, path, {}, {}, name);
    part->meta.modules = region.entry->meta.modules;
    fx::Arguments arguments = leading_arguments(region);
    arguments.push_back(part);
    for (fx::Node* input : region.inputs) arguments.push_back(mapped(input));
    bool single = region.outputs.size() == 1;
    fx::Node* node = graph_->create_node(fx::Op::CallFunction, function(), std::move(arguments), {},
                                         single ? region.outputs[0]->name() : std::string(function().short_name()));
    node->meta.modules = region.entry->meta.modules;
    std::vector<Value> values;
    for (size_t i = 0; i < region.outputs.size(); ++i) {
      fx::Node* output = region.outputs[i];
      values.push_back(output->meta.val);
      fx::Node* item = graph_->create_node(fx::Op::CallFunction, fx::function("operator.getitem"),
                                           {node, static_cast<int64_t>(i)}, {}, single ? "getitem" : output->name());
      item->meta = output->meta;
      map_[output] = item;
    }
    node->meta.val = Value(std::move(values));
  }

  IntrusivePtr<fx::GraphModule> submodule(const Region& region) {
    auto graph = make_counted<fx::Graph>();
    for (const auto& object : module_.graph().kept_alive()) graph->keep_alive(object);
    auto part = make_counted<fx::GraphModule>(graph);
    fx::NodeMap inside;
    auto map = [&](fx::Node* input) -> fx::Argument { return inside.at(input); };
    for (fx::Node* input : region.inputs) {
      fx::Node* placeholder = inside[input] = graph->placeholder(input->name());
      placeholder->meta.val = input->meta.val;
    }
    for (fx::Node* node : region.nodes) {
      inside[node] = graph->copy_node(*node, map);
      if (node->op() == fx::Op::GetAttr) move_attribute(node->target().name(), *part);
    }
    fx::Arguments results;
    for (fx::Node* output : region.outputs) results.push_back(inside.at(output));
    graph->output(fx::Argument::tuple(std::move(results)));
    finish_part(*part);
    return part;
  }

  void move_attribute(const std::string& path, fx::GraphModule& part) {
    for (const fx::Attribute& attribute : module_.attributes())
      if (attribute.path == path) return part.set(path, attribute.value, attribute.kind);
  }

  fx::GraphModule& module_;
  IntrusivePtr<fx::Graph> graph_;
  fx::NodeMap map_;
};

class GradWrapper final : public Wrapper {
 public:
  GradWrapper(fx::GraphModule& module, bool enabled) : Wrapper(module), enabled_(enabled) {}

 private:
  static bool mode(const Region& region) { return region.entry->arg(0).value().to_bool(); }
  void add(fx::Node* node) override {
    if (node->calls(switch_)) regions_.push_back({node, node->arg(0).value().to_bool() != enabled_});
    else regions_.back().nodes.push_back(node);
  }
  const fx::Function& function() const override {
    return fx::function("torch.ops.higher_order.wrap_with_set_grad_enabled");
  }
  fx::Arguments leading_arguments(const Region& region) const override { return {mode(region)}; }
  void wrap_part(fx::GraphModule& part, const Region& region) override {
    wrap_grad_regions(part, region.entry ? mode(region) : enabled_);
  }

  bool enabled_;
  const fx::Function& switch_ = fx::function("torch._C._set_grad_enabled");
};

class AutocastWrapper final : public Wrapper {
 public:
  using Wrapper::Wrapper;

 private:
  // The outermost regions; what is inside them is left to the submodules.
  void add(fx::Node* node) override {
    bool begins = node->calls(enter_), ends = node->calls(exit_);
    if (begins && depth_++ == 0) return void(regions_.push_back({node, true}));
    if (ends && --depth_ == 0) return void(regions_.push_back({node, false}));
    regions_.back().nodes.push_back(node);
  }
  const fx::Function& function() const override { return fx::function("torch.ops.higher_order.wrap_with_autocast"); }
  fx::Arguments leading_arguments(const Region& region) const override { return region.entry->args(); }
  void wrap_part(fx::GraphModule& part, const Region&) override { wrap_autocast_regions(part); }
  void finish_part(fx::GraphModule& part) override { wrap_autocast_regions(part); }

  int depth_ = 0;
  const fx::Function& enter_ = fx::function("torch.amp.autocast_mode._enter_autocast");
  const fx::Function& exit_ = fx::function("torch.amp.autocast_mode._exit_autocast");
};

}  // namespace

void wrap_grad_regions(fx::GraphModule& module, bool enabled) { GradWrapper(module, enabled).run(); }

void wrap_autocast_regions(fx::GraphModule& module) { AutocastWrapper(module).run(); }

}  // namespace umbra
