"""Modes and tensor classes that see every operator below autograd (`__torch_dispatch__`)."""
import contextlib

from umbra import _C
from umbra._C import Tensor
from umbra._options import not_built


class TorchDispatchMode:
    """Sees every operator while it is entered; inside its handler it is off.

        class Log(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                print(func)
                return func(*args, **(kwargs or {}))
    """

    def __init__(self, _dispatch_key=None):
        not_built("TorchDispatchMode", _dispatch_key=(_dispatch_key, None))

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _C._push_dispatch_mode(self)
        return self

    def __exit__(self, *exception):
        _C._pop_dispatch_mode(self)

    @classmethod
    def is_infra_mode(cls):
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _machinery():
    """Stand-ins and captures that are under way, in the order in which torch's stack has them below users' modes."""
    from umbra._guards import active_fake_mode
    from umbra.fx.experimental.proxy_tensor import ProxyTorchDispatchMode
    fake, tracer = active_fake_mode(), _C._active_tracer("Proxy")
    return ([] if fake is None else [fake]) + ([] if tracer is None else [ProxyTorchDispatchMode(tracer)])


@contextlib.contextmanager
def _disable_current_modes():
    modes = [*_C._dispatch_modes(), *_machinery()]
    with _C._NoModes():
        yield modes


@contextlib.contextmanager
def _pop_mode_temporarily(_=None):
    """Without the mode that was entered last, which it gives."""
    mode = _get_current_dispatch_mode()
    if mode is None:
        raise AssertionError("no mode is entered")
    mode.__exit__(None, None, None)
    try:
        yield mode
    finally:
        mode.__enter__()


def _get_current_dispatch_mode():
    return next(reversed(_get_current_dispatch_mode_stack()), None)


def _get_current_dispatch_mode_stack():
    return [*_machinery(), *_C._dispatch_modes()]


def is_in_torch_dispatch_mode(include_infra_modes=True):
    """Whether a mode is entered; without `include_infra_modes`, one that does not say of itself that it is machinery."""
    if include_infra_modes and (_machinery() or _C._active_tracer("PreProxy") is not None):
        return True
    return any(include_infra_modes or not type(mode).is_infra_mode() for mode in _C._dispatch_modes())


def is_traceable_wrapper_subclass(value):
    """A wrapper around tensors that can be taken apart and put together again."""
    cls = type(value)
    return (isinstance(value, Tensor) and cls is not Tensor and hasattr(cls, "__tensor_flatten__")
            and hasattr(cls, "__tensor_unflatten__"))


def is_traceable_wrapper_subclass_type(cls):
    return issubclass(cls, Tensor) and cls is not Tensor and hasattr(cls, "__tensor_flatten__")


def transform_subclass(value, callback, outer_size=None, outer_stride=None):
    """The wrapper rebuilt around `callback(attribute, inner tensor)`."""
    names, context = value.__tensor_flatten__()
    inner = {name: callback(name, getattr(value, name)) for name in names}
    return type(value).__tensor_unflatten__(inner, context, outer_size if outer_size is not None else value.size(),
                                            outer_stride if outer_stride is not None else value.stride())


def return_and_correct_aliasing(func, args, kwargs, out):
    """What a wrapper's handler returns: arguments that the operator wrote or returned as they are come out as themselves, and views lie in the memory of
    what they were taken of."""
    schema = func._schema
    named = {argument.name: value for argument, value in zip(schema.arguments, args)} | (kwargs or {})

    def argument_of(result):
        """The argument that a result shares memory with, if it is one tensor."""
        if result.alias_info is None:
            return None
        return next((named[a.name] for a in schema.arguments
                     if a.name in named and a.alias_info is not None and a.alias_info.before_set == result.alias_info.before_set), None)

    results = out if isinstance(out, (tuple, list)) else (out,)
    if not any(result.alias_info is not None and result.alias_info.is_write for result in schema.returns):
        _share_memory(schema, argument_of, out)
        return out
    if any(tag.name == "inplace_view" for tag in func.tags):  # the handler changed what is inside; the wrapper's own sizes follow
        with _C._DisableTorchDispatch(below_captures=True):
            func(*args, **(kwargs or {}))
    corrected = [argument_of(result) if result.alias_info is not None and result.alias_info.is_write else value
                 for result, value in zip(schema.returns, results)]
    return type(out)(corrected) if isinstance(out, (tuple, list)) else corrected[0]


def _share_memory(schema, argument_of, out):
    values = [out] if len(schema.returns) == 1 else out or ()
    for result, value in zip(schema.returns, values):
        source = argument_of(result)
        for tensor in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(source, Tensor) and isinstance(tensor, Tensor):
                _C._lie_in_memory_of(tensor, source)
