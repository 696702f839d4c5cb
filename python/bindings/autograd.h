// Differentiation as Python sees it.
#pragma once

#include <vector>

#include "lock.h"
#include "umbra/autograd/autograd.h"

namespace umbra::python {

/// Attributes of Tensor: requires_grad, grad, grad_fn, is_leaf, data and the like.
void add_autograd_properties(std::vector<PyGetSetDef>& properties);

/// The object of a node, of a class named after it (MulBackward0); None for null.
PyObject* wrap_node(const IntrusivePtr<autograd::Node>& node);
/// The node behind an object, or null.
IntrusivePtr<autograd::Node> node_of_object(PyObject* object);

/// The context of a custom function's node, borrowed; null for other nodes.
PyObject* context_of(const autograd::Node& node);

/// A Python callable that C++ may copy and call from any thread.
class Callable {
 public:
  explicit Callable(nb::handle function) : function_(std::make_shared<Held>(function)) {}
  PyObject* get() const { return function_->object; }

 private:
  struct Held {
    PyObject* object;
    explicit Held(nb::handle h) : object(Py_NewRef(h.ptr())) {}
    ~Held() {
      if (!Py_IsInitialized()) return;
      WithLock lock;
      Py_DECREF(object);
    }
  };
  std::shared_ptr<Held> function_;
};

/// What Python's collector sees of a custom function's node that one tensor alone holds.
int visit_function(const autograd::Node* node, visitproc visit, void* arg);
void clear_function(autograd::Node* node);

void bind_autograd(nb::module_& m);
void bind_nodes(nb::module_& m);
void bind_autograd_function(nb::module_& m);

}  // namespace umbra::python
