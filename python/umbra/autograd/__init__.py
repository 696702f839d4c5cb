"""Differentiation: gradients, custom functions, hooks, forward mode."""
import functools
import math
import warnings
from collections.abc import Mapping

from umbra import _C
from umbra._C import Tensor
from umbra._modules import lazy_submodules
from umbra._options import checked_bool
from umbra.autograd.function import Function, once_differentiable  # noqa: F401
from umbra.autograd.grad_mode import (  # noqa: F401
    enable_grad, inference_mode, is_multithreading_enabled, no_grad, set_grad_enabled, set_multithreading_enabled)
from umbra.overrides import handle_torch_function, has_torch_function, heard, is_tensor_like

__all__ = ["Function", "Variable", "backward", "detect_anomaly", "enable_grad", "grad", "inference_mode", "no_grad",
           "set_detect_anomaly", "set_grad_enabled", "set_multithreading_enabled"]



class _VariableType(type):
    def __instancecheck__(cls, value):
        return isinstance(value, Tensor)

    def __subclasscheck__(cls, other):
        return issubclass(other, Tensor)


class _Engine:
    """What runs backward passes."""

    @staticmethod
    def queue_callback(function):
        """Calls `function` when the backward pass that is running has ended."""
        _C._after_backward(function)


class Variable(metaclass=_VariableType):
    """The old name of Tensor; making one gives the same values, of which a gradient is required where that is asked for."""

    _execution_engine = _Engine()

    def __new__(cls, data=None, requires_grad=None, volatile=None):
        if volatile is not None:
            warnings.warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.", UserWarning, stacklevel=2)
        value = Tensor() if data is None else data
        return value.detach().requires_grad_(bool(requires_grad))


__getattr__ = lazy_submodules(__name__)


def _as_tuple(value):
    if value is None:
        return ()
    return (value,) if is_tensor_like(value) or isinstance(value, graph.GradientEdge) else tuple(value)


def _inputs_as_tuple(inputs, function):
    """The inputs of a pass: one, several, or those of a dict by name."""
    if type(inputs) is dict:
        return tuple(inputs.values())
    if isinstance(inputs, Mapping):
        raise TypeError(f"`inputs` argument to `{function}()` must be a dict, not {type(inputs).__name__}. Other Mapping types are not supported.")
    return _as_tuple(inputs)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=None,
         is_grads_batched=False, materialize_grads=False):
    """Gradients of the outputs with respect to the inputs, as a tuple, or as a dict where the inputs are one; `grad` of the inputs stays as it is.

        >>> x = torch.ones(2, requires_grad=True)
        >>> torch.autograd.grad((3 * x).sum(), x)
        (tensor([3., 3.]),)
    """
    if type(inputs) is dict:
        gradients = grad(outputs, tuple(inputs.values()), grad_outputs, retain_graph, create_graph, only_inputs, allow_unused, is_grads_batched,
                         materialize_grads)
        return dict(zip(inputs, gradients))
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other parts of "
                      "the graph, please use torch.autograd.backward.", FutureWarning, stacklevel=2)
    outputs, inputs = _as_tuple(outputs), _inputs_as_tuple(inputs, "grad")
    if has_torch_function((*outputs, *inputs)):
        return handle_torch_function(grad, (*outputs, *inputs), outputs, inputs, grad_outputs=grad_outputs, retain_graph=retain_graph,
                                     create_graph=create_graph, only_inputs=only_inputs, allow_unused=allow_unused, is_grads_batched=is_grads_batched,
                                     materialize_grads=materialize_grads)
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    for value in inputs:
        if not isinstance(value, (Tensor, graph.GradientEdge)):
            raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(value).__name__}")
    weights = _as_tuple(grad_outputs)
    _check_weights(weights)
    weights += (None,) * (len(outputs) - len(weights))
    retain_graph = create_graph if retain_graph is None else retain_graph
    allow_unused = materialize_grads if allow_unused is None else allow_unused

    def differentiate(weights):
        if any(isinstance(value, graph.GradientEdge) for value in (*outputs, *inputs)):
            return _grad_of_edges(outputs, inputs, weights, retain_graph, create_graph, allow_unused)
        if not outputs and allow_unused:
            return (None,) * len(inputs)
        return _C._autograd_grad(outputs, inputs, weights, retain_graph, create_graph, allow_unused)
    if is_grads_batched:
        _check_batched(outputs, weights)
    gradients = _of_each(differentiate, weights) if is_grads_batched else differentiate(weights)
    if materialize_grads:
        import umbra
        if any(g is None and isinstance(i, graph.GradientEdge) for g, i in zip(gradients, inputs)):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
        gradients = tuple(umbra.zeros_like(i, requires_grad=create_graph) if g is None else g for g, i in zip(gradients, inputs))
    return gradients


def _check_weights(weights):
    for weight in weights:
        if weight is not None and not isinstance(weight, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(weight).__name__}")


def _check_batched(outputs, weights):
    for i, (output, weight) in enumerate(zip(outputs, weights)):
        if isinstance(output, Tensor) and weight is not None and weight.shape[1:] != output.shape:
            raise RuntimeError(f"If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes of "
                               f"the remaining dimensions are expected to match the shape of corresponding output, but a mismatch was detected: "
                               f"grad_output[{i}] has a shape of {weight.shape[1:]} and output[{i}] has a shape of {output.shape}. If you only want "
                               "some tensors in `grad_output` to be considered batched, consider using vmap.")


def _grad_of_edges(outputs, inputs, weights, retain_graph, create_graph, allow_unused):
    """The same where outputs or inputs are places in the graph rather than tensors."""
    gradients = _C._autograd_grad_of_edges(outputs, inputs, _weights_of_edges(outputs, weights), retain_graph, create_graph)
    for i, gradient in enumerate(gradients):
        if gradient is None and not allow_unused:
            raise RuntimeError(f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set allow_unused=True if this is the "
                               "desired behavior.")
    return gradients


def _weights_of_edges(outputs, weights):
    """The gradients with which a pass begins: ones where a tensor of one element was given none."""
    import umbra
    weights = list(weights)
    for i, output in enumerate(outputs):
        of = output.node._input_metadata[output.output_nr] if isinstance(output, graph.GradientEdge) else output
        if weights[i] is not None:
            if tuple(weights[i].shape) != tuple(of.shape):
                raise RuntimeError(f"Mismatch in shape: grad_output[{i}] has a shape of {weights[i].shape} and output[{i}] has a shape of "
                                   f"{umbra.Size(of.shape)}.")
            if weights[i].dtype.is_complex != of.dtype.is_complex:
                raise RuntimeError("For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
                                   f"grad_output[{i}] has a dtype of {weights[i].dtype} and output[{i}] has a dtype of {of.dtype}.")
            continue
        if math.prod(of.shape) != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        weights[i] = umbra.ones(tuple(of.shape), dtype=of.dtype, device=of.device)
    return weights


def _of_each(differentiate, weights):
    """The gradients for each row of the weights, computed at once; None for what took no part."""
    from umbra.func.vmapping import vmap
    taking_part = []

    def one(*rows):
        rows = iter(rows)
        gradients = differentiate(tuple(None if w is None else next(rows) for w in weights))
        taking_part[:] = [g is not None for g in gradients]
        return tuple(g for g in gradients if g is not None)
    found = iter(vmap(one)(*(w for w in weights if w is not None)))
    return tuple(next(found) if takes_part else None for takes_part in taking_part)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Adds the gradients of `tensors` to `grad` of the leaves below them, or of `inputs` alone.

        >>> x = torch.ones(2, requires_grad=True)
        >>> torch.autograd.backward([(3 * x).sum()])
        >>> x.grad
        tensor([3., 3.])
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use "
                               "`grad_tensors`.")
        grad_tensors = grad_variables
    if _inside_transform():
        raise RuntimeError("backward() called inside a functorch transform. This is not supported, please use functorch.grad or functorch.vjp instead or "
                           "call backward() outside of functorch transforms.")
    tensors = _as_tuple(tensors)
    inputs = None if inputs is None else _inputs_as_tuple(inputs, "backward")
    wanted = inputs or ()
    asked = (*tensors, *wanted)
    if has_torch_function(asked):
        return handle_torch_function(backward, asked, tensors, grad_tensors=grad_tensors, retain_graph=retain_graph, create_graph=create_graph,
                                     inputs=inputs)
    if not tensors:
        return
    if inputs is not None and len(inputs) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    weights = _as_tuple(grad_tensors) if grad_tensors is not None else (None,) * len(tensors)
    _check_weights(weights)
    if len(weights) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(weights)} gradients")
    retain_graph = create_graph if retain_graph is None else retain_graph
    if any(isinstance(value, graph.GradientEdge) for value in asked):
        _C._autograd_backward_of_edges(tensors, wanted, _weights_of_edges(tensors, weights), retain_graph, create_graph)
    else:
        _C._autograd_backward(tensors, weights, retain_graph, create_graph, wanted)


class set_detect_anomaly:
    """Backward passes stop at the operator that first makes a nan: a switch, and a `with` block."""

    def __init__(self, mode, check_nan=True):
        self._before = _C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled()
        _C._set_anomaly_detection(checked_bool("set_anomaly_enabled", "enabled", mode), check_nan)

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        _C._set_anomaly_detection(*self._before)


class detect_anomaly:
    """The same for a `with` block alone."""

    def __init__(self, check_nan=True):
        self.check_nan = check_nan
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.", stacklevel=2)

    def __enter__(self):
        self._before = _C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled()
        _C._set_anomaly_detection(True, self.check_nan)

    def __exit__(self, *exception):
        _C._set_anomaly_detection(*self._before)


# ---- what Tensor has of it ----

def _backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


def _inside_transform():
    """Whether a transform runs; a trace of TorchScript is none, although it is a level, too."""
    return _C._level_count() > _C._jit_is_tracing()


def _refuse_inside_transform(method):
    if _inside_transform():
        perhaps = " (or perhaps using torch.autograd.functional.* APIs)" if method == "requires_grad_" else ""
        raise RuntimeError(f"You are attempting to call Tensor.{method}(){perhaps} inside of a function being transformed by a functorch transform. "
                           "This is unsupported, please attempt to use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call "
                           f"{method}() outside of a function being transformed instead.")


def _retain_grad(self):
    _refuse_inside_transform("retain_grad")
    _C._retain_grad(self)


def _requires_grad_(self, requires_grad=True):
    _refuse_inside_transform("requires_grad_")
    _C._requires_grad_(self, checked_bool("requires_grad_", "requires_grad", requires_grad))
    return self


def _register_hook(self, hook):
    from umbra.utils.hooks import handle_of
    return handle_of(_C._register_hook(self, hook))


def _register_post_accumulate_grad_hook(self, hook):
    from umbra.utils.hooks import handle_of
    return handle_of(_C._register_post_accumulate_grad_hook(self, hook))


def _add_method(name, method):
    """A method of tensors that a `__torch_function__` may take over."""
    method.__qualname__ = f"Tensor.{name}"  # what Python calls it where arguments are missing

    def call(self, *args, **kwargs):
        if _C._has_torch_function(self):
            from umbra.overrides import handle_torch_function
            return handle_torch_function(call, (self,), self, *args, **kwargs)
        return method(self, *args, **kwargs)
    functools.update_wrapper(call, method)
    call.__name__, call.__qualname__ = name, f"Tensor.{name}"
    setattr(Tensor, name, heard(call))


for _method in (_backward, _requires_grad_, _retain_grad, _register_hook, _register_post_accumulate_grad_hook):
    _add_method(_method.__name__[1:], _method)

from umbra.autograd import graph  # noqa: E402
from umbra.autograd.gradcheck import gradcheck, gradgradcheck  # noqa: E402, F401


def _profiler_enabled():
    """Whether a profile is being taken."""
    from umbra.autograd import profiler
    return bool(profiler._running)


def _disable_profiler():
    """Ends the profiles that are being taken."""
    from umbra.autograd import profiler
    for profile in list(profiler._running):
        profile.__exit__(None, None, None)
