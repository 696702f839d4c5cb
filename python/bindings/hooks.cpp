#include "hooks.h"

#include "arguments.h"
#include "autograd/meta.h"
#include "core/type_text.h"
#include "lock.h"
#include "tensor_type.h"

namespace umbra::python {

using autograd::Gradients;

nb::object tuple_of(const Gradients& gradients) {
  nb::object out = owned(PyTuple_New(static_cast<Py_ssize_t>(gradients.size())));
  for (size_t i = 0; i < gradients.size(); ++i)
    PyTuple_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), checked(wrap(gradients[i])));
  return out;
}

namespace {

std::string name_of(const Callable& hook) {
  nb::object name = nb::getattr(nb::handle(hook.get()), "__name__", nb::none());
  return name.is_none() ? "<unknown>" : str_of(name.ptr());
}

/// The tensor that a hook gave in the place of another; undefined for None.
Tensor replacement(nb::handle given, const Tensor& before, const Callable& hook) {
  if (given.is_none()) return {};
  if (!is_tensor(given.ptr()))
    fail<TypeError>("expected Variable, but hook returned '", short_type_name(Py_TYPE(given.ptr())), "'");
  const Tensor& changed = tensor_of(given.ptr());
  check(before.defined(), "can't replace a None gradient with a non-None value");
  check(changed.dtype() == before.dtype() && changed.device() == before.device(), "hook '", name_of(hook),
        "' has changed the type of value (was ", type_text(before), " got ", type_text(changed), ")");
  check(changed.sym_sizes() == before.sym_sizes(), "hook '", name_of(hook), "' has changed the size of value");
  return changed;
}

/// What a hook on a node gave for all of `before`; empty for None.
Gradients replacements(nb::handle result, const Gradients& before, const Callable& hook, bool takes_one) {
  if (result.is_none()) return {};
  nb::object given = nb::borrow(result);
  if (takes_one && is_tensor(result.ptr())) given = owned(PyTuple_Pack(1, result.ptr()));
  if (!PyTuple_Check(given.ptr()))
    fail<TypeError>("expected tuple, but hook returned '", short_type_name(Py_TYPE(given.ptr())), "'");
  size_t count = static_cast<size_t>(PyTuple_GET_SIZE(given.ptr()));
  check(count == before.size(), "hook '", name_of(hook), "' has returned an incorrect number of values (got ", count,
        ", but expected ", before.size(), ")");
  Gradients out;
  for (size_t i = 0; i < count; ++i)
    out.push_back(replacement(PyTuple_GET_ITEM(given.ptr(), static_cast<Py_ssize_t>(i)), before[i], hook));
  return out;
}

// Named types, so that the collector finds the function behind a hook.
struct OnGradient {
  Callable function;
  Tensor operator()(const Tensor& gradient) const {
    WithLock lock;
    return replacement(nb::handle(function.get())(nb::steal(wrap(gradient))), gradient, function);
  }
};

struct OnLeaf {
  Callable function;
  void operator()(const Tensor& leaf) const {
    WithLock lock;
    nb::object given = nb::steal(wrap(leaf)), result = nb::handle(function.get())(given);
    // The tensor itself is what an in-place operator at the end of a lambda gives.
    if (result.is_none() || result.is(given)) return;
    if (!is_tensor(result.ptr()))
      fail<TypeError>("expected Variable, but hook returned '", short_type_name(Py_TYPE(result.ptr())), "'");
    fail("Tensor post accumulate grad hooks should return None.");
  }
};

struct BeforeNode {
  Callable function;
  Gradients operator()(const Gradients& incoming) const {
    WithLock lock;
    return replacements(nb::handle(function.get())(tuple_of(incoming)), incoming, function, true);
  }
};

struct AfterNode {
  Callable function;
  Gradients operator()(const Gradients& given, const Gradients& incoming) const {
    WithLock lock;
    nb::object result = nb::handle(function.get())(tuple_of(given), tuple_of(incoming));
    return replacements(result, given, function, given.size() == 1);
  }
};

/// The function of a hook that is written in Python; null for any other.
template <class H, class F> PyObject* function_behind(const F& hook) {
  const H* known = hook.template target<H>();
  return known ? known->function.get() : nullptr;
}

}  // namespace

autograd::TensorHook tensor_hook(nb::handle function) { return OnGradient{Callable(function)}; }
std::function<void(const Tensor&)> post_accumulate_hook(nb::handle function) { return OnLeaf{Callable(function)}; }

int visit_history(const TensorImpl* tensor, visitproc visit, void* arg) {
  const autograd::AutogradMeta* meta = autograd::meta_of(tensor);
  int stop = meta ? visit_function(meta->grad_fn.get(), visit, arg) : 0;
  if (!meta || !meta->rare) return stop;
  auto show = [&](const auto* hook) {
    if (hook && !stop) stop = visit(hook->function.get(), arg);
  };
  meta->rare->hooks.each([&](const autograd::TensorHook& hook) { show(hook.target<OnGradient>()); });
  meta->rare->post_accumulate.each([&](const auto& hook) { show(hook.template target<OnLeaf>()); });
  return stop;
}

void clear_history(TensorImpl* tensor) {
  autograd::AutogradMeta* meta = autograd::meta_of(tensor);
  if (meta) clear_function(meta->grad_fn.get());
  if (!meta || !meta->rare) return;
  auto hooks = std::exchange(meta->rare->hooks, {});
  auto post_accumulate = std::exchange(meta->rare->post_accumulate, {});
}

autograd::NodePreHook node_pre_hook(nb::handle function) { return BeforeNode{Callable(function)}; }
autograd::NodePostHook node_post_hook(nb::handle function) { return AfterNode{Callable(function)}; }

int visit_node(const autograd::Node& node, visitproc visit, void* arg) {
  int stop = 0;
  auto show = [&](PyObject* function) {
    if (function && !stop) stop = visit(function, arg);
  };
  node.each_hook([&](autograd::Node::AnyHook hook) {
    if (auto* on = std::get_if<const autograd::TensorHook*>(&hook)) show(function_behind<OnGradient>(**on));
    if (auto* on = std::get_if<const autograd::NodePreHook*>(&hook)) show(function_behind<BeforeNode>(**on));
    if (auto* on = std::get_if<const autograd::NodePostHook*>(&hook)) show(function_behind<AfterNode>(**on));
  });
  return stop;
}

autograd::SavedTensorHooks saved_tensor_hooks(nb::handle pack, nb::handle unpack) {
  return {[function = Callable(pack)](const Tensor& t) {
            WithLock lock;
            nb::object packed = nb::handle(function.get())(nb::steal(wrap(t)));
            return Value::object(make_counted<PythonObject>(packed.ptr()));
          },
          [function = Callable(unpack)](const Value& v) {
            WithLock lock;
            nb::object tensor = nb::handle(function.get())(nb::steal(wrap(v)));
            check<TypeError>(is_tensor(tensor.ptr()),
                             "Output of saved tensor unpack_hook expected to be a Tensor but got result of type ",
                             short_type_name(Py_TYPE(tensor.ptr())));
            return tensor_of(tensor.ptr());
          }};
}

}  // namespace umbra::python
