"""Parameter: a tensor that modules register as their own."""
import copy

from umbra import _C
from umbra._C import Tensor


class _ParameterMeta(type(Tensor)):
    """Tensors of other classes may be marked as parameters: fake ones, wrappers."""

    def __instancecheck__(cls, instance):
        if super().__instancecheck__(instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    def __new__(cls, data=None, requires_grad=True):
        import umbra
        if data is None:
            data = umbra.empty(0)
        if type(data) is Tensor or type(data) is Parameter or issubclass(cls, type(data)):
            return _C._make_subclass(cls, data, requires_grad)
        marked = data.detach().requires_grad_(requires_grad)
        if type(marked) is not type(data):
            raise RuntimeError(f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an "
                               f"instance of the same type, but return type {type(marked).__name__} was found instead.")
        marked._is_param = True
        return marked

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.data.clone(), self.requires_grad)
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
        memo[id(self)] = result
        return result

    def __reduce_ex__(self, protocol):
        from collections import OrderedDict

        from umbra import _utils
        state = _utils._get_obj_state(self)
        if not state:
            return _utils._rebuild_parameter, (self.data, self.requires_grad, OrderedDict())
        return _utils._rebuild_parameter_with_state, (self.data, self.requires_grad, OrderedDict(), state)

    __torch_function__ = _C._disabled_torch_function_impl


class Buffer(Tensor):
    """A tensor that modules register as a buffer."""

    def __new__(cls, data=None, *, persistent=True):
        import umbra
        if data is None:
            data = umbra.empty(0)
        buffer = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer

    __torch_function__ = _C._disabled_torch_function_impl
