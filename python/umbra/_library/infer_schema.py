"""Schemas from annotations: `(Tensor x, float factor) -> Tensor`."""
import collections.abc
import inspect
import types
import typing

import umbra
from umbra._C import Tensor

_NUMBER = typing.Union[int, float, bool]
_PARAMETERS = {Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", _NUMBER: "Scalar",
               umbra.dtype: "ScalarType", umbra.device: "Device"}
_IN_LISTS = (Tensor, int, float, bool, _NUMBER)
_RETURNS = {Tensor: "Tensor", typing.List[Tensor]: "Tensor[]", list[Tensor]: "Tensor[]", int: "SymInt", float: "float", bool: "bool",
            _NUMBER: "Scalar"}


def _known(annotation, table):
    try:
        return annotation in table
    except TypeError:
        return False


def _without_none(annotation):
    """The T of `Optional[T]` and `T | None`; None for anything else."""
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return None
    rest = [a for a in typing.get_args(annotation) if a is not type(None)]
    if len(rest) == len(typing.get_args(annotation)):
        return None
    return rest[0] if len(rest) == 1 else typing.Union[tuple(rest)]


def _parameter_type(annotation):
    """The schema's word for an annotation; None where there is none."""
    if _known(annotation, _PARAMETERS):
        return _PARAMETERS[annotation]
    inner = _without_none(annotation)
    if inner is not None:
        text = _parameter_type(inner)
        return None if text is None or text.endswith("?") else text + "?"
    if typing.get_origin(annotation) in (list, collections.abc.Sequence) and len(typing.get_args(annotation)) == 1:
        element = typing.get_args(annotation)[0]
        if _known(element, _IN_LISTS):
            return _PARAMETERS[element] + "[]"
        return "Tensor?[]" if _without_none(element) is Tensor else None
    return None


def _tuple_hint(annotation):
    """What a tuple could be instead: a list of the one type that it is of."""
    if typing.get_origin(annotation) is not tuple:
        return ""
    hint = " We do not support Tuple inputs in schema. As a workaround, please try to use List instead."
    elements = {element for element in typing.get_args(annotation) if element is not ...}
    return f"{hint} For example, {list[elements.pop()]}." if len(elements) == 1 else hint


def _default_text(default, error, name):
    if default is None or isinstance(default, (bool, int, float)):
        return str(default)
    if isinstance(default, str):
        return f'"{default}"'
    if isinstance(default, umbra.dtype):
        return str(default).removeprefix("torch.")
    if isinstance(default, umbra.device):
        return f'"{default}"'
    error(f"Parameter {name} has an unsupported default value type {type(default)}.")


def _return_types(annotation, error):
    if annotation is None or annotation is type(None):
        return "()"
    if _known(annotation, _RETURNS):
        return _RETURNS[annotation]
    parts = typing.get_args(annotation)
    if typing.get_origin(annotation) is tuple and all(_known(part, _RETURNS) for part in parts):
        inner = ", ".join(_RETURNS[part] for part in parts)
        return f"({inner})" if len(parts) != 1 else inner
    error(f"Return has unsupported type {annotation}. The valid types are: {_RETURNS}.")


def _check_mutates_args(mutates_args, names, error):
    if isinstance(mutates_args, str):
        if mutates_args != "unknown":
            raise ValueError("mutates_args must either be a sequence of the names of the arguments that are mutated or the string 'unknown'. ")
        return
    unknown = set(mutates_args) - set(names)
    if unknown:
        error(f"{unknown} in mutates_args were not found in the custom op's signature. mutates_args should contain the names of all args "
              "that the custom op mutates, or just the string 'unknown' if you don't know.")


def infer_schema(prototype_function, /, *, mutates_args, op_name=None, tags=()):
    """The schema of a function with annotations. `mutates_args`: the names of the tensors that it writes, or "unknown".

        >>> def scale(x: torch.Tensor, factor: float = 1.0) -> torch.Tensor: ...
        >>> torch.library.infer_schema(scale, mutates_args=())
        '(Tensor x, float factor=1.0) -> Tensor'
    """
    if tags not in ((), None):
        raise NotImplementedError("infer_schema(tags=...) is not in Umbra yet")
    signature = inspect.signature(prototype_function)

    def error(what):
        raise ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    try:
        hints = typing.get_type_hints(prototype_function)
    except NameError as unknown:
        error(f"Unsupported type annotation {unknown.name}. It is not a type.")
    parts, starred = [], False
    for position, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            error("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.annotation is parameter.empty:
            error(f"Parameter {name} must have a type annotation.")
        # get_type_hints makes `n: int = None` optional; what was written counts.
        written = parameter.annotation if not isinstance(parameter.annotation, str) else hints[name]
        kind = _parameter_type(written)
        if kind is None:
            hint = _tuple_hint(written)
            error(f"Parameter {name} has unsupported type {written}.{hint} The valid types are: {list(_PARAMETERS)}, optional ones "
                  "and lists of tensors and numbers.")
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        if mutates_args != "unknown" and name in mutates_args or mutates_args == "unknown" and kind.startswith("Tensor"):
            if not kind.startswith("Tensor"):
                error(f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated")
            kind = kind.replace("Tensor", f"Tensor(a{position}!)", 1)
        default = "" if parameter.default is parameter.empty else "=" + _default_text(parameter.default, error, name)
        parts.append(f"{kind} {name}{default}")
    _check_mutates_args(mutates_args, signature.parameters, error)
    if signature.return_annotation is signature.empty:
        error("No return type annotation was provided. Please add one.")
    returned = signature.return_annotation if not isinstance(signature.return_annotation, str) else hints["return"]
    schema = f"({', '.join(parts)}) -> {_return_types(returned, error)}"
    return schema if op_name is None else op_name + schema
