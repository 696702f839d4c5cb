#include "umbra/export/grad_regions.h"

#include <algorithm>

namespace umbra {

namespace {

/// The nodes from one switch of the mode to the next.
struct Region {
  bool enabled;
  fx::Node* entry;  // the switch; null for what comes before the first one
  std::vector<fx::Node*> nodes = {};
  std::vector<fx::Node*> inputs = {},
                         outputs =
                             {};  // made before and used here; made here and used later: in the order of their use
};

class Wrapper {
 public:
  Wrapper(fx::GraphModule& module, bool enabled)
      : module_(module),
        enabled_(enabled),
        switch_(fx::function("torch._C._set_grad_enabled")),
        graph_(make_counted<fx::Graph>()) {}

  void run() {
    split();
    wrap_subgraphs();
    if (regions_.size() == 1) return;
    find_uses();
    rebuild();
    fx::Graph& old = module_.graph();
    graph_->pytree = old.pytree;
    for (const auto& object : old.kept_alive()) graph_->keep_alive(object);
    module_.set_graph(graph_);
    module_.remove_unused_attributes();
  }

 private:
  void split() {
    regions_.push_back({enabled_, nullptr});
    for (fx::Node* node : module_.graph().nodes()) {
      if (node->op() == fx::Op::Placeholder || node->op() == fx::Op::Output) continue;
      if (node->calls(switch_)) regions_.push_back({node->arg(0).value().to_bool(), node});
      else regions_.back().nodes.push_back(node);
    }
  }

  // Branches of cond: each in the mode of the region that it stands in.
  void wrap_subgraphs() {
    for (const Region& region : regions_)
      for (fx::Node* node : region.nodes) {
        if (node->op() != fx::Op::GetAttr) continue;
        for (const auto& [path, part] : module_.submodules())
          if (path == node->target().name()) wrap_grad_regions(*part, region.enabled);
      }
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
      if (region.enabled == enabled_)
        for (fx::Node* node : region.nodes) copy(node);
      else call(region, "submod_" + std::to_string(i), "submod_" + std::to_string(regions_.size() + wrapped++));
    }
    copy(module_.graph().output_node());
  }

  void copy(fx::Node* node) {
    map_[node] = graph_->copy_node(*node, [this](fx::Node* input) { return mapped(input); });
  }

  void call(const Region& region, const std::string& path, const std::string& name) {
    module_.set_submodule(path, submodule(region));
    fx::Node* part = graph_->create_node(fx::Op::GetAttr, path, {}, {}, name);
    part->meta.modules = region.entry->meta.modules;
    fx::Arguments arguments{region.enabled, part};
    for (fx::Node* input : region.inputs) arguments.push_back(mapped(input));
    bool single = region.outputs.size() == 1;
    fx::Node* node = graph_->create_node(
        fx::Op::CallFunction, fx::function("torch.ops.higher_order.wrap_with_set_grad_enabled"), std::move(arguments),
        {}, single ? region.outputs[0]->name() : "wrap_with_set_grad_enabled");
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
    return part;
  }

  void move_attribute(const std::string& path, fx::GraphModule& part) {
    for (const fx::Attribute& attribute : module_.attributes())
      if (attribute.path == path) return part.set(path, attribute.value, attribute.kind);
  }

  fx::GraphModule& module_;
  bool enabled_;
  const fx::Function& switch_;
  IntrusivePtr<fx::Graph> graph_;
  std::vector<Region> regions_;
  fx::NodeMap map_;
};

}  // namespace

void wrap_grad_regions(fx::GraphModule& module, bool enabled) { Wrapper(module, enabled).run(); }

}  // namespace umbra
