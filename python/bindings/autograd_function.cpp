// Custom functions written in Python: their forward and backward as callables behind a C++ node.
#include "autograd.h"
#include "tensor_type.h"
#include "umbra/autograd/function.h"

namespace umbra::python {

namespace {

using autograd::FunctionContext;
using autograd::FunctionNode;
using autograd::Gradients;

std::vector<Tensor> tensors_of(nb::handle sequence) {
  std::vector<Tensor> out;
  for (nb::handle item : nb::borrow<nb::sequence>(sequence))
    out.push_back(item.is_none() ? Tensor() : expect_tensor(item.ptr(), "autograd.Function"));
  return out;
}

nb::object list_of(const std::vector<Tensor>& tensors) {
  nb::list out;
  for (const Tensor& t : tensors) out.append(nb::steal(wrap(t)));
  return out;
}

/// Turns `callable(tensors) -> tensors` into the node's backward or jvp.
std::function<std::vector<Tensor>(FunctionContext&, std::vector<Tensor>)> with_lists(const Callable& callable) {
  return [function = callable](FunctionContext&, std::vector<Tensor> given) {
    WithLock lock;
    return tensors_of(nb::handle(function.get())(list_of(given)));
  };
}

/// The node of a custom function that was written in Python.
class PythonFunctionNode final : public FunctionNode {
 public:
  PythonFunctionNode(const std::string& name, const Callable& backward, const std::optional<Callable>& jvp,
                     nb::handle context)
      : FunctionNode(name, with_lists(backward), jvp ? with_lists(*jvp) : Jvp()),
        context_(context),
        functions_{backward} {
    if (jvp) functions_.push_back(*jvp);
  }
  /// Null once the node was let go.
  PyObject* python_context() const { return context_ ? context_->get() : nullptr; }
  int visit(visitproc visit, void* arg) const {
    int stop = context_ ? visit(context_->get(), arg) : 0;
    for (const Callable& function : functions_)
      if (!stop) stop = visit(function.get(), arg);
    return stop;
  }
  void let_go() { release_resources(); }

 protected:
  /// Python's context refers to the node, weakly: it has to go with the last who holds the node, not with its memory.
  void release_resources() override {
    std::optional<Callable> context = std::exchange(context_, std::nullopt);
    std::vector<Callable> functions = std::exchange(functions_, {});
    FunctionNode::release_resources();
  }

 private:
  std::optional<Callable> context_;
  std::vector<Callable> functions_;
};

/// A call's context for Python, which may keep it longer than the node lives.
struct FunctionState {
  WeakPtr<FunctionNode> node;
  IntrusivePtr<FunctionNode> alive() const {
    auto pointer = node.lock();
    check(static_cast<bool>(pointer), "the context of a custom function was used after its graph was freed");
    return pointer;
  }
};

nb::object apply(const std::string& name, nb::handle inputs, nb::handle forward, nb::handle backward, nb::handle jvp,
                 nb::handle context, bool knows_levels) {
  std::optional<Callable> tangents;
  if (!jvp.is_none()) tangents = Callable(jvp);
  auto node = make_counted<PythonFunctionNode>(name, Callable(backward), tangents, context);
  nb::object state = nb::cast(FunctionState{WeakPtr<FunctionNode>(node)});
  std::vector<Tensor> outputs = autograd::apply_function(
      node, tensors_of(inputs), [&](FunctionContext&) { return tensors_of(forward(state)); }, knows_levels);
  nb::object results = list_of(outputs);
  for (const Tensor& output : outputs)
    if (output.defined()) track(output);  // the context may refer to it
  return results;
}

}  // namespace

PyObject* context_of(const autograd::Node& node) {
  auto* function = dynamic_cast<const PythonFunctionNode*>(&node);
  return function ? function->python_context() : nullptr;
}

int visit_function(const autograd::Node* node, visitproc visit, void* arg) {
  auto* function = node && node->use_count() == 1 ? dynamic_cast<const PythonFunctionNode*>(node) : nullptr;
  return function ? function->visit(visit, arg) : 0;
}
void clear_function(autograd::Node* node) {
  if (auto* function = node && node->use_count() == 1 ? dynamic_cast<PythonFunctionNode*>(node) : nullptr)
    function->let_go();
}

void bind_autograd_function(nb::module_& m) {
  m.def("_apply_function", &apply, nb::arg("name"), nb::arg("inputs"), nb::arg("forward"), nb::arg("backward"),
        nb::arg("jvp").none(), nb::arg("context"), nb::arg("knows_levels") = false);
  nb::class_<FunctionState>(m, "_FunctionState")
      .def("save_for_backward",
           [](FunctionState& s, nb::handle tensors) { s.alive()->context().save_for_backward(tensors_of(tensors)); })
      .def("saved_tensors",
           [](FunctionState& s) {
             nb::object saved = list_of(s.alive()->context().saved_tensors());
             return owned(PyList_AsTuple(saved.ptr()));
           })
      .def("tensors_to_save", [](FunctionState& s) { return list_of(s.alive()->context().tensors_to_save()); })
      .def("mark_dirty",
           [](FunctionState& s, nb::handle tensors) { s.alive()->context().mark_dirty(tensors_of(tensors)); })
      .def("mark_non_differentiable",
           [](FunctionState& s, nb::handle tensors) {
             s.alive()->context().mark_non_differentiable(tensors_of(tensors));
           })
      .def("set_materialize_grads",
           [](FunctionState& s, bool value) { s.alive()->context().set_materialize_grads(value); })
      .def("set_materialize_non_diff_grads",
           [](FunctionState& s, bool value) { s.alive()->context().set_materialize_non_diff_grads(value); })
      .def("node", [](FunctionState& s) { return nb::steal(wrap_node(s.alive())); })
      .def("needs_input_grad", [](FunctionState& s, size_t i) { return s.alive()->context().needs_input_grad(i); });
}

}  // namespace umbra::python
