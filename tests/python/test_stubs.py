"""The type stubs, which the build writes, know the names of the package."""
import ast
import pathlib

import umbra


def declared():
    """What a checker knows of each name: the node of the stub that declares it."""
    tree = ast.parse((pathlib.Path(umbra.__file__).parent / "__init__.pyi").read_text())
    names = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            names[node.target.id] = node
        elif isinstance(node, ast.ImportFrom):
            names.update({alias.asname or alias.name: node for alias in node.names})
    return names


def test_every_public_name_is_declared():
    public = {name for name in vars(umbra) if not name.startswith("_")} - {"torch"}  # umbra.torch is the package itself
    assert sorted((public | set(umbra._LAZY)) - set(declared())) == []


def test_what_users_call_first_has_a_type():
    names = declared()
    assert ast.unparse(names["tensor"].returns) == "Tensor"
    assert ast.unparse(names["manual_seed"].returns) == "Generator"
    assert ast.unparse(names["get_default_dtype"].returns) == "_dtype"
    assert names["no_grad"].module == "umbra.autograd.grad_mode"
