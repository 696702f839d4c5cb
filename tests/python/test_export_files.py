"""What files keep of a program: the types of containers, results that are lists, users' operators that write, calls as PyTorch's files have them."""
import collections
import dataclasses
import io
import json
import math
import pickle
import zipfile

import pytest

import umbra as torch
from export_functions import Function, reloaded, saved
from umbra.export import Dim, export
from umbra.utils import _pytree as pytree

X = torch.arange(6.0).view(2, 3)


def stored(program):
    """The JSON of the program's file."""
    with zipfile.ZipFile(saved(program)) as archive:
        return json.loads(archive.read(next(name for name in archive.namelist() if name.endswith("model.json"))))


def changed(program, change):
    """The program of a file whose JSON was changed: as another program wrote it."""
    file = io.BytesIO()
    with zipfile.ZipFile(saved(program)) as archive, zipfile.ZipFile(file, "w") as out:
        for name in archive.namelist():
            data = archive.read(name)
            if name.endswith("model.json"):
                whole = json.loads(data)
                change(whole["graph_module"]["graph"])
                data = json.dumps(whole).encode()
            out.writestr(name, data)
    file.seek(0)
    return torch.export.load(file)


# ---- containers ----

Pair = collections.namedtuple("Pair", "first second")


@dataclasses.dataclass
class Settings:
    scale: torch.Tensor
    offset: object = None


@pytest.fixture
def named():
    """Names for files of this test's classes."""
    pytree._register_namedtuple(Pair, serialized_type_name="test.Pair")
    torch.export.register_dataclass(Settings, serialized_type_name="test.Settings")
    yield
    pytree._deregister_pytree_node(Settings)
    del pytree.SUPPORTED_SERIALIZED_TYPES[Pair], pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE["test.Pair"]


CONTAINERS = {
    "ordered": collections.OrderedDict(b=X, a=X + 1),
    "default": collections.defaultdict(list, b=X),
    "deque": collections.deque([X], maxlen=3),
    "numbers": {3: X, 1: X + 1},
    "named": Pair(X, X + 1),
    "dataclass": Settings(X),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_a_file_keeps_the_types_of_containers(kind, named):
    container = CONTAINERS[kind]
    module = reloaded(export(Function(lambda x: x), (container,))).module()
    result = module(container)
    assert type(result) is type(container)
    leaves, spec = pytree.tree_flatten(container)
    assert pytree.tree_structure(result) == spec
    assert all(torch.equal(a, b) for a, b in zip(pytree.tree_leaves(result), leaves))


def test_a_file_keeps_the_types_of_results():
    result = reloaded(export(Function(lambda x: (x.max(0), x.shape)), (X,))).module()(X)
    assert type(result[0]) is type(X.max(0)) and result[0].indices.tolist() == [1, 1, 1] and tuple(result[1]) == (2, 3)


def test_files_name_containers_as_pytorch_does(named):
    entry = stored(export(Function(lambda x, y: x[2] + y.first), ({2: X}, Pair(X, X))))["graph_module"]["module_call_graph"][0]["signature"]
    numbers, pair = json.loads(entry["in_spec"])[1]["children_spec"][0]["children_spec"]
    assert (numbers["type"], numbers["context"]) == ("builtins.dict", "[2]")
    assert (pair["type"], pair["context"]) == ("collections.namedtuple", "test.Pair")


def test_a_file_has_the_names_of_a_named_tuples_elements_and_guards_go_by_them(named):
    size = Dim("n")
    program = export(Function(lambda x: x.first + x.second), (Pair(X, X + 1),), dynamic_shapes=(Pair({0: size}, {0: size}),))
    assert stored(program)["graph_module"]["treespec_namedtuple_fields"] == {"test.Pair": {"field_names": ["first", "second"]}}
    data = io.BytesIO()
    with zipfile.ZipFile(saved(program)) as archive, zipfile.ZipFile(data, "w") as out:
        for name in archive.namelist():
            whole = json.loads(archive.read(name)) if name.endswith("model.json") else None
            if whole:
                whole["guards_code"] = ["L['x'].first.size()[0] == L['x'].second.size()[0]"]  # as PyTorch writes it
            out.writestr(name, json.dumps(whole) if whole else archive.read(name))
    data.seek(0)
    module = torch.export.load(data).module()
    assert torch.equal(module(Pair(X[:1], X[1:])), X[:1] + X[1:])
    with pytest.raises(AssertionError, match=r"x\.first\.size\(\)\[0\] == x\.second\.size\(\)\[0\]"):
        module(Pair(X, torch.ones(3, 3)))


def test_a_container_without_a_name_is_refused_by_save():
    with pytest.raises(NotImplementedError, match="_register_namedtuple"):
        saved(export(Function(lambda x: x.first + x.second), (Pair(X, X),)))


def test_a_container_that_nobody_knows_is_a_tuple_and_stays_what_it_is(named):
    file = saved(export(Function(lambda x: x.first + x.second), (Pair(X, X),)))
    del pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE["test.Pair"]
    try:
        program = torch.export.load(io.BytesIO(file.getvalue()))
        assert torch.equal(program.module()((X, X)), X + X)
        assert "test.Pair" in stored(program)["graph_module"]["module_call_graph"][0]["signature"]["in_spec"]
    finally:
        pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE["test.Pair"] = Pair


# ---- results, operators ----

def grow(x, by):
    x.add_(by)


@pytest.fixture
def library():
    lib = torch.library.Library("file_tests", "FRAGMENT")
    lib.define("parts(Tensor x, str[] names) -> (Tensor, Tensor[])")
    lib.impl("parts", lambda x, names: (x * 2, [x + len(name) for name in names]), "CompositeExplicitAutograd")
    lib.define("grow(Tensor(a!) x, Tensor by) -> ()")
    lib.impl("grow", grow, "CompositeExplicitAutograd")
    torch.library.register_fake("file_tests::grow", lambda x, by: None, lib=lib)
    yield
    lib._destroy()


def test_one_of_several_results_may_be_a_list(library):
    def function(x):
        whole, parts = torch.ops.file_tests.parts(x, ["a", "bcd"])
        return whole + parts[0] * parts[1]
    program = export(Function(function), (X,))
    outputs = next(node["outputs"] for node in stored(program)["graph_module"]["graph"]["nodes"] if "parts" in node["target"])
    assert [next(iter(output)) for output in outputs] == ["as_tensor", "as_tensors"]
    assert torch.equal(reloaded(program).module()(X), function(X))
    assert torch.equal(reloaded(reloaded(program)).module()(X), function(X))


def test_programs_without_writes_call_users_operators_by_auto_functionalized(library):
    def function(x, y):
        grown = x.clone()
        torch.ops.file_tests.grow(grown, y)
        return grown * 2
    program = export(Function(function), (X, X)).run_decompositions()
    assert "torch.ops.higher_order.auto_functionalized_v2(torch.ops.file_tests.grow.default, by = " in program.graph_module.code
    for each in (program, reloaded(program), program.run_decompositions()):
        assert torch.equal(each.module()(X, X), function(X, X))


def predispatch(target, arguments, result=None):
    """A call as PyTorch's programs have it where code calls torch.vmap."""
    inputs = [{"name": "", "arg": argument, "kind": 1} for argument in arguments]
    return {"target": f"torch._functorch.predispatch.{target}", "name": result or target, "inputs": inputs, "metadata": {}, "is_hop_single_tensor_return": None,
            "outputs": [{"as_tensor": {"name": result}} if result else {"as_none": True}]}


def calling_vmap(level=1):
    """A program of sum(vmap(sin)(x)), as PyTorch writes it; its result is said to be of a level, of which there is one."""
    def change(graph):
        values, tensor = graph["tensor_values"], lambda name: {"as_tensor": {"name": name}}
        sine, total = graph["nodes"]
        values["row"] = values["wave"] = {**values["x"], "sizes": values["x"]["sizes"][1:], "strides": values["x"]["strides"][1:]}
        sine["inputs"][0]["arg"], sine["outputs"][0], sine["name"] = tensor("row"), tensor("wave"), "wave"
        graph["nodes"] = [predispatch("lazy_load_decompositions", []),
                          predispatch("_vmap_increment_nesting", [{"as_int": 2}, {"as_string": "error"}]),
                          predispatch("_add_batch_dim", [tensor("x"), {"as_int": 0}, {"as_int": 1}], "row"), sine,
                          predispatch("_remove_batch_dim", [tensor("wave"), {"as_int": level}, {"as_int": 2}, {"as_int": 0}], "sin"),
                          predispatch("_vmap_decrement_nesting", []), total]
    return changed(export(Function(lambda x: x.sin().sum()), (X,)), change)


def test_the_parts_of_a_vmap_run():
    program = calling_vmap()
    assert "torch._functorch.predispatch._add_batch_dim(x, 0, 1)" in program.graph_module.code
    for each in (program, reloaded(program), program.run_decompositions()):
        assert each.module()(X).item() == pytest.approx(X.sin().sum().item())


def test_an_error_inside_of_a_programs_vmap_ends_it():
    broken = calling_vmap(level=2)
    for _ in range(2):
        with pytest.raises(IndexError, match="names the level 2 of 1 vmaps"):
            broken.module()(X)
    assert calling_vmap().module()(X).item() == pytest.approx(X.sin().sum().item())


def test_a_program_is_pickled():
    program = pickle.loads(pickle.dumps(export(torch.nn.Linear(3, 2), (X,))))
    assert program.module()(X).shape == (2, 2) and list(program.state_dict) == ["weight", "bias"]


# ---- archives ----

def test_archives_file_by_file(tmp_path):
    from umbra.export.pt2_archive import PT2ArchiveReader, PT2ArchiveWriter, is_pt2_package
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "folder" / "inner" / "text").write_text("inside")
    for target in (tmp_path / "own.pt2", io.BytesIO()):
        with PT2ArchiveWriter(target) as writer:
            writer.write_string("extra/note", "hello")
            writer.write_bytes("data/raw", b"\0\1")
            writer.write_folder("copy", str(tmp_path / "folder"))
            assert writer.has_record("data/raw") and not writer.has_record("raw") and writer.count_prefix("data/") == 1
            for name, wrong in (("write_string", b"x"), ("write_bytes", "x"), ("write_file", "nowhere"), ("write_folder", "nowhere")):
                with pytest.raises(AssertionError):
                    getattr(writer, name)("name", wrong)
        with PT2ArchiveReader(target) as reader:
            assert reader.get_file_names()[:3] == ["extra/note", "data/raw", "copy/inner/text"] and reader.archive_version() == 0
            assert reader.read_string("extra/note") == "hello" and reader.read_bytes("data/raw") == b"\0\1"
            with pytest.raises(RuntimeError, match="no file other"):
                reader.read_bytes("other")
        assert is_pt2_package(target.getvalue() if isinstance(target, io.BytesIO) else str(target))


def test_what_is_an_archive_of_programs(tmp_path):
    from umbra.export.pt2_archive import is_pt2_package
    torch.export.save(export(torch.nn.Linear(1, 1), (torch.ones(1, 1),)), tmp_path / "program.pt2")
    (tmp_path / "text").write_text("no")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("a", "b")
    assert [is_pt2_package(str(tmp_path / name)) for name in ("program.pt2", "text", "other.zip", "nowhere")] == [True, False, False, False]


def test_a_file_object_is_read_wherever_it_stands():
    file = saved(export(Function(torch.sin), (torch.ones(2),)))
    file.seek(0, io.SEEK_END)
    assert torch.equal(torch.export.load(file).module()(torch.ones(2)), torch.ones(2).sin())


def test_a_file_keeps_what_users_have_noted_of_nodes():
    program = export(Function(lambda x: x.sin() + 1), (X,))
    notes = {"quantised": True, "bits": 8, "scales": [0.5, None], "long": "x" * 50}
    for node in program.graph.nodes:
        if node.name == "sin":
            node.meta["custom"] = notes
    again = reloaded(program)
    shown = "Annotation: {'quantised': True, 'bits': 8, 'scales': [0.5, None], 'long': '" + "x" * 40 + "...'} "
    assert shown in str(program) and shown in str(again)  # before and after the notes have become objects of Python
    assert {node.name: node.meta["custom"] for node in again.graph.nodes if "custom" in node.meta} == {"sin": notes}
    assert shown in str(again) and shown in str(reloaded(again))


def test_notes_that_a_file_has_no_form_for_are_refused_by_name():
    program = export(Function(torch.sin), (X,))
    next(node for node in program.graph.nodes if node.name == "sin").meta["custom"] = {"object": object()}
    with pytest.raises(RuntimeError, match="Failed to serialize custom metadata for node sin with error"):
        saved(program)


def test_weights_of_the_meta_device_stay_there():
    with torch.device("meta"):
        layer = torch.nn.Linear(3, 2)
    again = reloaded(export(layer, (torch.empty(4, 3, device="meta"),)))
    weight = again.state_dict["weight"]
    assert weight.is_meta and weight.shape == (2, 3) and isinstance(weight, torch.nn.Parameter)
    assert again.module()(torch.empty(4, 3, device="meta")).shape == (4, 2)


# ---- programs in parts ----

def test_programs_become_bytes_and_programs_again():
    from umbra._export.serde.serialize import deserialize, serialize
    model = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.BatchNorm1d(2)).eval()
    program = export(model, (torch.randn(3, 4),), dynamic_shapes=({0: Dim("rows")},))
    artifact = serialize(program)
    assert [node["target"] for node in json.loads(artifact.exported_program)["graph_module"]["graph"]["nodes"]][0] == "torch.ops.aten.linear.default"
    assert list(torch.load(io.BytesIO(artifact.state_dict))) == list(program.state_dict)
    again = deserialize(artifact)
    x = torch.randn(5, 4)
    assert str(again) == str(program)
    assert torch.equal(again.module()(x), model(x))
    assert again.example_inputs[0][0].shape == (3, 4)


def test_parts_of_another_version_are_refused():
    from umbra._export.serde.serialize import SerializeError, deserialize, serialize
    artifact = serialize(export(torch.nn.ReLU(), (torch.ones(2),)))
    artifact.exported_program = artifact.exported_program.replace(b'"major": 8', b'"major": 9')
    with pytest.raises(SerializeError, match="schema version 9"):
        deserialize(artifact)
    artifact.exported_program = b""
    with pytest.raises(SerializeError, match="holds no program"):
        deserialize(artifact)


def test_programs_that_round_sizes_are_read_again():
    program = export(Function(lambda x: x.new_zeros(round(x.shape[0] / 2)) + math.ceil(x.shape[0] / 2)), (torch.ones(3, 4),), dynamic_shapes={"x": {0: Dim("n")}})
    again = reloaded(program)
    for rows in (4, 5, 7):
        assert torch.equal(again.module()(torch.ones(rows, 4)), torch.zeros(round(rows / 2)) + math.ceil(rows / 2))


def test_a_choice_by_data_in_a_file_is_read_as_sympy_writes_it():
    def spell_out(graph):
        number = "Equality(Symbol('u0', integer=True), Integer(1))"
        choice = f"Equality(Piecewise(ExprCondPair(Integer(1), {number}), ExprCondPair(Integer(0), true)), Integer(1))"
        (value,) = graph["sym_bool_values"].values()
        assert value["as_expr"]["expr_str"] == number
        value["as_expr"]["expr_str"] = choice
    module = changed(export(Function(lambda x: x * (x.sum() > 3).item()), (torch.ones(3),)), spell_out).module()
    assert module(torch.ones(3)).tolist() == [0, 0, 0] and module(torch.full((3,), 2.0)).tolist() == [2, 2, 2]


@dataclasses.dataclass
class Counted:
    x: torch.Tensor
    n: int = 2


def test_containers_that_the_program_has_registered_are_known_in_example_inputs():
    torch.export.register_dataclass(Counted, serialized_type_name="tests.Counted")
    file = saved(export(Function(lambda c: c.x * c.n), (Counted(torch.ones(2), 3),)))
    assert zipfile.ZipFile(file).namelist()[0].startswith("archive/")
    file.seek(0)
    (counted,), kwargs = torch.export.load(file).example_inputs
    assert type(counted) is Counted and counted.x.tolist() == [1, 1] and counted.n == 3 and kwargs == {}


def test_a_program_from_a_file_is_decomposed_for_the_sizes_it_takes():
    program = export(Function(lambda x, p: (x + p).softmax(-1)), (torch.ones(2, 3), torch.ones(1, 3)), dynamic_shapes=({0: Dim("b", min=0, max=16)}, None))
    for decomposed in (program.run_decompositions(), reloaded(program).run_decompositions()):
        module = decomposed.module()
        assert [module(torch.ones(n, 3), torch.ones(1, 3)).shape[0] for n in (0, 1, 2, 16)] == [0, 1, 2, 16]
        assert [str(r) for r in decomposed.range_constraints.values()] == ["VR[0, 16]"]
