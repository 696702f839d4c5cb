"""Numbers in exported programs: sizes are computed as the code computes them, and constants are known."""
import math

import pytest

import umbra as torch
from export_functions import Function
from umbra.export import Dim, export

X = torch.arange(24.0).view(6, 4)
ROWS = ({0: Dim.AUTO},)


def program(function, dynamic=ROWS):
    return export(Function(function), (X,), dynamic_shapes=dynamic)


def targets(exported):
    names = [str(node.target) for node in exported.graph.nodes if node.op == "call_function"]
    return [name.removeprefix("<built-in function ").removesuffix(">") for name in names]


# ---- arithmetic ----

@pytest.mark.parametrize("function, calls", [
    (lambda x: x.shape[0] - 1, ["aten.sym_size.int", "sub"]),
    (lambda x: -x.shape[0], ["aten.sym_size.int", "neg"]),
    (lambda x: x.shape[0] << 1, ["aten.sym_size.int", "lshift"]),
    (lambda x: x.shape[0] > 5, ["aten.sym_size.int", "gt"]),
    (lambda x: x.shape[0] * 2 - 1, ["aten.sym_size.int", "mul", "sub"]),
    (lambda x: math.ceil(x.shape[0] / 4), ["aten.sym_size.int", "truediv", "ceil"]),
])
def test_a_size_is_computed_as_the_code_computes_it(function, calls):
    exported = program(function)
    assert targets(exported) == calls
    assert targets(exported.run_decompositions()) == calls
    for x in (X, torch.ones(9, 4)):
        assert exported.module()(x) == function(x)


def test_the_number_of_elements_is_asked_of_the_tensor():
    exported = program(lambda x: x.numel())
    assert targets(exported) == ["aten.sym_numel.default"] and targets(exported.run_decompositions()) == ["aten.sym_size.int", "mul"]
    assert exported.module()(torch.ones(9, 4)) == 36


def test_an_end_beside_a_symbolic_one_stays_out():
    exported = program(lambda x: (x[:x.shape[0] - 1], x[x.shape[0] - 2:], x[:3]))
    slices = [node.args[2:] for node in exported.graph.nodes if str(node.target) == "aten.slice.Tensor"]
    assert [len(ends) for ends in slices] == [2, 1, 2] and slices[0][0] is None and slices[2] == (0, 3)


def test_a_number_that_is_made_of_itself_again_is_computed_once():
    exported = program(lambda x: (x.shape[0] + 1 - 1, (x.shape[0] + 1) * 2, (x.shape[0] * 2 + 2) // 2))
    assert exported.module()(torch.ones(9, 4)) == (9, 20, 10)


def test_max_and_min_of_a_size_leave_it_open():
    exported = program(lambda x: (max(x.shape[0], 8), min(8, x.shape[0]), max([x.shape[0], 3])))
    assert [str(r) for r in exported.range_constraints.values()] == ["VR[2, int_oo]"]
    assert exported.module()(torch.ones(9, 4)) == (9, 8, 9) and exported.module()(torch.ones(2, 4)) == (8, 2, 3)
    assert max(2, 3) == 3 and max([1, 2], key=lambda v: -v) == 1


def test_max_and_min_of_tensors_are_calls():
    assert targets(program(lambda x: max(x.sum(), x.mean()), None))[-1] == "aten.maximum.default"
    assert program(lambda x: min(x.sum(), 3), None).module()(X).item() == 3


def test_checks_stay_as_they_were_asked_for():
    def function(x):
        n = x.sum().to(torch.int64).item()
        torch._check(n >= 0)
        torch._check(n < 10)
        return torch.zeros(n)
    exported = export(Function(function), (torch.ones(4),))
    assert [name for name in targets(exported) if name in ("ge", "le", "lt")] == ["ge", "le", "lt"]
    assert exported.module()(torch.ones(4)).shape == (4,)
    with pytest.raises(RuntimeError, match="u0 <= 9"):
        exported.module()(torch.ones(4) * 3)


# ---- constants ----

class WithNumber(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = torch.tensor(4)
        self.register_buffer("other", torch.tensor(4))

    def forward(self, x):
        return x[:int(self.rows)]


def test_numbers_of_constants_are_known():
    exported = export(WithNumber(), (X,))
    assert targets(exported) == ["aten.slice.Tensor"] and exported.module()(X).shape == (4, 4) and not exported.constants
    assert targets(program(lambda x: x * torch.tensor(3).item(), None)) == ["aten.mul.Tensor"]
    assert program(lambda x: x if torch.tensor(True) else -x, None).module()(X) is X


def test_a_buffers_number_may_change():
    class Other(WithNumber):
        def forward(self, x):
            return x * self.other.item()
    exported = export(Other(), (X,))
    assert "aten.item.default" in targets(exported)


def test_constants_belong_to_the_module_that_uses_them():
    class Part(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = [torch.ones(4), torch.zeros(4)]

        def forward(self, x):
            return x + self.steps[0] + self.steps[1]

    class Whole(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Part()

        def forward(self, x):
            return self.part(x)
    exported = export(Whole(), (X,))
    assert sorted(exported.constants) == ["part.lifted_tensor_0", "part.lifted_tensor_1"]
    assert torch.equal(exported.module()(X), X + 1) and torch.equal(torch.export.unflatten(exported)(X), X + 1)


# ---- programs that are captured again ----

def test_a_captured_program_keeps_the_sizes_it_was_captured_for():
    static = program(lambda x: x + 1, None).module()
    with pytest.raises(torch._dynamo.exc.UserError, match="constant"):
        export(static, (X,), dynamic_shapes={"x": {0: Dim("rows")}})
    assert str(export(static, (X,), dynamic_shapes={"x": {0: Dim.AUTO}}).range_constraints) == "{}"
    bounded = program(lambda x: x + 1, ({0: Dim("rows", min=3, max=64)},)).module()
    again = export(bounded, (X,), dynamic_shapes={"x": {0: Dim.AUTO}})
    assert [str(r) for r in again.range_constraints.values()] == ["VR[3, 64]"]


def test_too_few_dimensions_are_told_as_guards_tell_them():
    with pytest.raises(IndexError, match="tuple index out of range"):
        program(lambda x: x + 1, None).module()(torch.ones(6))
    with pytest.raises(AssertionError, match=r"x.size\(\)\[0\] == 6"):
        program(lambda x: x + 1, None).module()(torch.ones(5))


# ---- what nodes know ----

def test_nodes_know_the_functions_that_were_called():
    def function(x):
        x = torch.nn.functional.relu(x) + 1
        return torch.relu(x.relu() + x).view(-1)
    nodes = [(node.name, node.meta["torch_fn"]) for node in program(function, None).graph.nodes if node.op == "call_function"]
    assert nodes == [("relu", ("relu_1", "function.relu")), ("add", ("add_1", "method_descriptor.add")), ("relu_1", ("relu_1", "method_descriptor.relu")),
                     ("add_1", ("add_2", "method_descriptor.add")), ("relu_2", ("relu_1", "builtin_function_or_method.relu")),
                     ("view", ("view_1", "method_descriptor.view"))]


def test_nodes_know_the_lines_of_layers_not_of_their_machinery():
    exported = export(torch.nn.BatchNorm1d(4).eval(), (X,))
    trace = next(node.meta["stack_trace"] for node in exported.graph.nodes if node.name == "batch_norm")
    assert "batchnorm.py" in trace and "<string>" not in trace and "_hooks.py" not in trace


def test_a_root_that_no_input_has_shows_as_what_is_derived_from_it():
    class Sum(torch.nn.Module):
        def forward(self, x, y):
            return x + y[2:]

    root, other = Dim("root", min=6, max=8), Dim("other", min=6, max=8)
    with pytest.raises(torch._dynamo.exc.UserError, match=r"related to the values of root - 2 = L\['x'\].size\(\)\[0\] by other = root(.*\n)*  other = root\n"):
        export(Sum(), (torch.ones(5), torch.ones(7)), dynamic_shapes=({0: root - 2}, {0: other}))


def test_every_hint_that_an_example_contradicts_is_told_of():
    with pytest.raises(ValueError, match=r"hint of 0 for dimension inputs\['input'\].shape\[0\](.*\n)*.*hint of 1 for dimension inputs\['input'\].shape\[1\]"):
        export(torch.nn.ReLU(), (torch.ones(0, 1),), dynamic_shapes={"input": {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}})


def ranges(function, *examples, dynamic):
    return {str(k): str(r) for k, r in export(Function(function), examples, dynamic_shapes=dynamic).range_constraints.items()}


def test_sizes_that_are_made_of_bounded_ones_are_bounded():
    four, five = torch.ones(4), torch.ones(5)
    found = ranges(lambda x, y: x + y[1:], four, five, dynamic=({0: Dim.AUTO(min=4, max=20)}, {0: Dim.AUTO(max=11)}))
    assert found == {"s77": "VR[4, 20]", "s77 + 1": "VR[5, 11]"}


def test_a_dim_may_equal_one_that_is_derived_from_a_dim_of_no_input():
    m, k = Dim("m", max=20), Dim("k", max=10)
    examples, dynamic = (torch.ones(5), torch.ones(5)), ({0: m + 1}, {0: k})
    assert list(ranges(torch.add, *examples, dynamic=dynamic).values()) == ["VR[1, 10]", "VR[2, 9]"]
    module = export(Function(torch.add), examples, dynamic_shapes=dynamic).module()
    assert module(torch.ones(10), torch.ones(10)).shape == (10,)
    with pytest.raises(AssertionError):
        module(torch.ones(11), torch.ones(11))


def test_an_extreme_of_three_sizes_looks_at_all_of_them():
    def smallest(x):
        y = x.narrow(1, 0, min(x.shape[1], 3)).diagonal()
        return y, y.shape[0] + 1

    module = export(Function(smallest), (torch.ones(5, 5),), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},)).module()
    assert [module(torch.ones(*shape))[1] for shape in ((5, 5), (2, 5), (5, 2), (4, 6))] == [4, 3, 3, 4]


def test_a_mask_of_what_lies_otherwise_than_it_shows_is_decomposed():
    def rows(x):
        x = x.mean(1, keepdim=True)
        y = x.unsqueeze(0).permute(2, 0, 1).reshape(x.shape[1], -1)
        y.mul_(2)  # what is behind x lies in another order now
        x = x + y.sum()
        return x[x.sum(1) > 3]

    program = export(Function(rows), (X,), dynamic_shapes=({0: Dim("rows", min=0, max=64), 1: Dim.AUTO},))
    for module in (program.module(), program.run_decompositions().module()):
        for n in (2, 6):
            torch.testing.assert_close(module(X[:n] - 9), rows(X[:n] - 9))
