"""Sizes that only the run tells: what operators ask of them is checked when the program runs, and told as PyTorch tells it."""
import io

import pytest

import umbra
from umbra.export import export, load, save


def module_of(function):
    class Module(umbra.nn.Module):
        def forward(self, x, k=None):
            return function(x) if k is None else function(x, k)
    return Module()


def checks(program):
    """What the program asserts, in order."""
    return [node.args[1].split(" expression ")[1].split(" on node")[0] for node in program.graph.nodes
            if node.target is umbra.ops.aten._assert_scalar.default]


X = umbra.arange(24.0).view(4, 6)


@pytest.mark.parametrize("function, good, expected", [
    (lambda x, k: x.topk(k, 1).values, 3, ["u0 >= 0", "u0 <= 6"]),
    (lambda x, k: umbra.nn.functional.pad(x, (0, k)), 2, ["u0 >= -6", "0 <= u0 + 6"]),
    (lambda x, k: umbra.nn.functional.pad(x, (0, -k)), 2, ["u0 <= 6"]),
    (lambda x, k: umbra.arange(0, 10, k), 3, ["u0 >= 1"]),
    (lambda x, k: umbra.randperm(k).sort().values, 5, ["u0 >= 0"]),
    (lambda x, k: x[None].expand(k, 4, 6), 2, ["u0 >= 0"]),
    (lambda x, k: x.repeat(k, 1), 2, ["u0 >= 0"]),
    (lambda x, k: umbra.rand(k) * 0, 2, ["u0 >= 0"]),
    (lambda x, k: x.view(k, -1), 8, ["u0 >= 1", "Ne(u0, 0)", "Eq(Mod(24, u0), 0)"]),
])
def test_what_operators_ask_of_a_size(function, good, expected):
    program = export(module_of(lambda x, k: function(x, k.item())), (X, umbra.tensor(2)))
    assert checks(program)[:len(expected)] == expected
    assert program.module()(X, umbra.tensor(good)).tolist() == function(X, good).tolist()
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        program.module()(X, umbra.tensor(7 if expected == ["u0 <= 6"] else -7))


def test_a_dimension_that_is_unflattened_by_data():
    def forward(x, k):
        rows = k.item()
        umbra._check(rows >= 1)
        return x.flatten().unflatten(0, (rows, -1))
    module = export(module_of(forward), (X, umbra.tensor(2))).module()
    assert module(X, umbra.tensor(8)).shape == (8, 3)
    with pytest.raises(RuntimeError, match="Mod"):
        module(X, umbra.tensor(7))


@pytest.mark.parametrize("check, expected, bounds", [
    (lambda u, n: u + 3 <= 16, ["u0 <= 13"], "VR[-int_oo, 13]"),
    (lambda u, n: u - 3 >= 0, ["u0 >= 3"], "VR[3, int_oo]"),
    (lambda u, n: u * 2 < 40, ["u0 <= 19", "u0 < 20"], "VR[-int_oo, 19]"),
    (lambda u, n: u >= -1, ["u0 >= -1", "0 <= u0 + 1"], "VR[-1, int_oo]"),
    (lambda u, n: -u < 9, ["u0 >= -8", "0 < u0 + 9"], "VR[-8, int_oo]"),
    (lambda u, n: u + n <= 16, ["u0 <= 14", "s77 + u0 <= 16"], "VR[-int_oo, 14]"),
    (lambda u, n: (u > 2) & (u < 9), ["u0 >= 3", "u0 <= 8", "(2 < u0) & (u0 < 9)"], "VR[3, 8]"),
])
def test_checks_are_kept_as_pytorch_keeps_them(check, expected, bounds):
    def forward(x, k):
        u = k.item()
        umbra._check(check(u, x.shape[0]))
        return x * u
    program = export(module_of(forward), (umbra.ones(4), umbra.tensor(5)), dynamic_shapes=({0: umbra.export.Dim.AUTO}, None))
    assert checks(program) == expected
    assert str({str(symbol): bound for symbol, bound in program.range_constraints.items()}["u0"]) == bounds


def test_a_float_from_data_stays_one_in_a_file():
    def forward(x):
        total = x.sum().item()
        umbra._check(total > 0)
        return x * total
    file = io.BytesIO()
    save(export(module_of(forward), (umbra.ones(3),)), file)
    loaded = load(file)
    assert 'gt_1: "Sym(zuf0 > 0.0)"' in str(loaded) and str(loaded).count("zuf0: VR[-int_oo, int_oo]") == 1
    assert loaded.module()(umbra.full((3,), 2.0)).tolist() == [12, 12, 12]


def test_ranges_of_numbers_that_a_file_does_not_use_are_let_go():
    def forward(x, k):
        umbra._check(k.item() == x.shape[0])
        return x + umbra.zeros(k.item())
    program = export(module_of(forward), (umbra.ones(4), umbra.tensor(4)), dynamic_shapes=({0: umbra.export.Dim.AUTO}, None))
    file = io.BytesIO()
    save(program, file)
    assert [str(symbol) for symbol in load(file).range_constraints] == ["s77"]


@pytest.mark.parametrize("given", [2.5, -2.5, 0.0, -0.0, float("inf"), float("nan")])
def test_the_absolute_value_of_a_number_is_no_branch(given):
    program = export(module_of(lambda x, k: (abs(k.item()), 1 / (x * abs(k.item())))), (umbra.ones(2), umbra.tensor(3.0)))
    number, tensor = program.module()(umbra.ones(2), umbra.tensor(given))
    assert repr(number) == repr(abs(given))
    assert repr(tensor.tolist()) == repr((1 / (umbra.ones(2) * abs(given))).tolist())


def test_the_absolute_value_of_half_a_size_holds_for_all_sizes():
    program = export(module_of(lambda x: x * abs(x.shape[0] / 2 - 5)), (umbra.ones(3),), dynamic_shapes=({0: umbra.export.Dim.DYNAMIC},))
    assert [program.module()(umbra.ones(n))[0].item() for n in (3, 10, 20)] == [3.5, 0, 5]


def test_a_part_whose_length_only_the_run_tells_is_one_size_where_a_program_is_decomposed():
    program = export(module_of(lambda x, k: x[:k.item()] * 2), (umbra.arange(6.0), umbra.tensor(2)))
    for table in (None, {}):
        decomposed = program.run_decompositions() if table is None else program.run_decompositions(table)
        assert checks(decomposed) == ["u1 >= 0", "u1 <= 6"]
        assert [str(symbol) for symbol in decomposed.range_constraints] == ["u0", "u1"]
        assert [len(decomposed.module()(umbra.arange(6.0), umbra.tensor(k))) for k in (0, 2, 9, -2)] == [0, 2, 6, 4]
