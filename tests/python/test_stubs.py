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


FOLDER = pathlib.Path(umbra.__file__).parent


def signatures(stub, name, owner=None):
    """The parameters of each overload that a stub declares of a function or a method."""
    body = ast.parse((FOLDER / stub).read_text()).body
    if owner:
        body = next(node for node in body if isinstance(node, ast.ClassDef) and node.name == owner).body
    return [ast.unparse(node.args) for node in body if isinstance(node, ast.FunctionDef) and node.name == name]


def test_stubs_compile():
    stubs = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.pyi"))
    assert {"__init__.pyi", "_C.pyi", "nn/__init__.pyi", "utils/data/__init__.pyi", "linalg.pyi"} <= set(stubs)
    for stub in stubs:
        compile((FOLDER / stub).read_text(), stub, "exec")  # refuses a parameter that is there twice, as the syntax tree does not


def test_factories_take_requires_grad_and_sizes_one_by_one():
    assert any(parameters.startswith("*size: _int") and "requires_grad" in parameters for parameters in signatures("__init__.pyi", "zeros"))


def test_tensors_are_given_one_by_one():
    assert any("*tensors: Tensor" in parameters for parameters in signatures("__init__.pyi", "einsum"))


def test_several_results_go_by_their_names_and_into_one_out():
    tree = ast.parse((FOLDER / "_C.pyi").read_text())
    results = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "_values_indices")
    assert [field.target.id for field in results.body] == ["values", "indices"]
    assert "out: tuple[Tensor, Tensor]" in " ".join(signatures("__init__.pyi", "topk"))


def test_a_tensor_has_what_is_no_operator():
    text = (FOLDER / "_C.pyi").read_text()
    for line in ("def __neg__(self) -> Tensor", "def __gt__(self, other: Any) -> Tensor", "    is_cuda: _bool", "def nelement(self,"):
        assert line in text, line


def test_layers_come_from_where_they_are_written():
    text = (FOLDER / "nn/__init__.pyi").read_text()
    assert "from umbra.nn.modules.linear import Linear as Linear" in text and "from umbra.nn import functional as functional" in text
    assert signatures("nn/functional/__init__.pyi", "relu") == ["input, inplace=..."]


def test_completion_knows_what_is_loaded_on_demand():
    assert {"nn", "optim", "export", "compile", "vmap", "utils", "distributions"} <= set(dir(umbra))
    assert {"utils", "functional", "Linear"} <= set(dir(umbra.nn)) and {"data", "checkpoint"} <= set(dir(umbra.utils))
    for module in (umbra, umbra.nn, umbra.utils, umbra.optim, umbra.export):
        assert "lazy_submodules" not in dir(module)
        assert [name for name in dir(module) if not hasattr(module, name)] == []


def test_functions_in_python_are_called_as_they_may_be():
    assert "self, *, as_tuple: _bool" in signatures("_C.pyi", "nonzero", "Tensor") and "input: Tensor, *, as_tuple: _bool" in signatures("__init__.pyi", "nonzero")
    assert any("p: _float | str | None" in parameters for parameters in signatures("_C.pyi", "norm", "Tensor"))
    assert any(parameters.startswith("a: Tensor, b: Tensor, dims: _int") for parameters in signatures("__init__.pyi", "tensordot"))
