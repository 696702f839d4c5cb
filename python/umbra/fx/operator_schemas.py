"""Signatures of operators and functions, and calls written in terms of them."""
import inspect
import types
import typing

import umbra
from umbra import _C

__all__ = ["ArgsKwargsPair", "check_for_mutable_operation", "create_type_hint", "get_signature_for_torch_op", "normalize_function", "normalize_module", "type_matches"]


class ArgsKwargsPair(typing.NamedTuple):
    """A call's arguments, by position and by name."""
    args: tuple
    kwargs: dict


_BASES = {"Tensor": umbra.Tensor, "int": int, "SymInt": int, "float": float, "bool": bool, "str": str, "Scalar": typing.Any, "number": typing.Any,
          "Device": umbra.device, "Generator": umbra.Generator}


def _python_type(text):
    """The Python type that a schema's type, as text, stands for."""
    for head, make in (("Optional[", lambda t: typing.Optional[t]), ("List[", lambda t: typing.List[t])):
        if text.startswith(head) and text.endswith("]"):
            return make(_python_type(text[len(head):-1]))
    return _BASES.get(text, typing.Any)


def _signature(schema):
    parameters = []
    taken = any(argument.name == "input" for argument in schema.arguments)
    for argument in schema.arguments:
        name = "input" if argument.name == "self" and not taken else argument.name
        kind = inspect.Parameter.KEYWORD_ONLY if argument.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        default = argument._default if argument.has_default_value() else inspect.Parameter.empty
        if name == "from":  # a word of Python's: such arguments go by position
            kind = inspect.Parameter.POSITIONAL_ONLY
            parameters = [p.replace(kind=kind) for p in parameters]
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=_python_type(str(argument.type))))
    returns = [_python_type(str(result.type)) for result in schema.returns]
    annotation = returns[0] if len(returns) == 1 else tuple(returns)
    return inspect.Signature(parameters, return_annotation=annotation)


def _schemas_of(op):
    """The schemas behind an operator, one of its overloads, or the function of the package that calls it; None where there are none."""
    if isinstance(op, umbra._ops.OpOverload):
        return [op._schema]
    packet = op if isinstance(op, umbra._ops.OpOverloadPacket) else None
    if packet is None:
        owner = getattr(op, "__module__", "") or ""
        if not owner.startswith("umbra") or isinstance(op, types.FunctionType):
            return None
        packet = getattr(umbra.ops.aten, getattr(op, "__name__", ""), None)
    if not isinstance(packet, umbra._ops.OpOverloadPacket):
        return None
    return [getattr(packet, name)._schema for name in packet.overloads()]


def get_signature_for_torch_op(op, return_schemas=False):
    """The signatures of an operator's overloads (with `return_schemas`, their schemas too), or None for other functions."""
    schemas = _schemas_of(op)
    signatures = None if schemas is None else [_signature(schema) for schema in schemas]
    return (signatures, schemas) if return_schemas else signatures


def create_type_hint(x):
    """A list or tuple of types as the type of such a list or tuple."""
    if not isinstance(x, (list, tuple)):
        return x
    if not x:
        return typing.List[typing.Any] if isinstance(x, list) else typing.Tuple[typing.Any, ...]
    base = next((candidate for candidate in x if all(isinstance(candidate, type) and isinstance(t, type) and issubclass(t, candidate) for t in x)), None)
    if base is None:
        return typing.List[typing.Any] if isinstance(x, list) else typing.Tuple[typing.Any, ...]
    return typing.List[base] if isinstance(x, list) else typing.Tuple[base, ...]


def type_matches(signature_type, argument_type):
    """Whether an argument of the one type may be given where the other is asked for."""
    origin = getattr(signature_type, "__origin__", None)
    if signature_type is typing.Any or signature_type == argument_type:
        return True
    if origin is typing.Union:
        return any(type_matches(part, argument_type) for part in signature_type.__args__)
    if origin is list:
        element = signature_type.__args__[0]
        if element is int and argument_type is int:  # int[2] takes a single int
            return True
        if getattr(argument_type, "__origin__", None) in (list, tuple):
            return all(part is Ellipsis or type_matches(element, part) for part in argument_type.__args__)
        return False
    if signature_type in (int, float) and argument_type is umbra.dtype:
        return signature_type is int
    if signature_type is float and argument_type is int:
        return False
    return inspect.isclass(argument_type) and inspect.isclass(signature_type) and issubclass(argument_type, signature_type)


def check_for_mutable_operation(target, args, kwargs):
    """Raises where the only overload that a call fits writes its arguments."""
    signatures, schemas = get_signature_for_torch_op(target, return_schemas=True)
    if not signatures:
        return
    fitting = []
    for signature, schema in zip(signatures, schemas):
        try:
            signature.bind(*args, **kwargs)
            fitting.append(schema)
        except TypeError:
            continue
    if len(fitting) == 1 and fitting[0].is_mutable:
        raise RuntimeError(f"Tried to trace mutable operation {fitting[0]}. FX only supports functional code, so operations that mutate operands "
                           "in-place (e.g. via `out` arguments) are not supported")


def _written_out(signature, args, kwargs, only_keywords):
    """A call with every parameter that has a value: by name, or as many by position as were given so."""
    if any(p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in signature.parameters.values()) \
            and list(signature.parameters) != ["input", "from", "to", "generator"]:
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    by_position, by_name = [], {}
    for i, name in enumerate(signature.parameters):
        if not only_keywords and i < len(args):
            by_position.append(bound.arguments[name])
        else:
            by_name[name] = bound.arguments[name]
    return ArgsKwargsPair(tuple(by_position), by_name)


def _fits(signature, args, kwargs):
    try:
        signature.bind(*args, **kwargs)
        return True
    except TypeError:
        return False


def _types_fit(signature, arg_types, kwarg_types):
    if not _fits(signature, arg_types, kwarg_types):
        return False
    bound = signature.bind(*arg_types, **kwarg_types)
    return all(type_matches(signature.parameters[name].annotation, given) for name, given in bound.arguments.items())


def normalize_function(target, args, kwargs=None, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False):
    """The call with every parameter written out, as an ArgsKwargsPair; None where the function is not known, or where several overloads fit and types
    (`arg_types`, `kwarg_types`) do not tell which."""
    kwargs = kwargs or {}
    if isinstance(target, types.FunctionType):
        known = (target.__module__ or "").startswith("umbra.nn.functional")
        signature = inspect.signature(inspect.unwrap(target)) if known else None
        return _written_out(signature, args, kwargs, normalize_to_only_use_kwargs) if known and _fits(signature, args, kwargs) else None
    signatures = get_signature_for_torch_op(target) if callable(target) else None
    if not signatures:
        return None
    fitting = [signature for signature in signatures if _fits(signature, args, kwargs)]
    if len(fitting) > 1 and (arg_types is not None or kwarg_types is not None):
        fitting = [signature for signature in fitting if _types_fit(signature, arg_types or (), kwarg_types or {})][:1]
    elif len(fitting) > 1:
        raise RuntimeError(f"Tried to normalize arguments to {_name_of(target)} but the schema match was ambiguous! Please provide argument types to the "
                           f"normalize_arguments() call. Available schemas:\n" + "\n".join(str(signature) for signature in fitting))
    return _written_out(fitting[0], args, kwargs, normalize_to_only_use_kwargs) if fitting else None


def _name_of(target):
    owner = (getattr(target, "__module__", None) or "").replace("umbra", "torch", 1)
    return f"{owner}.{target.__name__}" if owner and hasattr(target, "__name__") else str(target)


def normalize_module(root, target, args, kwargs=None, normalize_to_only_use_kwargs=False):
    """The same for a call of a module of the package, by its path from `root`; None for users' modules."""
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(f"Tried to normalize node with target {target} but root did not have that target!") from error
    if getattr(umbra.nn, type(module).__name__, None) is not type(module):
        return None
    signature = inspect.signature(type(module).forward)
    signature = signature.replace(parameters=list(signature.parameters.values())[1:])
    return _written_out(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def _normalized_arguments(self, root, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False):
    """A call's arguments with every parameter written out, or None."""
    if self.op == "call_function":
        return normalize_function(self.target, self.args, self.kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs)
    if self.op == "call_module":
        return normalize_module(root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs)
    return None


_C.Node.normalized_arguments = _normalized_arguments
