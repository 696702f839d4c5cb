// Methods as plain functions of tensors.
#include "umbra/jit/objects.h"
#include "umbra/jit/passes.h"

namespace umbra::jit {

std::pair<std::shared_ptr<Graph>, std::vector<Value>> lower_module(const Graph& method, const Value& module) {
  std::shared_ptr<Graph> graph = method.copy();
  inline_calls(*graph);
  ValueMap inputs;
  std::unordered_map<const Variable*, Value> objects{{graph->block().input(0), module}};
  std::unordered_map<const TensorImpl*, Variable*> given;
  std::vector<Value> tensors;
  std::vector<Node*> reads;
  each_node(graph->block(), [&](Node& n) {
    if (n.is("prim::GetAttr")) reads.push_back(&n);
    check<NotImplementedError>(!n.is("prim::SetAttr"), "a module whose methods set attributes is not lowered");
  });
  for (Node* n : reads) {
    auto owner = objects.find(n->inputs[0]);
    check(owner != objects.end(), "a module that is chosen when a method runs is not lowered");
    Value value = expect_object<Instance>(owner->second, "a module").attribute(n->attribute("name")->to_string());
    if (object_as<Instance>(value)) {
      objects[n->output()] = value;
      continue;
    }
    check(value.is_tensor() || value.is_none(), "Unknown type ", n->output()->type()->annotation(),
          " encountered in graph lowering. This type is not supported in ONNX export.");
    if (value.is_none()) {
      graph->set_before(n);
      graph->replace_uses(n->output(), graph->insert_constant(value));
      graph->set_before(nullptr);
      continue;
    }
    Variable*& input = given[value.tensor_impl()];
    if (!input) {
      input = graph->block().add_input(tensor_type_of(value.tensor_ref()));
      tensors.push_back(value);
    }
    graph->replace_uses(n->output(), input);
  }
  graph->set_current(&graph->block());
  eliminate_dead_code(*graph);
  check(!graph->block().inputs().empty(), "a method has to have its module as an input");
  graph->block().erase_input(0);
  lint(*graph);
  return {graph, tensors};
}

}  // namespace umbra::jit
