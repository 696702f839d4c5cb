// What is known of tensors before anything runs: found by running nodes on fake tensors.

#include "jit/program.h"
#include "umbra/autograd/grad_mode.h"
#include "umbra/fake/fake_mode.h"
#include "umbra/generated/functions.h"
#include "umbra/jit/passes.h"

namespace umbra::jit {

namespace {

template <class F> void each_variable(Block& block, F&& visit) {
  for (const auto& v : block.inputs()) visit(*v);
  for (const auto& n : block.nodes()) {
    for (const auto& v : n->outputs()) visit(*v);
    for (const auto& inner : n->blocks()) each_variable(*inner, visit);
  }
}

bool is_complete(const TypePtr& type) {
  const TensorDetails& d = type->tensor;
  return type->is(TypeKind::Tensor) && d.dtype && d.sizes && d.device;
}

bool same_details(const TypePtr& a, const TypePtr& b) {
  const TensorDetails &x = a->tensor, &y = b->tensor;
  return x.dtype == y.dtype && x.sizes == y.sizes && x.strides == y.strides && x.device == y.device &&
         x.requires_grad == y.requires_grad;
}

class Shapes {
 public:
  explicit Shapes(Graph& graph) : graph_(graph), mode_(FakeOptions{.allow_non_fake_inputs = true}) {}

  void run() {
    auto scope = mode_.enter();
    for (const auto& v : graph_.block().inputs()) know(*v);
    visit(graph_.block());
  }

 private:
  /// The value that stands for a tensor of which all is known.
  void know(Variable& v) {
    values_.erase(&v);
    if (!is_complete(v.type())) return;
    const TensorDetails& d = v.type()->tensor;
    Tensor made = d.strides ? empty_strided(*d.sizes, *d.strides, {.dtype = *d.dtype, .device = *d.device})
                            : empty(*d.sizes, {.dtype = *d.dtype, .device = *d.device});
    if (d.requires_grad.value_or(false)) made.requires_grad_();
    values_[&v] = Value(made);
  }

  void forget(Variable& v) {
    values_.erase(&v);
    v.set_type(without_details(v.type()));
  }

  void give(Variable& v, const Value& value) {
    values_[&v] = value;
    v.set_type(described(value, v.type()));
  }

  static TypePtr described(const Value& value, const TypePtr& type) {
    if (value.is_tensor() && type->is(TypeKind::Tensor)) return tensor_type_of(value.tensor_ref());
    if (!value.is_list() || !type->is(TypeKind::Tuple) || value.list().size() != type->elements.size()) return type;
    auto out = std::make_shared<Type>(*type);
    for (size_t i = 0; i < out->elements.size(); ++i) out->elements[i] = described(value.list()[i], type->elements[i]);
    return out;
  }

  void visit(Block& block) {
    for (const auto& n : block.nodes()) visit(*n);
  }

  void visit(Node& n) {
    if (n.is("prim::Constant")) {
      const Value* value = n.attribute("value");
      if (!n.callee) values_[n.output()] = value ? *value : Value();
      return;
    }
    if (n.is("prim::If")) return visit_branch(n);
    if (n.is("prim::Loop")) return visit_loop(n);
    std::vector<Value> inputs;
    for (const Variable* v : n.inputs)
      if (auto found = values_.find(v); found != values_.end()) inputs.push_back(found->second);
    bool runs = inputs.size() == n.inputs.size() && n.blocks().empty() && !n.outputs().empty() &&
                (n.op || !n.has_side_effects());
    try {
      if (runs) return give_all(n, run_node(n, std::move(inputs)));
    } catch (const Error&) {  // its shape depends on data, or it fails when the program runs
    }
    for (const auto& v : n.outputs()) forget(*v);
  }

  void give_all(Node& n, const std::vector<Value>& results) {
    for (size_t i = 0; i < results.size(); ++i) give(*n.output(i), results[i]);
  }

  void visit_branch(Node& n) {
    for (const auto& inner : n.blocks()) visit(*inner);
    for (size_t i = 0; i < n.outputs().size(); ++i) {
      const TypePtr &yes = n.blocks()[0]->outputs[i]->type(), &no = n.blocks()[1]->outputs[i]->type();
      forget(*n.output(i));
      bool same = yes->is(TypeKind::Tensor) && no->is(TypeKind::Tensor) && same_details(yes, no);
      if (!same || !n.output(i)->type()->is(TypeKind::Tensor)) continue;
      n.output(i)->set_type(yes);
      know(*n.output(i));
    }
  }

  /// What a turn changes is not known in the turns after it.
  void visit_loop(Node& n) {
    Block& body = *n.blocks()[0];
    auto carried = [&](size_t i) -> Variable& { return *body.input(i + 1); };
    for (size_t i = 0; i < n.outputs().size(); ++i) {
      if (carried(i).type()->is(TypeKind::Tensor)) carried(i).set_type(n.inputs[i + 2]->type());
      know(carried(i));
    }
    for (bool changed = true; changed;) {
      visit(body);
      changed = false;
      for (size_t i = 0; i < n.outputs().size(); ++i) {
        bool known = carried(i).type()->is(TypeKind::Tensor) && carried(i).type()->tensor.dtype;
        if (!known || same_details(carried(i).type(), body.outputs[i + 1]->type())) continue;
        forget(carried(i));
        changed = true;
      }
    }
    for (size_t i = 0; i < n.outputs().size(); ++i) {
      forget(*n.output(i));
      if (!carried(i).type()->is(TypeKind::Tensor)) continue;
      n.output(i)->set_type(carried(i).type());
      know(*n.output(i));
    }
  }

  Graph& graph_;
  FakeMode mode_;
  std::unordered_map<const Variable*, Value> values_;
};

}  // namespace

void propagate_shapes(Graph& graph) { Shapes(graph).run(); }

void erase_shapes(Graph& graph) {
  each_variable(graph.block(), [](Variable& v) { v.set_type(without_details(v.type())); });
}

void set_input_shapes(Graph& graph, const std::vector<Value>& examples, bool with_grad) {
  const auto& inputs = graph.block().inputs();
  check(examples.size() == inputs.size(), "expected ", inputs.size(), " inputs, but got ", examples.size());
  for (size_t i = 0; i < examples.size(); ++i) {
    if (!examples[i].is_tensor()) continue;
    auto type = std::make_shared<Type>(*tensor_type_of(examples[i].tensor_ref()));
    type->tensor.requires_grad = with_grad && examples[i].tensor_ref().requires_grad();
    inputs[i]->set_type(type);
  }
}

}  // namespace umbra::jit
