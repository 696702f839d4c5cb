// From graphs to steps.
#include "jit/program.h"

#include <unordered_set>

#include "umbra/jit/passes.h"

namespace umbra::jit {

namespace {

/// A graph as it is run: sizes that traces write as tensors are numbers.
std::shared_ptr<Graph> prepared(std::shared_ptr<Graph> graph) {
  bool by_tensors = false;
  each_node(graph->block(), [&](const Node& n) { by_tensors |= n.is("prim::NumToTensor"); });
  if (!by_tensors) return graph;
  std::shared_ptr<Graph> own = graph->copy();
  simplify_numbers(*own);
  return own;
}

}  // namespace

std::vector<Value> run_node(const Node& node, std::vector<Value> inputs) {
  auto graph = std::make_shared<Graph>();
  Variables given;
  for (const Variable* v : node.inputs) given.push_back(graph->add_input("", v->type()));
  Node* copy = graph->insert(node.kind(), given, {});
  copy->op = node.op;
  copy->attributes = node.attributes;
  copy->op_types = node.op_types;
  for (const auto& v : node.outputs()) graph->add_output(copy->add_output(v->type()));
  return run(graph, std::move(inputs));
}

Program::Program(std::shared_ptr<Graph> graph) : graph_(prepared(std::move(graph))) { compile(graph_->block(), code_); }

void Program::classify(Step& s, const Node& node) {
  using Kind = Step::Kind;
  static const std::unordered_map<std::string_view, Kind> kinds = {
      {"prim::If", Kind::If},
      {"prim::Loop", Kind::Loop},
      {"prim::TupleConstruct", Kind::Tuple},
      {"prim::TupleUnpack", Kind::Unpack},
      {"prim::ListUnpack", Kind::Unpack},
      {"prim::ListConstruct", Kind::List},
      {"prim::DictConstruct", Kind::Dict},
      {"prim::GetAttr", Kind::GetAttr},
      {"prim::ModuleContainerIndex", Kind::ModuleIndex},
      {"prim::SetAttr", Kind::SetAttr},
      {"prim::CallMethod", Kind::CallMethod},
      {"prim::CallFunction", Kind::CallFunction},
      {"prim::CreateObject", Kind::Create},
      {"prim::RaiseException", Kind::Raise},
      {"prim::PythonOp", Kind::Python},
      {"prim::Uninitialized", Kind::Pass},
      {"prim::isinstance", Kind::IsInstance},
      {"prim::tolist", Kind::ToList},
      {"prim::unchecked_cast", Kind::Cast},
      {"prim::unchecked_unwrap_optional", Kind::Cast},
      {"prim::Enter", Kind::Enter},
      {"prim::Exit", Kind::Exit},
  };
  if (node.op) {
    s.kind = Kind::Operator;
    return;
  }
  if (auto found = kinds.find(node.kind()); found != kinds.end()) {
    s.kind = found->second;
    return;
  }
  std::vector<TypePtr> types;
  for (const Variable* v : node.inputs) types.push_back(v->type());
  TypePtr result;
  s.kind = Kind::Builtin;
  s.builtin = find_builtin(node.kind(), types, &result);
  std::string texts;
  for (const TypePtr& t : types) texts += (texts.empty() ? "" : ", ") + t->text();
  check<NotImplementedError>(s.builtin, "TorchScript: ", node.kind(), "(", texts, ") is not in Umbra yet");
}

void Program::compile(const Block& block, Code& code) {
  for (const auto& v : block.inputs()) code.inputs.push_back(reg(v.get()));
  for (const auto& node : block.nodes()) {
    if (node->is("prim::Constant")) {
      const Value* value = node->attribute("value");
      constants_.emplace_back(reg(node->output()), value ? *value : Value());
      if (node->callee) constants_.back().second = Value::object(make_counted<FunctionObject>(node->callee));
      continue;
    }
    Step& s = code.steps.emplace_back();
    s.node = node.get();
    for (const Variable* v : node->inputs) s.inputs.push_back(reg(v));
    for (const auto& v : node->outputs()) s.outputs.push_back(reg(v.get()));
    for (const auto& inner : node->blocks()) {
      s.blocks.push_back(std::make_unique<Code>());
      compile(*inner, *s.blocks.back());
    }
    classify(s, *node);
  }
  for (const Variable* v : block.outputs) code.outputs.push_back(reg(v));
  release(block, code);
}

void Program::release(const Block& block, Code& code) {
  std::unordered_set<uint32_t> own, later(code.outputs.begin(), code.outputs.end());
  for (const auto& node : block.nodes())
    if (!node->is("prim::Constant"))
      for (const auto& v : node->outputs()) own.insert(reg(v.get()));
  for (auto s = code.steps.rbegin(); s != code.steps.rend(); ++s) {
    auto use = [&](uint32_t r) {
      if (own.contains(r) && later.insert(r).second) s->dead.push_back(r);
    };
    for (uint32_t r : s->outputs) use(r);
    for (uint32_t r : s->inputs) use(r);
    for (const auto& inner : s->node->blocks()) {
      each_node(*inner, [&](const Node& n) {
        for (const Variable* v : n.inputs) use(reg(v));
        for (const auto& b : n.blocks())
          for (const Variable* v : b->outputs) use(reg(v));
      });
      for (const Variable* v : inner->outputs) use(reg(v));
    }
  }
}

}  // namespace umbra::jit
