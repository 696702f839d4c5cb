"""Operators of the user's own.

    @umbra.library.custom_op("mylib::scale", mutates_args=())
    def scale(x: Tensor, factor: float) -> Tensor:
        return x * factor

    @scale.register_fake
    def _(x, factor):
        return umbra.empty_like(x)

    scale.register_autograd(lambda ctx, grad: (grad * ctx.factor, None), setup_context=lambda ctx, inputs, output:
                            setattr(ctx, "factor", inputs[1]))
"""
import functools
import inspect
import re
import typing

import umbra
from umbra import _C
from umbra._C import OpOverload, Tensor
from umbra.utils._pytree import tree_leaves

__all__ = ["Library", "custom_op", "define", "fallthrough_kernel", "get_ctx", "impl", "impl_abstract", "infer_schema",
           "register_autograd", "register_fake", "register_kernel"]


def fallthrough_kernel():
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def _tag_names(tags):
    tags = tags if isinstance(tags, (tuple, list)) else (tags,)
    return [tag.name for tag in tags]


def _qualified(op):
    if isinstance(op, OpOverload):
        return op.name()
    if isinstance(op, CustomOpDef):
        return op._qualname
    if "::" not in str(op):
        raise ValueError(f"expected an operator's name of the form 'namespace::name', got '{op}'")
    return op


_KINDS = {"CompositeImplicitAutograd": _C._implement_composite, "Meta": _C._implement_fake, "Fake": _C._implement_fake}


def _implement(name, function, dispatch_key):
    """Puts a kernel where PyTorch's dispatch key says."""
    if function is fallthrough_kernel:
        return
    if dispatch_key in _KINDS:
        _KINDS[dispatch_key](name, function)
    elif dispatch_key.startswith("Autograd"):
        _C._implement_autograd(name, function)
    elif dispatch_key == "CompositeExplicitAutograd":
        _C._implement(name, function)
        if not _C._has_implementation(name, "fake"):
            _C._implement_fake(name, function)
    else:
        _C._implement(name, function)


class Library:
    """Definitions and kernels in a namespace. `kind`: DEF for a new one, FRAGMENT to add to one, IMPL for kernels alone."""

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def __repr__(self):
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema, alias_analysis="", *, tags=()):
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        return _C._define_operator(self.ns, schema, _tag_names(tags))._schema.name

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=False):
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        name = op_name.name() if isinstance(op_name, OpOverload) else op_name
        if "::" not in name:
            name = f"{self.ns}::{name}"
        _implement(name, fn, dispatch_key or self.dispatch_key or "CompositeImplicitAutograd")

    def fallback(self, fn, dispatch_key="", *, with_keyset=False):
        raise NotImplementedError("a fallback for all operators is a TorchDispatchMode here")

    def _register_fake(self, op_name, fn, _stacklevel=1, *, allow_override=False):
        _C._implement_fake(op_name if "::" in op_name else f"{self.ns}::{op_name}", fn)

    def _destroy(self):
        """Operators live as long as the process."""


# ---- functions ----

def define(qualname, schema, *, lib=None, tags=()):
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}")
    space, name = qualname.split("::")
    _C._define_operator(space, name + schema, _tag_names(tags))


def _key_of(device):
    keys = {"cpu": "CPU", "cuda": "CUDA", "default": "CompositeExplicitAutograd", None: "CPU", "meta": "Meta"}
    return keys.get(device, device)


def impl(qualname, types, func=None, *, lib=None):
    """A kernel for device types ("cpu", "cuda") or all of them ("default")."""
    types = (types,) if isinstance(types, str) else tuple(types)

    def register(function):
        for kind in types:
            _implement(_qualified(qualname), function, _key_of(kind))
        return function
    return register if func is None else register(func)


def register_kernel(op, device_types, func=None, /, *, lib=None):
    return impl(op, "cpu" if device_types is None else device_types, func)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=False):
    """What the operator does on fake tensors: makes results of the right metadata."""
    def register(function):
        _C._implement_fake(_qualified(op), function)
        return function
    return register if func is None else register(func)


impl_abstract = register_fake


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """The operator's gradient: `backward(ctx, *grads)`, with `setup_context(ctx, inputs, output)` saving what it needs."""
    name = _qualified(op)
    overload = _C._get_overload(name)

    class Generated(umbra.autograd.Function):
        @staticmethod
        def forward(ctx, *args):
            with _C._BelowAutograd():
                result = overload(*args)
            if setup_context is not None:
                _call_setup_context(setup_context, ctx, overload, args, result)
            return tuple(result) if isinstance(result, list) else result

        @staticmethod
        def backward(ctx, *grads):
            return backward(ctx, *grads)

    Generated.__name__ = "Generated" + overload.__name__.replace(".", "_")

    def kernel(*args, **kwargs):
        positional = _in_schema_order(overload, args, kwargs)
        if umbra.is_grad_enabled() and any(isinstance(a, Tensor) and a.requires_grad for a in positional):
            return Generated.apply(*positional)
        with _C._BelowAutograd():
            return overload(*positional)

    _C._implement_autograd(name, kernel)


def _in_schema_order(overload, args, kwargs):
    values = list(args)
    for argument in overload._schema.arguments[len(args):]:
        values.append(kwargs[argument.name] if argument.name in kwargs else argument.default_value)
    return values


def _call_setup_context(setup_context, ctx, overload, args, result):
    keyword_only = [a.name for a in overload._schema.arguments if a.kwarg_only]
    if not keyword_only:
        return setup_context(ctx, tuple(args), result)
    count = len(args) - len(keyword_only)
    return setup_context(ctx, tuple(args[:count]), dict(zip(keyword_only, args[count:])), result)


def get_ctx():
    """Inside a fake function: makes sizes that only the run will tell."""
    from umbra._subclasses import fake_tensor
    return fake_tensor.FakeContext()


# ---- schemas from annotations ----

_TYPES = {Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", complex: "Scalar"}


def _type_text(annotation):
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in _TYPES:
        return _TYPES[annotation]
    if annotation is umbra.dtype:
        return "ScalarType"
    if annotation is umbra.device:
        return "Device"
    if annotation is umbra.types.Number:
        return "Scalar"
    if origin is typing.Union or type(annotation).__name__ == "UnionType":
        rest = [a for a in arguments if a is not type(None)]
        if len(rest) == 1 and len(arguments) == 2:
            return _type_text(rest[0]) + "?"
        if set(rest) <= {int, float, bool, complex}:
            return "Scalar"
    if origin in (list, tuple) or getattr(origin, "__name__", "") == "Sequence":
        inner = [a for a in arguments if a is not Ellipsis]
        return _type_text(inner[0]) + "[]"
    raise ValueError(f"infer_schema(func): unsupported type {annotation}")


def infer_schema(prototype_function, /, *, mutates_args, op_name=None):
    """`(Tensor x, float factor) -> Tensor` from a function's annotations."""
    hints = typing.get_type_hints(prototype_function)
    parts, starred, written = [], False, 0
    for parameter in inspect.signature(prototype_function).parameters.values():
        if parameter.name not in hints:
            raise ValueError(f"infer_schema(func): Parameter {parameter.name} must have a type annotation.")
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        kind = _type_text(hints[parameter.name])
        mutated = kind.startswith("Tensor") if mutates_args == "unknown" else parameter.name in mutates_args
        if mutated:
            kind = kind.replace("Tensor", f"Tensor(a{written}!)", 1)
            written += 1
        text = f"{kind} {parameter.name}"
        if parameter.default is not parameter.empty:
            default = parameter.default
            text += f"={repr(default) if not isinstance(default, umbra.dtype) else str(default).removeprefix('torch.')}"
        parts.append(text)
    result = hints.get("return")
    if result is None or result is type(None):
        returns = "()"
    elif typing.get_origin(result) is tuple:
        returns = "(" + ", ".join(_type_text(a) for a in typing.get_args(result)) + ")"
    else:
        returns = _type_text(result)
    schema = f"({', '.join(parts)}) -> {returns}"
    return schema if op_name is None else op_name + schema


def _without_aliases(name, function):
    """A kernel whose results share no memory with its arguments or each other; capture relies on it."""
    @functools.wraps(function)
    def kernel(*args, **kwargs):
        result = function(*args, **kwargs)
        seen = {_C._storage_id(value) for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)}
        for value in tree_leaves(result):
            if not isinstance(value, Tensor):
                continue
            if _C._storage_id(value) in seen:
                raise RuntimeError(f"{name} (with implementation in {function.__module__}): The output of this custom operator (1) must not also "
                                   "be an input to this custom operator and (2) may not alias any inputs to this custom operator or other "
                                   "returns. The most common way to trigger this error is if we have y = custom_op(x) and y and x are the same "
                                   "Tensor. Please instead return a clone of the offending output tensor(s) (e.g. return x.clone()) or refactor "
                                   "the custom operator to not return y.")
            seen.add(_C._storage_id(value))
        return result
    return kernel


class CustomOpDef:
    """An operator made by `custom_op`; calling it calls the operator."""

    def __init__(self, qualname, schema, function, tags=()):
        self._qualname = qualname
        self._function = function
        space, name = qualname.split("::")
        self._overload = _C._define_operator(space, name + schema, _tag_names(tags))
        self._opoverload = self._overload
        self._namespace, self._name = space, name
        functools.update_wrapper(self, function)

    def __call__(self, *args, **kwargs):
        return self._overload(*args, **kwargs)

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(self, device_types, fn=None, /):
        if fn is None:
            return lambda function: self.register_kernel(device_types, function)
        impl(self._qualname, "default" if device_types is None else device_types, _without_aliases(self._qualname, fn))
        return fn

    def register_fake(self, fn, /):
        return register_fake(self._qualname, fn)

    def register_autograd(self, backward, /, *, setup_context=None):
        register_autograd(self._qualname, backward, setup_context=setup_context)

    def register_vmap(self, func=None):
        raise NotImplementedError("register_vmap is not supported yet")


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=()):
    """Makes a Python function an operator that capture keeps whole."""
    if not re.fullmatch(r"[\w.]+::[\w.]+", name):
        raise ValueError(f"custom_op: expected a name of the form 'namespace::name', got '{name}'")

    def make(function):
        text = schema or infer_schema(function, mutates_args=mutates_args)
        definition = CustomOpDef(name, text, function, tags)
        _C._implement(name, _without_aliases(name, function))
        return definition
    return make if fn is None else make(fn)
