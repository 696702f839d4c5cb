"""Helpers: pytrees, dispatch modes, devices."""
import copyreg
import weakref

from umbra import _C
from umbra._modules import lazy_submodules


def set_module(obj, mod):
    """Sets the module that a class or function says it is of."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def swap_tensors(t1, t2):
    """Exchanges what two tensors are, each with its attributes and class; who holds one of the objects has the other tensor from here on."""
    for name, tensor in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = set(copyreg._slotnames(type(t1)))
    if slots != set(copyreg._slotnames(type(t2))):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    for name, tensor in (("t1", t1), ("t2", t2)):
        _check_held_once(tensor, name)
    t1.__class__, t2.__class__ = type(t2), type(t1)
    for slot in slots:
        _exchange_attribute(t1, t2, slot)
    _C._exchange_tensors(t1, t2)


def _check_held_once(tensor, name):
    """Nobody but the object may hold a tensor that is swapped, save an accumulator of gradients, which then refuses to run."""
    count = tensor._use_count()
    if count == 1:
        return
    error = RuntimeError(f"Expected use_count of {name} to be 1 or 2 with an AccumulateGrad node but got {count} make sure you are not holding "
                         "references to the tensor in other places.")
    if count > 2 or not tensor.is_leaf:
        raise error
    from umbra.autograd.graph import get_gradient_edge
    accumulator = get_gradient_edge(tensor).node
    if tensor._use_count() != 2:  # the accumulator was made for the question, so the other holder is something else
        raise error
    accumulator.register_prehook(_refuse_gradient_of_swapped)


def _refuse_gradient_of_swapped(gradients):
    raise RuntimeError("Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when you try to run backward on a tensor "
                       "that was swapped. For a module m with `torch.__future__.set_swap_module_params_on_conversion(True)` you should not change the "
                       "device or dtype of the module (e.g. `m.cpu()` or `m.half()`) between running forward and backward. To resolve this, please only "
                       "change the device/dtype before running forward (or after both forward and backward).")


def _exchange_attribute(first, second, name):
    """Exchanges a slot, which either object may not have set."""
    found = [(owner, getattr(owner, name)) for owner in (first, second) if hasattr(owner, name)]
    for owner, _ in found:
        delattr(owner, name)
    for owner, value in found:
        setattr(second if owner is first else first, name, value)


__getattr__ = lazy_submodules(__name__)
