"""The package uses no name of its own that it does not have."""
import ast
import importlib
import pathlib
import types

import umbra


def chains(path):
    """`umbra.a.b` in a file, as lists of names with the line."""
    for node in ast.walk(ast.parse(path.read_text())):
        names, inner = [], node
        while isinstance(inner, ast.Attribute):
            names.append(inner.attr)
            inner = inner.value
        if names and isinstance(inner, ast.Name) and inner.id == "umbra" and isinstance(node.ctx, ast.Load):
            yield names[::-1], node.lineno


def missing(names):
    """The part of a chain that is not there, or None. Only modules are looked into."""
    module = umbra
    for i, name in enumerate(names):
        if not isinstance(module, types.ModuleType):
            return None
        if not hasattr(module, name):
            try:
                importlib.import_module(f"{module.__name__}.{name}")
            except ImportError:
                return ".".join(names[:i + 1])
        module = getattr(module, name)
    return None


def test_names_that_the_package_uses_are_there():
    folder = pathlib.Path(umbra.__file__).parent
    used = [(path, names, line) for path in sorted(folder.rglob("*.py")) for names, line in chains(path)]
    assert len(used) > 1000
    absent = [f"{path.relative_to(folder)}:{line}: umbra.{name}" for path, names, line in used if (name := missing(names))]
    assert not absent


def test_operators_that_are_no_methods_in_torch_are_none_here():
    x = umbra.ones(2)
    for name in ("copy", "fill", "gelu", "softplus", "view_as_real", "rsub", "exponential", "empty_like", "permute_copy"):
        assert not hasattr(x, name), name
    assert x.fill_(2).clone().tolist() == [2, 2] and umbra.ops.aten.copy(x, x).tolist() == [2, 2]
