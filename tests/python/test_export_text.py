"""What exported graphs look like, as PyTorch 2.15 writes them: where sizes are read, the order of operands, names."""
import functools

import pytest

import umbra as torch
from export_functions import Function, reloaded
from umbra._higher_order_ops.while_loop import while_loop
from umbra.export import Dim, export

THREE = torch.full((3,), 2.0)


def sizes(program):
    """The nodes that read sizes: {name: what it reads}."""
    return {node.name: tuple(map(str, node.args)) for node in program.graph.nodes if str(node.target) == "aten.sym_size.int"}


D, E = Dim("d"), Dim("e")


@pytest.mark.parametrize("shapes, function, before, after", [
    (({0: D},), lambda x: torch.zeros(x.shape[0]), {"sym_size_int_1": ("x", "0")}, {"sym_size_int_1": ("x", "0")}),
    (({0: D}, {0: D}), lambda x, y: torch.zeros(x.shape[0]), {"sym_size_int_2": ("y", "0")}, {"sym_size_int_3": ("y", "0")}),
    (({0: D}, {0: E}), lambda x, y: torch.zeros(y.shape[0]), {"sym_size_int_2": ("y", "0")}, {"sym_size_int_2": ("y", "0")}),
    (({0: D, 1: E}, {0: D, 1: E}), lambda x, y: torch.zeros(y.shape[0]), {"sym_size_int_3": ("y", "0")}, {"sym_size_int_6": ("y", "0")}),
    (({0: D}, {1: D + 1}), lambda x, y: (torch.zeros(x.shape[0]), torch.zeros(y.shape[1])),
     {"sym_size_int_2": ("x", "0"), "sym_size_int_1": ("y", "1")}, None)])
def test_sizes_are_read_from_the_input_that_names_them(shapes, function, before, after):
    program = export(Function(function), tuple(torch.ones(5, 6) for _ in shapes), dynamic_shapes=shapes)
    assert sizes(program) == before
    assert after is None or sizes(program.run_decompositions()) == after


def test_arithmetic_stands_where_it_is_made():
    def function(x):
        double = x.shape[0] * 2
        return torch.zeros(3), double
    program = export(Function(function), (torch.ones(5),), dynamic_shapes=({0: D},))
    names = [node.name for node in program.graph.nodes if node.op == "call_function"]
    assert names[1:] == ["mul", "zeros"]


def test_numbers_of_the_run_keep_their_names():
    def function(x):
        n = x.item()
        torch._check(n >= 2)
        torch._check(n != 5)
        return torch.zeros(n), x.nonzero()
    program = export(Function(function), (torch.tensor(3),))
    again = program.run_decompositions()
    assert str(program.range_constraints) == str(again.range_constraints)
    assert "torch.sym_not(eq_" in again.graph_module.code or "torch.sym_not(eq)" in again.graph_module.code
    for one in (program, again, reloaded(again), again.run_decompositions()):
        assert one.module()(torch.tensor(3))[0].shape == (3,)
        for bad in (1, 5):
            with pytest.raises(RuntimeError, match="Runtime assertion failed for expression .*u0"):
                one.module()(torch.tensor(bad))


# ---- operands ----

def operands(program, name="cond"):
    (call,) = [node for node in program.graph.nodes if node.op == "call_function" and str(node.target) == name]
    return [str(operand) for operand in call.args[-1]]


class Branches(torch.nn.Module):
    """Functions that use more than they are given."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.b, self.a = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.full((3,), 3.0))
        self.register_buffer("c", torch.full((3,), 4.0))

    def true(self, x):
        return x + self.c + self.b + self.a

    def false(self, x):
        return x * self.a

    def forward(self, x, y, z):
        def shared(v):
            return v + y + z
        functions = {
            "methods": (self.true, self.false, (x,)),
            "cells": (shared, lambda v: v * z, (x,)),
            "operands": (lambda a, b: a + 1, lambda a, b: b + 1, (y, x)),
            "unused": (lambda a, b: a + 1, lambda a, b: a * 2, (x, y)),
            "trees": (lambda d, l: d["b"] + d["a"] + l[0], lambda d, l: d["a"] * l[0], ({"b": x, "a": y}, [z])),
            "global": (lambda v: v + THREE, lambda v: v * THREE, (x,)),
            "partial": (functools.partial(torch.add, z), functools.partial(torch.mul, y), (x,)),
            "helper": (lambda v: shared(v) + self.c, lambda v: v * z, (x,))}
        return torch.cond(x.sum() > 0, *functions[self.kind])


@pytest.mark.parametrize("kind, order", [
    ("methods", ["p_a", "x", "b_c", "p_b"]), ("cells", ["z", "x", "y"]), ("operands", ["y", "x"]), ("unused", ["x"]), ("trees", ["y", "z", "x"]),
    ("global", ["c_lifted_tensor_0", "x"]), ("partial", ["x", "z", "y"]), ("helper", ["z", "x", "b_c", "y"])])
def test_operands_of_cond_stand_as_pytorch_sorts_them(kind, order):
    module = Branches(kind)
    program = export(module, (torch.ones(3), torch.full((3,), 5.0), torch.full((3,), 7.0)))
    assert operands(program) == order
    for one in (program, reloaded(program), program.run_decompositions()):
        for sign in (1, -1):
            given = (sign * torch.ones(3), torch.full((3,), 5.0), torch.full((3,), 7.0))
            assert torch.equal(one.module()(*given), module(*given))


def test_operands_of_conds_inside_of_branches():
    def function(x, y, z):
        def inner(v):
            return torch.cond(v.sum() > 1, lambda u: u + y + z, lambda u: u * z, (v,))
        return torch.cond(x.sum() > 0, inner, lambda v: v + y, (x,))

    class Nested(torch.nn.Module):
        def forward(self, x, y, z):
            return function(x, y, z)
    program = export(Nested(), (torch.ones(3), torch.ones(3), torch.ones(3)))
    assert operands(program) == ["y", "x", "z"]
    for scale in (-1.0, 0.1, 1.0):
        given = (torch.full((3,), scale), torch.full((3,), 5.0), torch.full((3,), 7.0))
        assert torch.equal(program.module()(*given), function(*given))


def test_operands_of_while_loop():
    class Loop(Branches):
        def forward(self, x, y, z):
            return while_loop(lambda i, v: (i + y.sum()) < 5, lambda i, v: (i + 1, v + self.c + z + self.a + y), (torch.tensor(0), x))[1]
    program = export(Loop(""), (torch.ones(3), torch.zeros(3), torch.ones(3)))
    assert operands(program, "while_loop") == ["y", "b_c", "p_a", "z"]


def test_constants_written_in_several_functions():
    """Each run of a function makes them anew; they are one constant all the same."""
    class Constants(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda v: v + torch.tensor([1.0, 2.0]) + torch.tensor([1.0, 2.0]), lambda v: v * torch.tensor(2.0), (x,))
    program = export(Constants(), (torch.ones(2),))
    assert len(program.constants) == 3
    for one in (program, reloaded(program), program.run_decompositions()):
        assert one.module()(torch.ones(2)).tolist() == [3.0, 5.0] and one.module()(-torch.ones(2)).tolist() == [-2.0, -2.0]
    counts = export(Function(lambda i, x: while_loop(lambda i, x: i < torch.tensor(5), lambda i, x: (i + 1, x + torch.tensor(1.0)), (i, x))),
                    (torch.tensor(0), torch.ones(2)))
    assert counts.module()(torch.tensor(2), torch.zeros(2))[1].tolist() == [3.0, 3.0]


def test_assignment_of_one_element_is_a_copy():
    def function(x, value):
        x = x.clone()
        x[0] = value
        x[1:] = value
        return x
    program = export(Function(function), (torch.ones(3), torch.tensor(3.0)))
    assert [str(node.target) for node in program.graph.nodes if str(node.target).startswith(("aten.copy_", "aten.fill_"))] == [
        "aten.copy_.default", "aten.fill_.Tensor"]


def test_conjugates_and_adjoints():
    def targets(function, x):
        return [str(node.target) for node in export(Function(function), (x,)).graph.nodes if node.op == "call_function"]
    plain, complex_ = torch.ones(2, 2), torch.ones(2, 2, dtype=torch.complex64)
    assert targets(lambda x: x.conj() + 1, plain) == ["aten.add.Tensor"]
    assert targets(lambda x: x.conj(), complex_) == ["aten._conj.default"]
    assert targets(lambda x: (x.H, x.mH), complex_) == ["aten.matrix_H.default", "aten.mH.default"]


def test_own_tensors_stand_as_modules_have_them():
    """After run_decompositions: a module's own before those of its parts, constants among the buffers."""
    class Part(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("b", torch.ones(2))

        def forward(self, x):
            return x * torch.tensor([1.0, 2.0]) + self.b

    class Whole(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.z, self.a = Part(), Part()
            self.register_buffer("c", torch.ones(2))

        def forward(self, x):
            return self.a(self.z(x)) * torch.tensor([5.0, 6.0]) + self.c
    program = export(Whole(), (torch.ones(2),))
    assert [spec.target for spec in program.run_decompositions().graph_signature.input_specs] == [
        "c", "lifted_tensor_2", "z.b", "z.lifted_tensor_0", "a.b", "a.lifted_tensor_1", None]
    for one in (program, program.run_decompositions(), reloaded(program.run_decompositions())):
        assert torch.equal(one.module()(torch.ones(2)), Whole()(torch.ones(2)))


def test_an_index_with_symbols_leaves_out_what_is_whole():
    """As PyTorch's programs have it."""
    def code(function, *inputs):
        program = export(Function(function), inputs, dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO}, *[None] * (len(inputs) - 1)))
        return [line.strip() for line in program.graph_module.code.split("\n") if "slice" in line or "item" in line]

    x = torch.ones(4, 5)
    assert code(lambda x: x[:, :x.shape[0] - 1], x) == ["slice_1 = torch.ops.aten.slice.Tensor(x, 1, None, sub);  x = sub = None", "return (slice_1,)"]
    assert code(lambda x: x[1:, :x.shape[0] - 1], x)[0].startswith("slice_1 = torch.ops.aten.slice.Tensor(x, 0, 1)")
    assert code(lambda x, n: x[:n], x, torch.tensor(2))[0].startswith("item = torch.ops.aten.item.default(y)")


def named(function, *examples, dynamic):
    """The names of calls, and what they call."""
    graph = export(Function(function), examples, dynamic_shapes=dynamic).graph
    return {node.name: str(node.target) for node in graph.nodes if node.op == "call_function"}


def test_what_is_known_of_a_size_has_taken_a_name():
    def f(x):
        rows = x.shape[0]
        assert rows > 0 and rows * 2 > 3
        return (x > 1) * (rows * 2)
    assert list(named(f, torch.ones(4, 3), dynamic=({0: Dim.AUTO},))) == ["sym_size_int_1", "gt_2", "mul_1", "mul_2"]


@pytest.mark.parametrize("index, name", [((slice(None), 1), "sym_size_int_2"), ((slice(None), None), "sym_size_int_1"), (slice(1, None), "sym_size_int_1"),
                                         ((slice(None), slice(None, -1)), "sym_size_int_2"), (-1, "sym_size_int_1"), ((..., slice(1, None)), "sym_size_int_1")])
def test_an_index_reads_the_sizes_that_pytorchs_reads(index, name):
    assert name in named(lambda x: (x[index], x.new_zeros(x.shape[0])), torch.ones(4, 8), dynamic=({0: Dim.AUTO, 1: Dim.AUTO},))


def test_a_colon_over_a_bounded_size_is_no_call():
    assert "slice_1" in named(lambda x: x[:, 0], torch.ones(4, 3), dynamic=({0: Dim("n")},))
    assert "slice_1" not in named(lambda x: x[:, 0], torch.ones(4, 3), dynamic=({0: Dim("n", max=64)},))


def test_python_operators_of_bits_are_composites():
    def f(x):
        y = (x & x) | ~x
        y ^= x
        return y & True, True & y
    masks = torch.tensor([True, False])
    assert list(named(f, masks, dynamic=None).values()) == ["aten.__and__.Tensor", "aten.bitwise_not.default", "aten.__or__.Tensor", "aten.__ixor__.Tensor",
                                                            "aten.__and__.Scalar", "aten.bitwise_and.Scalar"]
    taken_apart = export(Function(f), (masks,)).run_decompositions()
    assert "aten.bitwise_xor.Tensor" in {str(node.target) for node in taken_apart.graph.nodes}


def test_inputs_of_a_loops_graphs_are_numbered_in_order():
    class Loop(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.shift = torch.nn.Linear(2, 2), torch.nn.Buffer(torch.ones(2))

        def forward(self, x):
            return torch.while_loop(lambda i, x: i < 4, lambda i, x: (i + 1, self.linear(x) + self.shift), (torch.tensor(0), x))
    body = export(Loop(), (torch.ones(2),)).graph_module.while_loop_body_graph_0
    assert [node.name for node in body.graph.nodes if node.op == "placeholder"] == [f"arg{i}_1" for i in range(5)]


def test_readable_text_lets_go_of_what_checks_and_writes_give():
    def f(x):
        x[0].add_(1)
        torch._assert(x.sum() > 0, "positive")
        return x
    text = str(export(Function(f), (torch.ones(3),)))
    assert "add_ = None" in text and "_assert_async = None" in text


def test_placeholders_have_no_capitals_and_no_signs():
    class Named(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.W = torch.nn.Parameter(torch.ones(2))

        def forward(self, X, x, Given):
            return X * self.W + x + Given["my-key"] + Given["a.B"]
    program = export(Named(), (torch.ones(2), torch.ones(2), {"my-key": torch.ones(2), "a.B": torch.ones(2)}))
    assert [node.name for node in program.graph.nodes if node.op == "placeholder"] == ["p_w", "x", "x_1", "given_my_key", "given_a_b"]
    assert program.graph_signature.inputs_to_parameters == {"p_w": "W"}
    module = reloaded(program).module()
    assert "def forward(self, X, x, Given):" in program.module().code
    assert module(torch.ones(2), torch.ones(2), {"my-key": torch.ones(2), "a.B": torch.ones(2)}).tolist() == [4, 4]


def test_sizes_of_inputs_have_no_line_however_often_a_program_is_captured():
    program = export(Function(lambda x: x * (x.shape[0] / 2)), (torch.ones(3, 4),), dynamic_shapes={"x": {0: Dim("n")}})
    again = export(program.module(), (torch.ones(3, 4),), dynamic_shapes={"x": {0: Dim("n")}})
    for made in (program, again, program.run_decompositions()):
        (size,) = made.graph.find_nodes(op="call_function", target=torch.ops.aten.sym_size.int)
        assert size.stack_trace is None
    assert str(again) == str(program)


@pytest.mark.parametrize("function, expected", [
    (torch.unique, ["_unique2", "getitem_3", "getitem_1", "getitem_2"]),
    (lambda x: torch.unique(x, return_inverse=True), ["_unique2", "getitem_3", "getitem_1", "getitem_2"]),
    (torch.where, ["where", "getitem_1"]),
])
def test_an_item_whose_size_the_run_tells_is_taken_anew(function, expected):
    program = export(Function(function), (torch.tensor([1.0, -1, 2]),))
    assert [node.name for node in program.graph.nodes if node.name.startswith(("getitem", "where", "_unique"))] == expected
    assert program.graph_signature.user_outputs[0] == expected[1]
    x, leaves = torch.tensor([3.0, 0, 3]), torch.utils._pytree.tree_leaves
    for each in (program, program.run_decompositions(), reloaded(program)):
        assert all(map(torch.equal, leaves(each.module()(x)), leaves(function(x))))


def calls(program):
    return " ".join(node.name.replace("_assert_scalar_default", "A") for node in program.graph.nodes if node.op == "call_function")


def positive(x):
    return x[x > 0]


def more_than_two(x):
    found = positive(x)
    torch._check(found.shape[0] > 2)
    return found


@pytest.mark.parametrize("function, dim, captured, again", [
    (positive, None, "gt index sym_size_int ge A le A_1", "gt index sym_size_int_1 ge_1 A le_1 A_1"),
    (positive, Dim("n"), "gt index sym_size_int_1 ge A", "gt index sym_size_int_2 ge_1 A"),
    (positive, Dim("n", max=100), "gt index sym_size_int_1 ge A le A_1", "gt index sym_size_int_3 ge_1 A le_2 A_1"),
    (positive, Dim("n", min=3, max=100), "gt index sym_size_int_1 ge A le A_1", "gt index sym_size_int_3 ge_2 A le_2 A_1"),
    # `u0 > 2` is not the `2 < u0` that is checked: both stay
    (more_than_two, Dim("n", max=100), "gt index sym_size_int_2 ge A le A_1 gt_2 A_2",
     "gt index sym_size_int_3 ge_1 A le_2 A_1 gt_2 A_2 gt_1 _assert_scalar_2"),
])
def test_what_a_program_asserts_is_asserted_again_under_the_next_numbers(function, dim, captured, again):
    x = torch.tensor([1.0, -1, 2, 3])
    program = export(Function(function), (x,), dynamic_shapes=dim and {"x": {0: dim}})
    decomposed = program.run_decompositions()
    assert (calls(program), calls(decomposed)) == (captured, again)
    if function is more_than_two:
        few = torch.tensor([1.0, -1, 2, -3])
        for made in (program, decomposed, reloaded(decomposed)):
            assert made.module()(x).tolist() == [1, 2, 3]
            with pytest.raises(RuntimeError, match="Runtime assertion failed"):
                made.module()(few)


n, few, bounded = Dim("n"), Dim("n", max=100), Dim("n", min=3, max=100)


@pytest.mark.parametrize("branch, sizes, dims, names", [
    (None, (3, 4), (few, None), "eq ne lt le_1 gt ge add mul"),
    (None, (3, 4), (bounded, None), "eq ne lt le_1 gt ge_1 add mul"),
    (None, (3, 3), (n, n), "eq_2 ne lt le gt ge add mul"),
    (None, (3, 4), (n, n + 1), "eq_1 ne lt le gt ge add_1 mul"),
    (None, (3, 7), (few, 2 * few + 1), "eq_1 ne lt le_2 gt ge add_1 mul_1"),
    (lambda x, y: x.shape[0] > 2, (3, 4), (Dim.AUTO, None), "eq ne lt le gt_1 ge_1 add mul"),
    (lambda x, y: x.shape[0] != 9, (3, 4), (Dim.AUTO, None), "eq ne_1 lt le gt ge add mul"),
    (lambda x, y: x.shape[0] % 3 == 0, (3, 4), (Dim.AUTO, None), "eq_1 ne lt le gt ge add mul"),
    (lambda x, y: x.shape[0] - y.shape[0] < 0, (3, 4), (Dim.AUTO, Dim.AUTO), "eq ne lt_1 le gt ge_1 add_1 mul_1"),
    (lambda x, y: x.shape[0] == y.shape[0], (3, 3), (Dim.AUTO, Dim.AUTO), "eq_2 ne lt le gt ge add mul"),
])
def test_guards_take_names_where_a_program_is_captured_again(branch, sizes, dims, names):
    one = torch.tensor(2.0)

    def operators(x, y):
        if branch and not branch(x, y):
            return None
        return one == 1, one != 1, one < 1, one <= 1, one > 1, one >= 1, one + 1, one * 2
    x, y = map(torch.ones, sizes)
    shapes = {"x": {0: dims[0]}, "y": {0: dims[1]}}
    program = export(Function(operators), (x, y), dynamic_shapes=shapes)
    assert calls(program.run_decompositions()) == names
    assert calls(export(program.module(), (x, y), dynamic_shapes=shapes)) == names


def test_sizes_that_were_found_equal_are_one_guard():
    program = export(Function(lambda x, y: x + y), (torch.ones(4), torch.ones(4)), dynamic_shapes={"x": {0: Dim.AUTO}, "y": {0: Dim.AUTO}})
    with pytest.raises(AssertionError, match=r"Guard failed: y.size\(\)\[0\] == x.size\(\)\[0\]"):
        program.module()(torch.ones(3), torch.ones(4))
    assert len(program._program.guards) == 1


def test_the_numel_of_a_result_follows_from_the_sizes_of_inputs():
    program = export(Function(lambda x: x[1:].numel()), (torch.ones(3, 4),), dynamic_shapes={"x": {0: Dim.AUTO, 1: Dim.AUTO}})
    lines = [line.split(";")[0].strip() for line in program.graph_module.code.splitlines()]
    assert [line.split(" = ")[1] for line in lines if line.startswith(("add", "mul"))][0].startswith("-1 + sym_size_int")
    assert "sym_numel" not in program.graph_module.code and program.module()(torch.ones(5, 6)) == 24


@pytest.mark.parametrize("function, name", [
    (lambda x: torch.zeros(x.shape[0]), "ge_1"), (lambda x: torch.ones(x.shape[0], 2, x.shape[0]), "ge_2"), (lambda x: x.new_zeros(x.shape[0]), "ge"),
])
def test_what_decompositions_ask_of_sizes_has_taken_names(function, name):
    program = export(Function(lambda x: (function(x), x >= 1)), (torch.ones(3),), dynamic_shapes={"x": {0: Dim("n")}})
    assert calls(program.run_decompositions()).split()[-1] == name


@pytest.mark.parametrize("function, sizes, names", [
    (lambda x, y: x.reshape(-1) * x.shape[0], [(2, 3)], "sym_size_int_1 view mul_3"),
    (lambda x, y: x.flatten(0, 1) * x.shape[0], [(2, 3, 4), (0, 1)], "sym_size_int_2 sym_size_int_3 mul view mul_7"),
    (lambda x, y: x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1) * x.shape[0], [(3, 2, 5, 4), (0, 2)], "sym_size_int_2 sym_size_int_3 permute clone view mul_21"),
    (lambda x, y: torch.stack([x, x], 1) * x.shape[0] + (x.shape[0] == 5), [(2, 3)], "sym_size_int_1 cat view mul eq_1 add"),
    (lambda x, y: (x @ y) * x.shape[0], [(2, 3, 4), (0, 1), (4, 5)], "sym_size_int_3 sym_size_int_4 mul_3 view mm view_1 mul_17"),
    (lambda x, y: (x @ y) * x.shape[0], [(2, 3, 4), (0,), (4,)], "sym_size_int_2 mul_2 view mul_7 sum_1 view_1 mul_10"),
    (lambda x, y: (x @ y) * x.shape[0], [(2, 3, 4, 5), (0,), (3, 5, 6)], "sym_size_int_1 mul expand view expand_1 clone view_1 bmm view_2 mul_26"),
    (lambda x, y: torch.nn.functional.linear(x, y, y.sum(1)) * x.shape[0], [(2, 3, 4), (0,), (5, 4)], "sym_size_int_2 sum_1 mul_4 view permute addmm view_1 mul_11"),
    (lambda x, y: torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=y > 0) * x.shape[0], [(2, 3, 5, 4), (0,), (5, 5)],
     "sym_size_int_1 gt scalar_tensor scalar_tensor_1 where mul_3 permute mul_4 mul_5 expand view expand_1 view_1 bmm view_2 add _softmax eq_17 logical_not any_1 logical_not_1 "
     "full_like where_1 expand_2 view_3 expand_3 view_4 bmm_1 view_5 permute_1 clone permute_2 mul_20"),
])
def test_what_composites_compute_of_sizes_has_taken_names(function, sizes, names):
    shape, dims, other = (*sizes, (0,), (1,))[:3] if len(sizes) < 3 else sizes
    example = (torch.ones(shape), torch.ones(other))
    program = export(Function(function), example, dynamic_shapes={"x": {d: Dim.AUTO for d in dims}, "y": None}).run_decompositions()
    assert calls(program) == names
    larger = torch.rand([n + (d in dims) for d, n in enumerate(shape)]), torch.rand(other)
    assert torch.allclose(program.module()(*larger), function(*larger))
