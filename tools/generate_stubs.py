#!/usr/bin/env python3
"""Writes the type stubs of the Python package from the operators' schemas.

usage: .venv/bin/python tools/generate_stubs.py [--out python/umbra]

Reads the schemas out of the built module and writes
    _C.pyi         Tensor with every operator as a method, and the value types
    __init__.pyi   every operator as a function
A file whose contents would not change is left alone.
"""
import argparse
import keyword
import pathlib
import re

TYPES = {"Tensor": "Tensor", "int": "int", "SymInt": "int | SymInt", "float": "float", "bool": "bool", "Scalar": "Number", "str": "str",
         "Device": "device | str", "ScalarType": "dtype", "Layout": "layout", "MemoryFormat": "memory_format", "Generator": "Generator",
         "number": "Number", "complex": "complex", "SymBool": "bool | SymBool", "SymFloat": "float | SymFloat"}
# Options of factories whose schema type is an int for TorchScript.
BY_NAME = {"dtype": "dtype", "layout": "layout", "memory_format": "memory_format"}
HEAD = '"""Written by tools/generate_stubs.py from the operators\' schemas."""\n'
VALUE_TYPES = '''
class dtype:
    is_floating_point: bool
    is_complex: bool
    is_signed: bool
    itemsize: int
    def to_real(self) -> dtype: ...
    def to_complex(self) -> dtype: ...

class layout: ...
class memory_format: ...

class device:
    type: str
    index: int | None
    def __init__(self, type: str | int | device, index: int | None = ...) -> None: ...
    def __enter__(self) -> device: ...
    def __exit__(self, *exception: Any) -> None: ...

class Size(tuple[int, ...]):
    def numel(self) -> int: ...

class SymInt: ...
class SymFloat: ...
class SymBool: ...

class Generator:
    device: device
    def __init__(self, device: device | str = ...) -> None: ...
    def manual_seed(self, seed: int) -> Generator: ...
    def initial_seed(self) -> int: ...
    def seed(self) -> int: ...
    def get_state(self) -> Tensor: ...
    def set_state(self, new_state: Tensor) -> Generator: ...

class UntypedStorage:
    device: device
    def data_ptr(self) -> int: ...
    def nbytes(self) -> int: ...
    def resize_(self, size: int) -> UntypedStorage: ...
'''
TENSOR_ATTRIBUTES = '''    dtype: dtype
    device: device
    layout: layout
    shape: Size
    ndim: int
    itemsize: int
    nbytes: int
    requires_grad: bool
    grad: Tensor | None
    grad_fn: Any
    is_leaf: bool
    data: Tensor
    real: Tensor
    imag: Tensor
    T: Tensor
    mT: Tensor
    H: Tensor
    mH: Tensor
    def size(self, dim: int | None = ...) -> Any: ...
    def stride(self, dim: int | None = ...) -> Any: ...
    def dim(self) -> int: ...
    def numel(self) -> int: ...
    def storage_offset(self) -> int: ...
    def element_size(self) -> int: ...
    def data_ptr(self) -> int: ...
    def is_contiguous(self, memory_format: memory_format = ...) -> bool: ...
    def item(self) -> Any: ...
    def tolist(self) -> Any: ...
    def numpy(self, *, force: bool = ...) -> Any: ...
    def to(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def type(self, dtype: Any = ...) -> Any: ...
    def cpu(self) -> Tensor: ...
    def float(self) -> Tensor: ...
    def double(self) -> Tensor: ...
    def half(self) -> Tensor: ...
    def bfloat16(self) -> Tensor: ...
    def int(self) -> Tensor: ...
    def long(self) -> Tensor: ...
    def bool(self) -> Tensor: ...
    def backward(self, gradient: Tensor | None = ..., retain_graph: bool | None = ..., create_graph: bool = ..., inputs: Any = ...) -> None: ...
    def requires_grad_(self, requires_grad: bool = ...) -> Tensor: ...
    def retain_grad(self) -> None: ...
    def register_hook(self, hook: Any) -> Any: ...
    def untyped_storage(self) -> UntypedStorage: ...
    def __getitem__(self, index: Any) -> Tensor: ...
    def __setitem__(self, index: Any, value: Any) -> None: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
'''
OPERATORS = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "pow": "pow",
             "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}


# Sizes may be given one by one: `randn(8, 64)`, `x.view(3, 2)`.
SPREAD = {"size", "shape", "dims", "repeats"}
BUILTINS = "from builtins import bool as _bool, complex as _complex, float as _float, int as _int\n"


def private(text):
    """The text with builtins and value types by names that no dtype (`umbra.int`) and no attribute (`Tensor.dtype`) hides."""
    names = "(int|float|bool|complex|dtype|device|layout|memory_format)"
    text = re.sub(rf"-> {names}\b", r"-> _\1", text)  # results, which a colon follows
    # Elsewhere a colon after the name makes it the name of a parameter or attribute.
    return re.sub(rf"(?<=[:|=\[, ])(?<!class )(?<!def ){names}\b(?=[ ,\])|]|$)(?!: )", r"_\1", text, flags=re.M)


def type_text(argument_type, name=""):
    text = str(argument_type)
    if text.startswith("Optional["):
        return type_text_of(text[9:-1], name) + " | None"
    return type_text_of(text, name)


def type_text_of(text, name):
    if text.startswith("Optional["):
        return type_text_of(text[9:-1], name) + " | None"
    if text.startswith("List["):
        return f"Sequence[{type_text_of(text[5:-1], '')}]"
    if name in BY_NAME and text == "int":
        return BY_NAME[name]
    return TYPES.get(text, "Any")


def parameters(schema, as_method):
    parts, starred, optional = ["self"] if as_method else [], False, False
    for i, argument in enumerate(schema.arguments):
        if as_method and i == 0:
            continue
        name = "input" if argument.name == "self" else argument.name
        name += "_" if keyword.iskeyword(name) else ""
        if argument.kwarg_only and not starred:
            parts.append("*")
            starred = True
        kind = type_text(argument.type, argument.name)
        if argument.N and kind.startswith("Sequence[int"):
            kind = "int | " + kind
        optional = (optional or argument.has_default_value()) if not argument.kwarg_only else argument.has_default_value()
        parts.append(f"{name}: {kind}" + (" = ..." if optional else ""))
    return ", ".join(parts)


def spread(schema, as_method):
    """The parameters with the sizes one by one, where they are the only ones given by position."""
    positional = [a for a in schema.arguments[as_method:] if not a.kwarg_only]
    if len(positional) != 1 or positional[0].name not in SPREAD or not str(positional[0].type).startswith("List["):
        return []
    before, after = parameters(schema, as_method).split(f"{positional[0].name}: ")
    rest = after.split(", *, ")[1] if ", *, " in after else ""
    return [f"{before}*{positional[0].name}: int | SymInt" + (f", {rest}" if rest else "")]


def result(schema):
    kinds = [type_text(r.type) for r in schema.returns]
    if not kinds:
        return "None"
    return kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"


def definitions(name, schemas, indent="", as_method=False):
    lines, seen = [], set()
    # Shorter ones first: a longer one whose last parameters have defaults would hide them.
    for schema in sorted(schemas, key=lambda s: len(s.arguments)):
        for listed in [parameters(schema, as_method)] + spread(schema, as_method):
            line = f"def {name}({listed}) -> {result(schema)}: ..."
            if line not in seen:
                seen.add(line)
                lines.append(line)
    if len(lines) == 1:
        return [indent + lines[0]]
    return [part for line in lines for part in (indent + "@overload", indent + line)]


def write(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=pathlib.Path(__file__).resolve().parent.parent / "python" / "umbra", type=pathlib.Path)
    out = parser.parse_args().out
    import umbra
    by_name = {}
    for schema in umbra._C._jit_get_all_schemas():
        space, name = schema.name.split("::")
        if space == "aten" and not keyword.iskeyword(name):
            by_name.setdefault(name, []).append(schema)
    imports = "from typing import Any, Iterator, Sequence, overload\n\nNumber = int | float | bool | complex\n"
    methods, functions = [], []
    for name in sorted(by_name):
        functions += definitions(name, by_name[name])
        with_self = [s for s in by_name[name] if s.arguments and s.arguments[0].name == "self" and str(s.arguments[0].type) == "Tensor"
                     and not any(a.is_out for a in s.arguments)]
        if with_self and f"def {name}(" not in TENSOR_ATTRIBUTES and f"    {name}: " not in TENSOR_ATTRIBUTES:
            methods += definitions(name, with_self, "    ", as_method=True)
    for symbol in OPERATORS:
        names = [n for n in (f"__{symbol}__", f"__r{symbol}__") if n not in by_name]
        methods += [f"    def {n}(self, other: Any) -> Tensor: ..." for n in names]
    aliases = "".join(f"_{n} = {n}\n" for n in ("dtype", "device", "layout", "memory_format"))
    body = imports + VALUE_TYPES + "\nclass Tensor:\n" + TENSOR_ATTRIBUTES + "\n".join(methods)
    write(out / "_C.pyi", HEAD + BUILTINS + private(body) + "\n\n" + aliases
          + "TensorBase = Tensor\nclass FakeTensor(Tensor): ...\n\ndef __getattr__(name: str) -> Any: ...\n")
    names = "Generator, Size, SymBool, SymFloat, SymInt, Tensor, UntypedStorage, device, dtype, layout, memory_format"
    constants = sorted(n for n, v in vars(umbra).items() if isinstance(v, (umbra.dtype, umbra.layout, umbra.memory_format)))
    kinds = [f"{n}: _{type(getattr(umbra, n)).__name__}" for n in constants]
    aliases = "from umbra._C import dtype as _dtype, device as _device, layout as _layout, memory_format as _memory_format\n"
    exported = "".join(f"from umbra._C import {n} as {n}\n" for n in names.split(", "))
    write(out / "__init__.pyi", HEAD + BUILTINS + aliases + exported + private(imports) + "\n" + "\n".join(kinds) + "\n"
          + private("\n".join(functions)) + "\n\ndef __getattr__(name: str) -> Any: ...\n")


if __name__ == "__main__":
    main()
