// Sizes that a trace computes as tensors become numbers.
#include <unordered_map>

#include "umbra/jit/objects.h"
#include "umbra/jit/passes.h"

namespace umbra::jit {
namespace {

class Numbers {
 public:
  explicit Numbers(Graph& graph) : graph_(graph) {}

  void run() {
    std::vector<Node*> back;
    each_node(graph_.block(), [&](Node& n) {
      if (n.is("aten::Int") || n.is("aten::IntImplicit") || n.is("aten::ScalarImplicit")) back.push_back(&n);
    });
    for (Node* n : back)
      if (Variable* number = as_int(n->inputs[0])) graph_.replace_uses(n->output(), number);
    graph_.set_current(&graph_.block());
    eliminate_dead_code(graph_);
  }

 private:
  /// The integer that a tensor of the program is made of, as a value of its own, or null.
  Variable* as_int(Variable* v) {
    if (auto found = known_.find(v); found != known_.end()) return found->second;
    Variable* number = find(*v->node(), v);
    return known_[v] = number;
  }

  Variable* find(Node& n, Variable* v) {
    if (!v->type()->is(TypeKind::Tensor)) return nullptr;
    if (n.is("prim::NumToTensor")) return n.inputs[0]->type()->is(TypeKind::Int) ? n.inputs[0] : nullptr;
    if (n.is("prim::Constant")) return constant(n);
    static const std::unordered_map<std::string_view, const char*> operators = {
        {"aten::add", "aten::add"},
        {"aten::sub", "aten::sub"},
        {"aten::rsub", "aten::sub"},
        {"aten::mul", "aten::mul"},
        {"aten::floor_divide", "aten::floordiv"},
        {"aten::remainder", "aten::remainder"}};
    if (n.is("aten::div")) return quotient(n);
    auto found = operators.find(n.kind());
    if (found == operators.end() || n.inputs.size() < 2 || (n.inputs.size() > 2 && !is_one(*n.inputs[2]->node())))
      return nullptr;
    Variable *a = as_int(n.inputs[0]), *b = a ? operand(n.inputs[1]) : nullptr;
    if (n.is("aten::rsub")) std::swap(a, b);
    return a && b ? computed(n, found->second, a, b) : nullptr;
  }

  /// The second operand may be a number as it is.
  Variable* operand(Variable* v) { return v->type()->is(TypeKind::Int) ? v : as_int(v); }

  Variable* computed(Node& n, const char* kind, Variable* a, Variable* b) {
    graph_.set_current(n.block());
    graph_.set_before(&n);
    Node* made = graph_.insert(kind, {a, b}, {simple_type(TypeKind::Int)});
    made->source = n.source;
    graph_.set_before(nullptr);
    return made->output();
  }

  /// A division that rounds down, or towards zero where nothing is below it.
  Variable* quotient(Node& n) {
    const Node* mode = n.inputs.size() == 3 ? n.inputs[2]->node() : nullptr;
    const Value* value = mode && mode->is("prim::Constant") ? mode->attribute("value") : nullptr;
    if (!value || !value->is_string()) return nullptr;
    Variable *a = as_int(n.inputs[0]), *b = a ? operand(n.inputs[1]) : nullptr;
    bool down = value->to_string() == "floor" ||
                (value->to_string() == "trunc" && b && is_not_negative(*a->node()) && is_not_negative(*b->node()));
    return b && down ? computed(n, "aten::floordiv", a, b) : nullptr;
  }

  static bool is_not_negative(const Node& n) {
    if (n.is("aten::size") || n.is("aten::numel") || n.is("aten::len")) return true;
    if (n.is("prim::Constant")) {
      const Value* value = n.attribute("value");
      return value && value->is_int() && value->to_int() >= 0;
    }
    bool closed = n.is("aten::add") || n.is("aten::mul") || n.is("aten::floordiv");
    return closed && is_not_negative(*n.inputs[0]->node()) && is_not_negative(*n.inputs[1]->node());
  }

  Variable* constant(Node& n) {
    const Value* value = n.attribute("value");
    if (!value || !value->is_tensor()) return nullptr;
    const Tensor& t = value->tensor_ref();
    if (t.dim() != 0 || t.dtype() != DType::Int64 || t.is_fake()) return nullptr;
    graph_.set_current(n.block());
    graph_.set_before(&n);
    // Read as it lies: a program may be made while it is captured, when a call would be recorded.
    Variable* number = graph_.insert_constant(Value(*t.data<int64_t>()));
    graph_.set_before(nullptr);
    return number;
  }

  static bool is_one(const Node& n) {
    const Value* value = n.is("prim::Constant") ? n.attribute("value") : nullptr;
    return value && value->is_int() && value->to_int() == 1;
  }

  Graph& graph_;
  std::unordered_map<Variable*, Variable*> known_;
};

}  // namespace

void simplify_numbers(Graph& graph) { Numbers(graph).run(); }

}  // namespace umbra::jit
