"""Parameter: a tensor that modules register as their own."""

from umbra import _C
from umbra._C import Tensor


class _ParameterMeta(type(Tensor)):
    """Tensors of other classes may be marked as parameters: fake ones, wrappers."""

    def __instancecheck__(cls, instance):
        if super().__instancecheck__(instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that is registered with the module it is an attribute of, and requires gradients."""

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


# ---- tensors whose sizes are not known yet ----

class UninitializedTensorMixin:
    """A parameter or buffer of a lazy module: it has a type and a device, and sizes when `materialize` is called."""

    # What can be done with it before that.
    _allowed = ("is_floating_point", "half", "float", "double", "char", "short", "int", "long", "cuda", "cpu", "to", "get_device", "detach",
                "requires_grad_", "bfloat16", "type", "_has_compatible_shallow_copy_type", "__hash__", "__repr__", "__eq__", "as_subclass",
                "__reduce_ex__", "__deepcopy__")

    def materialize(self, shape, device=None, dtype=None):
        """Gives the tensor its sizes, uninitialised memory, and its final class."""
        import umbra
        self.data = umbra.empty(shape, device=device or self.data.device, dtype=dtype or self.data.dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        raise RuntimeError("Can't access the shape of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` when "
                           "trying to load an uninitialized parameter into an initialized one. Call `forward` to initialize the parameters "
                           "before accessing their attributes.")

    def share_memory_(self):
        raise RuntimeError("Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters before calling "
                           "`module.share_memory()`.")

    def __repr__(self):
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol):
        return type(self), (self.requires_grad,)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in cls._allowed or name in ("__get__", "__set__", "__delete__"):  # attributes look for sizes by `shape`, which refuses
            return super().__torch_function__(func, types, args, kwargs or {})
        raise ValueError(f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a `LazyModule` or explicitly "
                         f"manipulating `torch.nn.parameter.{cls.__name__}` objects. When using LazyModules Call `forward` with a dummy batch to "
                         "initialize the parameters before calling torch functions")


def is_lazy(param):
    """Whether a parameter has no sizes yet."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter of a lazy module before its first call."""
    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        import umbra
        return _C._make_subclass(cls, umbra.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer of a lazy module before its first call."""
    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        import umbra
        made = _C._make_subclass(cls, umbra.empty(0, device=device, dtype=dtype), requires_grad)
        made.persistent, made._is_buffer = persistent, True
        return made


class _BufferMeta(type(Tensor)):
    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that modules register as a buffer: a plain one, with a mark."""

    def __new__(cls, data=None, *, persistent=True):
        import umbra
        if data is None:
            data = umbra.empty(0)
        buffer = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer

    __torch_function__ = _C._disabled_torch_function_impl
