"""Functions with a gradient of the user's own.

    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            x, = ctx.saved_tensors
            return grad * 2 * x

    y = Square.apply(x)
"""
import functools
import inspect
import warnings

from umbra import _C
from umbra._C import Tensor


class FunctionCtx:
    """What forward and backward of one call share; other values may simply be set as attributes."""

    def save_for_backward(self, *tensors):
        if not any(getattr(self, "needs_input_grad", (True,))):  # there is no way back, and nobody looks at what was given
            tensors = [value if isinstance(value, Tensor) else None for value in tensors]
        for i, value in enumerate(tensors):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"save_for_backward can only save variables, but argument {i} is of type {type(value).__name__}")
        self._state.save_for_backward(tensors)

    def save_for_forward(self, *tensors):
        self._saved_for_forward = tensors

    _saved_for_forward, _inside_jvp = None, False

    def mark_dirty(self, *tensors):
        self._marks = (*self._marks, *map(id, tensors))
        self._state.mark_dirty(tensors)

    def mark_non_differentiable(self, *tensors):
        self._marks = (*self._marks, *map(id, tensors))
        self._state.mark_non_differentiable(tensors)

    _marks = ()  # tensors that were written, or have no gradient

    def _is_marked(self, tensor):
        return id(tensor) in self._marks

    def set_materialize_grads(self, value):
        self._state.set_materialize_grads(value)

    def _set_materialize_non_diff_grads(self, value):
        if not isinstance(value, bool):
            raise TypeError("set_materialize_non_diff_grads received an invalid combination of arguments - got (), but expected (bool)")
        self._state.set_materialize_non_diff_grads(value)

    # PyTorch's attributes for the same, which can be set and not read.
    materialize_grads = property(fset=lambda self, value: self.set_materialize_grads(value))
    _materialize_non_diff_grads = property(fset=_set_materialize_non_diff_grads)

    @property
    def saved_tensors(self):
        if self._inside_jvp:
            return self._saved_for_forward or ()
        return self._state.saved_tensors()

    @property
    def saved_variables(self):
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    @property
    def to_save(self):
        return tuple(self._state.tensors_to_save())

    def __getattr__(self, name):
        # The context stands for the node of its call, and shows what the node has.
        if name in _OF_THE_NODE:
            return getattr(self._state.node(), name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


_OF_THE_NODE = ("metadata", "name", "next_functions", "register_hook", "register_prehook", "_sequence_nr")


BackwardCFunction = FunctionCtx


class Function:
    """Base of functions with a gradient of their own: static methods forward(ctx, ...) and backward(ctx, *grads); called by apply.

        >>> class Clipped(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x.clone()
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad.clamp(-1, 1)
        >>> x = torch.ones(2, requires_grad=True)
        >>> (5 * Clipped.apply(x)).sum().backward()
        >>> x.grad
        tensor([1., 1.])
    """
    generate_vmap_rule = False

    @staticmethod
    def forward(*args, **kwargs):
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError("You must implement either the backward or vjp method for your custom autograd.Function to use it "
                                  "with backward mode AD.")

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    def __init__(self, *__args, **__kwargs):
        warnings.warn(f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke them on the class "
                      "itself. Instantiating an autograd function will raise an error in a future version of PyTorch.", DeprecationWarning, stacklevel=2)

    def __call__(self, *__args, **__kwargs):
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with static "
                           "forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)")

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls._backward_cls = type(cls.__name__ + "Backward", (BackwardCFunction,), {"_forward_cls": cls})

    @classmethod
    def apply(cls, *args, **kwargs):
        if _C._jit_is_tracing():
            from umbra.jit._trace import _apply_function
            return _apply_function(cls, args, kwargs)
        if _C._level_count():
            from umbra.autograd.function_levels import apply
            if kwargs:
                if _C._innermost_level().kind == "vmap" and any(isinstance(value, Tensor) for value in kwargs.values()):
                    raise NotImplementedError("Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass kwarg-only Tensors to "
                                              f"autograd.Function. Got: {kwargs}")
                raise TypeError(f"{cls.__name__}.apply takes no keyword arguments inside a transform")
            return apply(cls, args)
        return _Call(cls, args, kwargs).run()

    @staticmethod
    def vmap(info, in_dims, *args):
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
                                  "generate_vmap_rule=True.")


class _Call:
    """One call of a custom function: which arguments and results are tensors, and what goes where on the way back."""

    def __init__(self, cls, args, kwargs, knows_levels=False):
        if cls.setup_context is not Function.setup_context:
            args, kwargs = _with_defaults(cls.forward, args, kwargs), {}
        elif kwargs:
            args, kwargs = _by_position(cls.forward, args, kwargs)
        self.cls, self.args, self.kwargs, self.knows_levels = cls, args, kwargs, knows_levels
        self.context = cls._backward_cls()
        self.tensor_positions = [i for i, value in enumerate(args) if isinstance(value, Tensor)]
        self.results = None

    def run(self):
        cls = self.cls
        inputs = [self.args[i] for i in self.tensor_positions]
        jvp = self.jvp if cls.jvp is not Function.jvp else None
        outputs = _C._apply_function(cls.__name__ + "Backward", inputs, self.forward, self.backward, jvp, self.context, self.knows_levels)
        outputs = [output if kept is None else output.as_subclass(kept) for output, kept in zip(outputs, self.kept_classes)]
        results = tuple(output if value is _Tensor else value for output, value in zip(outputs, self.results))
        return results if self.is_tuple else results[0]

    def forward(self, state):
        cls, context = self.cls, self.context
        context._state = state
        needs = [False] * len(self.args)
        for k, i in enumerate(self.tensor_positions):
            needs[i] = state.needs_input_grad(k)
        context.needs_input_grad = tuple(needs)
        if cls.setup_context is not Function.setup_context:
            result = cls.forward(*self.args)
            cls.setup_context(context, self.args, result)
            self.refuse_saved_inputs(result)
        else:
            result = cls.forward(context, *self.args, **self.kwargs)
        self.is_tuple = isinstance(result, tuple)  # anything else is one result
        self.results = tuple(result) if self.is_tuple else (result,)
        tensors = [value if isinstance(value, Tensor) else None for value in self.results]
        self.kept_classes = [None if value is None else _class_to_keep(value, self.args) for value in tensors]
        self.args = (None,) * len(self.args)  # the graph keeps what was saved, and nothing else
        self.results = tuple(_Tensor if isinstance(value, Tensor) else value for value in self.results)
        return tensors

    def refuse_saved_inputs(self, result):
        """Where forward gives an input as it is, autograd makes another tensor of it, which setup_context did not see."""
        saved = self.context.to_save
        for value in result if isinstance(result, tuple) else (result,):
            given = isinstance(value, Tensor) and any(value is argument for argument in self.args)
            if given and any(value is tensor for tensor in saved) and not self.context._is_marked(value):
                raise RuntimeError("An input that has been returned as-is as output is being saved for backward. This is not supported if you override "
                                   "setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or setup ctx "
                                   "inside the forward function itself.")

    def backward(self, gradients):
        cls = self.cls
        if cls.backward is not Function.backward and cls.vjp is not Function.vjp:
            raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them.")
        function = cls.backward if cls.backward is not Function.backward else cls.vjp
        result = function(self.context, *gradients)
        result = result if isinstance(result, tuple) else (result,)
        for value in result:
            if value is not None and not isinstance(value, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(value).__name__})")
        count = len(self.args)
        if len(result) > count and all(value is None for value in result[count:]):
            result = result[:count]
        if len(result) != count:
            raise RuntimeError(f"function {cls.__name__}Backward returned an incorrect number of gradients (expected {count}, got "
                               f"{len(result)})")
        for i, value in enumerate(result):
            if value is not None and i not in self.tensor_positions:
                raise RuntimeError(f"function {cls.__name__}Backward returned a gradient different than None at position {i + 1}, but the "
                                   "corresponding forward input was not a Variable")
        return [result[i] for i in self.tensor_positions]

    def jvp(self, tangents):
        given = [None] * len(self.args)
        for i, tangent in zip(self.tensor_positions, tangents):
            given[i] = tangent
        self.context._inside_jvp = True
        try:
            result = self.cls.jvp(self.context, *given)
        finally:
            self.context._inside_jvp, self.context._saved_for_forward = False, None
        result = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        if len(result) != len(self.results):
            raise RuntimeError(f"Function's jvp returned an invalid number of forward gradients (expected {len(self.results)} but got {len(result)})")
        for i, value in enumerate(result):
            if value is not None and not isinstance(value, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(value).__name__}) for grad output {i}.")
        return list(result)


def _with_defaults(forward, args, kwargs):
    """The arguments of a call by position, with the defaults of those that are not given."""
    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def _by_position(forward, args, kwargs):
    """The arguments of a call of `forward(ctx, ...)`: by position where they have one."""
    bound = inspect.signature(forward).bind(None, *args, **kwargs)
    return bound.args[1:], bound.kwargs


def _class_to_keep(value, args):
    """The class of an argument that is handed back as it is; C++ hands back a plain view of it."""
    kind = type(value)
    keeps = kind is not Tensor and kind.__torch_dispatch__ is Tensor.__torch_dispatch__ and kind.__torch_function__ is not _C._disabled_torch_function_impl
    return kind if keeps and any(value is a for a in args) else None


class _Tensor:
    """Stands for a tensor among a call's results."""


def once_differentiable(function):
    """The gradient itself cannot be differentiated."""
    @functools.wraps(function)
    def wrapped(ctx, *args):
        from umbra.autograd.grad_mode import no_grad
        with no_grad():
            results = function(ctx, *args)
        tensors = [a for a in args if isinstance(a, _C.Tensor)]
        if not (_C.is_grad_enabled() and any(t.requires_grad for t in tensors)):
            return results
        refuse = [Error.apply(r, *tensors) if isinstance(r, _C.Tensor) else r for r in (results if isinstance(results, tuple) else (results,))]
        return tuple(refuse) if isinstance(results, tuple) else refuse[0]
    return wrapped


class Error(Function):
    """Gives its first input; whoever differentiates it is told that this cannot be done."""

    @staticmethod
    def forward(_, result, *__):
        return result.detach()

    @staticmethod
    def backward(_, *__):
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


class InplaceFunction(Function):
    """A Function that may write its input."""


class NestedIOFunction(Function):
    """A Function over nested containers of tensors."""
