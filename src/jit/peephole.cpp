// Nodes whose result is there already, or shows in a type.

#include "umbra/jit/alias.h"
#include "umbra/jit/objects.h"
#include "umbra/jit/passes.h"

namespace umbra::jit {
namespace {

class Peephole {
 public:
  Peephole(Graph& graph, bool with_shapes) : graph_(graph), aliases_(graph), with_shapes_(with_shapes) {}

  bool run() {
    std::vector<Node*> nodes;
    each_node(graph_.block(), [&](Node& n) { nodes.push_back(&n); });
    for (Node* n : nodes) visit(*n);
    graph_.set_current(&graph_.block());
    return changed_;
  }

 private:
  void visit(Node& n) {
    if (n.is("prim::unchecked_cast") || n.is("prim::unchecked_unwrap_optional")) {
      if (same_type(n.inputs[0]->type(), n.output()->type())) replace(n.output(), n.inputs[0]);
    } else if (n.is("aten::__is__") || n.is("aten::__isnot__")) {
      compare_with_none(n);
    } else if (n.is("aten::t") && n.inputs[0]->node()->is("aten::t") && !aliases_.has_writers(n)) {
      replace(n.output(), n.inputs[0]->node()->inputs[0]);
    } else if (n.is("aten::len") && is_fixed_list(n.inputs[0])) {
      give(n, Value(static_cast<int64_t>(n.inputs[0]->node()->inputs.size())));
    } else if (n.is("prim::ListUnpack") && is_fixed_list(n.inputs[0])) {
      const Variables& items = n.inputs[0]->node()->inputs;
      if (items.size() != n.outputs().size()) return;  // it fails when the program runs
      for (size_t i = 0; i < items.size(); ++i) replace(n.output(i), items[i]);
    } else if (with_shapes_ && !n.inputs.empty() && n.inputs[0]->type()->is(TypeKind::Tensor)) {
      read_type(n, n.inputs[0]->type()->tensor);
    }
  }

  bool is_fixed_list(const Variable* v) const {
    return v->node()->is("prim::ListConstruct") && !aliases_.has_writers(v);
  }

  void compare_with_none(Node& n) {
    const TypePtr &a = n.inputs[0]->type(), &b = n.inputs[1]->type();
    if (!a->is(TypeKind::None) && !b->is(TypeKind::None)) return;
    const TypePtr& other = a->is(TypeKind::None) ? b : a;
    bool is_none = other->is(TypeKind::None);
    if (is_none || !is_subtype(simple_type(TypeKind::None), other)) give(n, Value(is_none == n.is("aten::__is__")));
  }

  /// What a node asks of a tensor and its type says. What writes could change is not looked at.
  void read_type(Node& n, const TensorDetails& known) {
    bool resized = aliases_.has_writers(n.inputs[0]);
    if (n.is("prim::dtype") && known.dtype) give(n, Value(number_of(*known.dtype)));
    else if (n.is("prim::device") && known.device) give(n, Value(*known.device));
    else if (n.is("prim::is_cuda") && known.device) give(n, Value(known.device->type == DeviceType::CUDA));
    else if (n.is("aten::dim") && known.sizes && !resized) give(n, Value(static_cast<int64_t>(known.sizes->size())));
    else if (n.is("aten::size") && known.sizes && !resized && n.inputs.size() == 1) {
      std::vector<Value> items;
      for (int64_t size : *known.sizes) items.emplace_back(size);
      give(n, make_list(simple_type(TypeKind::Int), std::move(items)));
    }
  }

  void give(Node& n, const Value& value) {
    if (object_as<ListObject>(value) && (aliases_.has_writers(n.output()) || aliases_.escapes(n.output())))
      return;  // every run has a list of its own
    graph_.set_before(&n);
    Variable* c = graph_.insert_constant(value, n.output()->type());
    graph_.set_before(nullptr);
    replace(n.output(), c);
  }

  void replace(Variable* from, Variable* to) {
    graph_.replace_uses(from, to);
    changed_ = true;
  }

  Graph& graph_;
  AliasAnalysis aliases_;
  bool with_shapes_, changed_ = false;
};

}  // namespace

bool peephole(Graph& graph, bool with_shapes) { return Peephole(graph, with_shapes).run(); }

}  // namespace umbra::jit
