"""How Module.to, load_state_dict and their like change a parameter: in its place, by a new one, or by torch.utils.swap_tensors."""
import umbra
from umbra._subclasses.fake_tensor import FakeTensor
from umbra.nn.parameter import Parameter
from umbra.utils._python_dispatch import is_traceable_wrapper_subclass


def _can_become(tensor, other):
    """Whether a conversion changes a tensor in its place."""
    return umbra._has_compatible_shallow_copy_type(tensor, other) and not umbra.__future__.get_overwrite_module_params_on_conversion()


def convert_parameter(parameter, changed, fn):
    """The parameter, with its gradient converted too: the same object where it can become what `fn` made of it."""
    gradient = parameter.grad
    result = parameter
    if not _can_become(parameter, changed):
        result = Parameter(changed, parameter.requires_grad)
    elif changed is not parameter:
        parameter.data = changed.detach()
    if gradient is None:
        return result
    with umbra.no_grad():
        changed_gradient = fn(gradient)
    if result.grad is gradient and _can_become(gradient, changed_gradient):
        gradient.data = changed_gradient
    else:
        result.grad = changed_gradient.requires_grad_(gradient.requires_grad)
    return result


def is_exchanged(parameter, changed):
    """Whether a conversion exchanges the parameter with what it became: where that is asked for, and for classes that hold tensors of their own."""
    return (umbra.__future__.get_swap_module_params_on_conversion() or is_traceable_wrapper_subclass(changed)
            or isinstance(parameter, FakeTensor))


def exchange_parameter(path, parameter, changed, fn):
    """Converts a parameter and its gradient by torch.utils.swap_tensors."""
    gradient, parameter.grad = parameter.grad, None  # a tensor that holds its gradient could not have that exchanged
    try:
        umbra.utils.swap_tensors(parameter, Parameter(changed, parameter.requires_grad))
    except Exception as error:
        parameter.grad = gradient
        raise RuntimeError(f"_apply(): Couldn't swap {path}") from error
    if gradient is None:
        return
    with umbra.no_grad():
        changed_gradient = fn(gradient)
    changed_gradient.requires_grad_(gradient.requires_grad)
    try:
        umbra.utils.swap_tensors(gradient, changed_gradient)
    except Exception as error:
        raise RuntimeError(f"_apply(): Couldn't swap {path}.grad") from error
    parameter.grad = gradient


def load_by_exchange(value, given, assign):
    """Exchanges a parameter or buffer with what `module_load` makes of the given tensor for it."""
    loaded = value.module_load(given, assign=assign)
    if loaded is given or loaded is value:
        raise RuntimeError("module_load returned one of self or other, please .detach() the result if returning one of the inputs in module_load")
    if isinstance(value, Parameter):
        loaded = loaded.requires_grad_(value.requires_grad) if isinstance(loaded, Parameter) else Parameter(loaded, value.requires_grad)
    umbra.utils.swap_tensors(value, loaded)
