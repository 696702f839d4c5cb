#!/usr/bin/env python3
"""Writes the type stubs of the Python package from the operators' schemas.

usage: .venv/bin/python tools/generate_stubs.py [--out python/umbra]

Reads the schemas out of the built module and writes
    _C.pyi         Tensor with every operator as a method, and the value types
    __init__.pyi   every operator as a function
and beside those packages that put operators or what other modules define among their names (umbra.nn, umbra.linalg, ...) a stub of
what they have. A file whose contents would not change is left alone.
"""
import argparse
import ast
import functools
import importlib
import inspect
import keyword
import pathlib
import pkgutil
import re
import warnings

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
    def __index__(self) -> int: ...
    def __contains__(self, element: Any) -> bool: ...
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __lt__(self, other: Any) -> Tensor: ...
    def __le__(self, other: Any) -> Tensor: ...
    def __gt__(self, other: Any) -> Tensor: ...
    def __ge__(self, other: Any) -> Tensor: ...
    def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    def __hash__(self) -> int: ...
'''
# Functions and classes that are no operators, and that no Python source declares or annotates.
FUNCTIONS = '''
class finfo:
    bits: int
    dtype: str
    eps: float
    max: float
    min: float
    resolution: float
    smallest_normal: float
    tiny: float
    def __init__(self, type: dtype = ...) -> None: ...

class iinfo:
    bits: int
    dtype: str
    max: int
    min: int
    def __init__(self, type: dtype) -> None: ...

def tensor(data: Any, *, dtype: dtype | None = ..., device: device | str | int | None = ..., requires_grad: bool = ..., pin_memory: bool = ...) -> Tensor: ...
def as_tensor(data: Any, dtype: dtype | None = ..., device: device | str | int | None = ...) -> Tensor: ...
def asarray(obj: Any, *, dtype: dtype | None = ..., device: device | str | int | None = ..., copy: bool | None = ..., requires_grad: bool = ...) -> Tensor: ...
def from_numpy(ndarray: Any, /) -> Tensor: ...
def from_dlpack(ext_tensor: Any, /) -> Tensor: ...
def frombuffer(buffer: Any, *, dtype: dtype, count: int = ..., offset: int = ...) -> Tensor: ...
def is_tensor(obj: object) -> bool: ...
def is_storage(obj: object) -> bool: ...
def typename(obj: object) -> str: ...
def broadcast_shapes(*shapes: int | Sequence[int]) -> Size: ...
def get_default_dtype() -> dtype: ...
def set_default_dtype(d: dtype, /) -> None: ...
def get_default_device() -> device: ...
def set_default_device(device: device | str | int | None) -> None: ...
def get_num_threads() -> int: ...
def set_num_threads(count: int, /) -> None: ...
def set_flush_denormal(mode: bool, /) -> bool: ...
def get_num_interop_threads() -> int: ...
def set_num_interop_threads(count: int) -> None: ...
def is_grad_enabled() -> bool: ...
def is_inference_mode_enabled() -> bool: ...
def is_anomaly_enabled() -> bool: ...
def is_anomaly_check_nan_enabled() -> bool: ...
def seed() -> int: ...
def initial_seed() -> int: ...
def manual_seed(seed: int) -> Generator: ...
def get_rng_state() -> Tensor: ...
def set_rng_state(new_state: Tensor) -> None: ...
def are_deterministic_algorithms_enabled() -> bool: ...
def is_deterministic_algorithms_warn_only_enabled() -> bool: ...
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = ...) -> None: ...
def get_deterministic_debug_mode() -> int: ...
def set_deterministic_debug_mode(debug_mode: int | str) -> None: ...
def get_float32_matmul_precision() -> str: ...
def set_float32_matmul_precision(precision: str) -> None: ...
def is_warn_always_enabled() -> bool: ...
def set_warn_always(b: bool, /) -> None: ...
def compiled_with_cxx11_abi() -> bool: ...
def is_vulkan_available() -> bool: ...
def sym_int(a: int | float | SymInt | SymFloat) -> int | SymInt: ...
def sym_float(a: int | float | SymInt | SymFloat, /) -> float | SymFloat: ...
def sym_not(a: bool | SymBool, /) -> bool | SymBool: ...
def sym_max(a: Any, b: Any, /) -> Any: ...
def sym_min(a: Any, b: Any, /) -> Any: ...
def sym_sqrt(a: Any, /) -> float | SymFloat: ...
def sym_sum(args: Sequence[int | SymInt]) -> int | SymInt: ...
def sym_ite(condition: bool | SymBool, yes: Any, no: Any, /) -> Any: ...
def guard_or_false(condition: bool | SymBool) -> bool: ...
def guard_or_true(condition: bool | SymBool) -> bool: ...
def unique(input: Tensor, sorted: bool = ..., return_inverse: bool = ..., return_counts: bool = ..., dim: int | None = ...) -> Any: ...
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]: ...
def lu(A: Tensor, pivot: bool = ..., get_infos: bool = ..., out: Any = ...) -> tuple[Tensor, ...]: ...
def svd_lowrank(A: Tensor, q: int | None = ..., niter: int | None = ..., M: Tensor | None = ...) -> tuple[Tensor, Tensor, Tensor]: ...
def pca_lowrank(A: Tensor, q: int | None = ..., center: bool = ..., niter: int = ...) -> tuple[Tensor, Tensor, Tensor]: ...
def set_printoptions(precision: int | None = ..., threshold: int | None = ..., edgeitems: int | None = ..., linewidth: int | None = ..., profile: str | None = ..., sci_mode: bool | None = ...) -> None: ...
def save(obj: object, f: Any, pickle_module: Any = ..., pickle_protocol: int = ..., _use_new_zipfile_serialization: bool = ...) -> None: ...
'''


OPERATORS = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "pow": "pow",
             "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}


# Sizes may be given one by one: `randn(8, 64)`, `x.view(3, 2)`.
SPREAD = {"size", "shape", "dims", "repeats"}
# And so may the tensors of these: `meshgrid(x, y, indexing="ij")`.
SPREAD_TENSORS = {"aten::einsum", "aten::meshgrid", "aten::broadcast_tensors", "aten::block_diag", "aten::cartesian_prod", "aten::atleast_1d",
                  "aten::atleast_2d", "aten::atleast_3d", "aten::chain_matmul"}
# How else functions may be called that are written in Python: parameters behind the first tensor, and the result.
IN_PYTHON = {"nonzero": ("*, as_tuple: bool", "Any"),
             "norm": ("p: float | str | None = ..., dim: int | Sequence[int] | None = ..., keepdim: bool = ..., dtype: dtype | None = ...", "Tensor"),
             "tensordot": ("b: Tensor, dims: int | Tensor | Sequence[Any] = ..., out: Tensor | None = ...", "Tensor"),
             "sparse_coo_tensor": ("values: Any, size: Any = ..., *, dtype: dtype | None = ..., device: device | str | int | None = ..., "
                                   "requires_grad: bool = ..., check_invariants: bool | None = ...", "Tensor")}
FIRST = {"tensordot": "a: Tensor", "sparse_coo_tensor": "indices: Any"}  # where that is not `input`
# Packages with stubs of their own, and what their operators begin with.
PACKAGES = {"utils": "", "nn": "", "nn.functional": "", "nn.utils": "", "utils.data": "", "linalg": "linalg_", "fft": "fft_", "special": "special_", "random": "",
            "jit": "", "cuda": ""}
BUILTINS = "from builtins import bool as _bool, complex as _complex, float as _float, int as _int\n"


def private(text):
    """The text with builtins and value types by names that no dtype (`umbra.int`) and no attribute (`Tensor.dtype`) hides."""
    names = "(int|float|bool|complex|dtype|device|layout|memory_format)"
    text = re.sub(rf"-> {names}\b", r"-> _\1", text)  # results, which a colon follows
    imports = re.findall(r"^from .*$", text, flags=re.M)
    # Elsewhere a colon after the name makes it the name of a parameter or attribute.
    text = re.sub(rf"(?<=[:|=\[, ])(?<!class )(?<!def ){names}\b(?=[ ,\])|]|$)(?!: )", r"_\1", text, flags=re.M)
    as_written = iter(imports)
    return re.sub(r"^from .*$", lambda line: next(as_written), text, flags=re.M)


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
    has_input = any(a.name == "input" for a in schema.arguments)
    outs = [a for a in schema.arguments if a.is_out]
    for i, argument in enumerate(schema.arguments):
        if as_method and i == 0 or argument.is_out:
            continue
        name = "input" if argument.name == "self" and not has_input else argument.name
        name += "_" if keyword.iskeyword(name) else ""
        if argument.kwarg_only and not starred:
            parts.append("*")
            starred = True
        kind = type_text(argument.type, argument.name)
        if argument.N and kind.startswith("Sequence[int"):
            kind = "int | " + kind
        optional = (optional or argument.has_default_value()) if not argument.kwarg_only else argument.has_default_value()
        parts.append(f"{name}: {kind}" + (" = ..." if optional else ""))
        if argument.name == "pin_memory":
            parts.append("requires_grad: bool = ...")
    if outs:
        kind = type_text(outs[0].type) if len(outs) == 1 else f"tuple[{', '.join(type_text(a.type) for a in outs)}]"
        parts += ["*"] * (not starred) + [f"out: {kind}"]
    return ", ".join(parts)


def spread(schema, as_method):
    """The parameters with the sizes one by one, where they are the only ones given by position."""
    positional = [a for a in schema.arguments[as_method:] if not a.kwarg_only]
    if schema.name in SPREAD_TENSORS:
        return [re.sub(r"tensors: Sequence\[Tensor\](, \*)?|matrices: Sequence\[Tensor\](, \*)?", "*tensors: Tensor", parameters(schema, as_method))]
    if len(positional) != 1 or positional[0].name not in SPREAD or not str(positional[0].type).startswith("List["):
        return []
    before, after = parameters(schema, as_method).split(f"{positional[0].name}: ")
    rest = after.split(", *, ")[1] if ", *, " in after else ""
    return [f"{before}*{positional[0].name}: int | SymInt" + (f", {rest}" if rest else "")]


def result(schema):
    kinds = [type_text(r.type) for r in schema.returns]
    if not kinds:
        return "None"
    names = tuple(r.name for r in schema.returns)
    if len(names) > 1 and all(n.isidentifier() and not n.startswith("_") and not keyword.iskeyword(n) for n in names) and set(kinds) == {"Tensor"}:
        NAMED_RESULTS[named_result(names)] = names
        return named_result(names)
    return kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"


NAMED_RESULTS = {}  # types of several results that have names, and the names


def named_result(names):
    """`_values_indices` for the type of the results of `topk`."""
    return "_" + "_".join(names)


def named_results():
    classes = []
    for name, fields in sorted(NAMED_RESULTS.items()):
        classes.append(f"class {name}(NamedTuple):\n" + "\n".join(f"    {field}: Tensor" for field in fields) + "\n")
    return "\n".join(classes)


def definitions(name, schemas, indent="", as_method=False):
    lines, seen = [], set()
    # Shorter ones first: a longer one whose last parameters have defaults would hide them.
    for schema in sorted(schemas, key=lambda s: len(s.arguments)):
        for listed in [parameters(schema, as_method)] + spread(schema, as_method):
            line = f"def {name}({listed}) -> {result(schema)}: ..."
            if line not in seen:
                seen.add(line)
                lines.append(line)
    if name in IN_PYTHON:
        first = "self" if as_method else FIRST.get(name, "input: Tensor")
        lines.append(f"def {name}({first}, {IN_PYTHON[name][0]}) -> {IN_PYTHON[name][1]}: ...")
    if len(lines) == 1:
        return [indent + lines[0]]
    return [part for line in lines for part in (indent + "@overload", indent + line)]


def declared(text):
    """The names that a stub declares."""
    found = re.findall(r"^(?:def|class) (\w+)|^(\w+): |^from \S+ import \w+ as (\w+)", text, re.M)
    return {name for names in found for name in names if name}


def others(package, text):
    """The package's public names that `text` does not declare: what other modules define is taken from there."""
    known, lines = declared(text), []
    lazy = package._LAZY
    modules = {m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_")}
    for name in sorted({*vars(package), *lazy, *modules}):
        if name.startswith("_") or name in known or keyword.iskeyword(name):
            continue
        value = None if name in lazy or name in modules else getattr(package, name)
        home = lazy.get(name) or getattr(value, "__module__", None)
        if name in modules:
            lines.append(f"from umbra import {name} as {name}")
        elif name == "newaxis":
            lines.append("newaxis: None")
        elif isinstance(value, (bool, float, package.Generator)):
            lines.append(f"{name}: {type(value).__name__}")
        elif isinstance(value, type) and name.endswith("Tensor"):
            lines.append(f"class {name}(Tensor): ...")
        elif isinstance(value, package._unbuilt_types.UnbuiltType):
            lines.append(f"{name}: dtype")
        elif isinstance(value, package._unbuilt_types.qscheme):
            lines.append(f"from umbra._unbuilt_types import qscheme as _qscheme\n{name}: _qscheme")
        elif isinstance(value, type) and home == "umbra":
            base = value.__mro__[1]
            lines += [f"from {base.__module__} import {base.__name__} as _{base.__name__}"] if base.__module__.startswith("umbra.") else []
            lines.append(f"class {name}({'_' if base.__module__.startswith('umbra.') else ''}{base.__name__}): ...")
        elif home and home.startswith("umbra.") and home != "umbra._C" and name in written(home):
            lines.append(f"from {home} import {name} as {name}")
        elif home and home.startswith("umbra.") and home != "umbra._C":
            lines.append(f"{name}: Any")
    return "\n".join(dict.fromkeys(lines))


@functools.cache
def written(module):
    """The names that a module's source defines at its top."""
    try:
        tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    except (ImportError, OSError, TypeError):
        return frozenset()
    nodes = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    imported = [a.asname or a.name for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names]
    targets = [t for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)]
    return frozenset({n.name for n in nodes} | {t.id for t in targets} | set(imported))


def untyped(name, function):
    """A function by the names of its parameters alone."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return f"{name}: Any"
    listed = [p.replace(annotation=inspect.Parameter.empty, default=p.default if p.default is p.empty else ...) for p in signature.parameters.values()]
    text = str(signature.replace(parameters=listed, return_annotation=inspect.Signature.empty)).replace("Ellipsis", "...")
    return f"def {name}{text}: ..."


def other_members(example, known):
    """What a tensor has besides operators: methods by their parameters, attributes by the types that they have on a tensor."""
    lines = []
    for name in sorted(set(dir(type(example))) - known):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = getattr(example, name, None)
        if name.startswith("_") or keyword.iskeyword(name) or value is None:
            continue
        if callable(value):
            lines.append(f"    def {name}(self, *args: Any, **kwargs: Any) -> Any: ...")
        else:
            lines.append(f"    {name}: {'bool' if isinstance(value, bool) else 'Any'}")
    return lines


def package_stub(path, prefix, by_name):
    """The names of a package: from where they are written, operators by their schemas, others by their parameters."""
    package, lines = importlib.import_module(f"umbra.{path}"), []
    parts = [m.name for m in pkgutil.iter_modules(getattr(package, "__path__", ())) if not m.name.startswith("_")]
    lines += [f"from {package.__name__} import {name} as {name}" for name in parts]
    for name, value in sorted(vars(package).items()):
        home = getattr(value, "__module__", None)
        if name.startswith("_") or keyword.iskeyword(name) or name in ("annotations", "Tensor", "Generator", "SymInt", *parts):
            continue
        if inspect.ismodule(value):
            continue
        elif home and home.startswith("umbra.") and home not in ("umbra._C", package.__name__) and name in written(home):
            lines.append(f"from {home} import {name} as {name}")
        elif prefix + name in by_name and not inspect.isfunction(value):
            lines += definitions(name, by_name[prefix + name])
        elif isinstance(value, type):
            lines.append(f"class {name}:\n    def __init__(self, *args: Any, **kwargs: Any) -> None: ...\n    def __getattr__(self, name: str) -> Any: ...")
        elif callable(value):
            lines.append(untyped(name, value))
        else:
            lines.append(f"{name}: Any")
    return "\n".join(lines)


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
    imports = "from typing import Any, Iterator, NamedTuple, Sequence, overload\n\nNumber = int | float | bool | complex\n"
    methods, functions = [], []
    modules = {m.name for m in pkgutil.iter_modules(umbra.__path__)}
    for name in sorted(by_name):
        if name not in modules:  # `umbra.random` is the module
            functions += definitions(name, by_name[name])
        with_self = [s for s in by_name[name] if s.arguments and s.arguments[0].name == "self" and str(s.arguments[0].type) == "Tensor"
                     and not any(a.is_out for a in s.arguments)]
        if with_self and f"def {name}(" not in TENSOR_ATTRIBUTES and f"    {name}: " not in TENSOR_ATTRIBUTES:
            methods += definitions(name, with_self, "    ", as_method=True)
    known = set(re.findall(r"def (\w+)|^    (\w+): ", "\n".join([TENSOR_ATTRIBUTES, *methods]), re.M))
    methods += other_members(umbra.ones(1), {name for names in known for name in names})
    for symbol in OPERATORS:
        names = [n for n in (f"__{symbol}__", f"__r{symbol}__") if n not in by_name]
        methods += [f"    def {n}(self, other: Any) -> Tensor: ..." for n in names]
    value_aliases = "".join(f"_{n} = {n}\n" for n in ("dtype", "device", "layout", "memory_format"))
    body = imports + VALUE_TYPES + "\nclass Tensor:\n" + TENSOR_ATTRIBUTES + "\n".join(methods)
    names = "Generator, Size, SymBool, SymFloat, SymInt, Tensor, UntypedStorage, device, dtype, layout, memory_format"
    constants = sorted(n for n, v in vars(umbra).items() if isinstance(v, (umbra.dtype, umbra.layout, umbra.memory_format)))
    kinds = [f"{n}: _{type(getattr(umbra, n)).__name__}" for n in constants]
    aliases = "from umbra._C import dtype as _dtype, device as _device, layout as _layout, memory_format as _memory_format\n"
    exported = "".join(f"from umbra._C import {n} as {n}\n" for n in names.split(", "))
    packages = {path: package_stub(path, prefix, by_name) for path, prefix in PACKAGES.items()}
    aliases += "".join(f"from umbra._C import {n} as {n}\n" for n in sorted(NAMED_RESULTS))
    head = HEAD + BUILTINS + aliases
    text = (head + exported + private(imports) + "\n" + "\n".join(kinds) + "\n" + private("\n".join(functions) + FUNCTIONS))
    # Operators that are registered later are names of the package, too.
    last = "\n\ndef __getattr__(name: str) -> Any: ...\n"
    write(out / "__init__.pyi", text + private(others(umbra, text)) + last)
    types = "from umbra._C import Generator as Generator, SymInt as SymInt, Tensor as Tensor\n"
    for path, stub in packages.items():
        folder = out / path.replace(".", "/")
        write(folder / "__init__.pyi" if folder.is_dir() else folder.with_suffix(".pyi"), head + types + private(imports) + private(stub) + last)
    write(out / "_C.pyi", HEAD + BUILTINS + private(body) + "\n\n" + value_aliases + "TensorBase = Tensor\nclass FakeTensor(Tensor): ...\n"
          + named_results() + last)


if __name__ == "__main__":
    main()
