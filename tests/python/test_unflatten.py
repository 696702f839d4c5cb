"""Programs as trees of modules again: unflatten, and signatures of modules that are kept."""
import io

import pytest
import umbra as torch
from umbra.export import Dim, export, load, save, unflatten
from umbra.export.unflatten import InterpreterModule, InterpreterModuleDispatcher


class Leaf(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x)


class Twice(torch.nn.Module):
    """Calls one part twice, writes a buffer in between."""

    def __init__(self):
        super().__init__()
        self.leaf = Leaf()
        self.register_buffer("count", torch.zeros(4))
        self.register_buffer("shift", torch.ones(4), persistent=False)

    def forward(self, x):
        a = self.leaf(x)
        self.count.add_(1)
        return a, self.leaf(a + self.shift)


class Whole(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.twice = Twice()
        self.unused = torch.nn.Linear(2, 2)
        self.plain = torch.full((4,), 2.0)

    def forward(self, x):
        a, b = self.twice(x)
        return {"sum": a + b + self.twice.leaf.linear.bias + self.plain, "number": 3}


@pytest.fixture
def example():
    torch.manual_seed(0)
    return Whole(), torch.randn(2, 4)


class TestUnflatten:
    def test_gives_what_the_program_gives(self, example):
        module, x = example
        program = export(module, (x,))
        result = unflatten(program)(x)
        assert torch.equal(result["sum"], program.module()(x)["sum"])
        assert result["number"] == 3

    def test_again_after_an_export_of_the_unflattened_module(self):
        class Part(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = torch.nn.Linear(4, 4)

            def forward(self, x, factor=1.0):
                return self.fc(self.fc(x) * factor)

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.part, self.last = Part(), Part()

            def forward(self, x):
                return self.last(self.part(x) + self.part(x, 2.0))

        x = torch.ones(2, 4)
        program = export(Model(), (x,))
        first = unflatten(program)
        again = unflatten(export(first, (x,)))
        names = [name for name, _ in first.named_modules()]
        assert names == ["", "part", "part.fc", "last", "last.fc", "part@1"]
        assert [name for name, _ in again.named_modules()] == [*names, "part@1.fc"]
        assert torch.equal(again(x), program.module()(x))
        again.get_submodule("part@1.fc").weight.data.zero_()  # by now a module with a weight of its own
        assert torch.equal(unflatten(export(again, (x,)))(x), again(x))
        assert not torch.equal(again(x), first(x))

    def test_an_equal_call_uses_the_same_module(self, example):
        module, x = example
        part = unflatten(export(module, (x,))).twice
        calls = [node.target for node in part.graph.nodes if node.op == "call_module"]
        assert calls == ["leaf", "leaf"]

    def test_graphs_read_as_the_modules_were(self, example):
        module, x = example
        text = str(unflatten(export(module, (x,))).twice.leaf.linear.graph).strip()
        assert text == """\
graph():
    %x : [num_users=1] = placeholder[target=x]
    %weight : [num_users=1] = get_attr[target=weight]
    %bias : [num_users=1] = get_attr[target=bias]
    %linear : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = (%x, %weight, %bias), kwargs = {})
    return linear"""

    def test_has_copies_of_the_state(self, example):
        module, x = example
        program = export(module, (x,))
        result = unflatten(program)
        assert set(result.state_dict()) == set(program.state_dict)
        assert dict(result.named_buffers())["twice.shift"] is not module.twice.shift
        result(x)
        assert torch.equal(result.twice.count, torch.ones(4))
        assert torch.equal(program.state_dict["twice.count"], torch.zeros(4))

    def test_tied_weights_stay_tied(self):
        class Tied(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = torch.nn.Linear(2, 2)
                self.second = self.first

            def forward(self, x):
                return self.second(self.first(x))
        x = torch.randn(1, 2)
        module = Tied()
        result = unflatten(export(module, (x,)))
        assert result.first.weight is result.second.weight
        assert torch.equal(result(x), module(x))

    def test_a_part_can_be_swapped(self, example):
        module, x = example
        result = unflatten(export(module, (x,)))
        result.twice.leaf.linear = torch.nn.Linear(4, 4, bias=True)
        torch.nn.init.eye_(result.twice.leaf.linear.weight)
        torch.nn.init.zeros_(result.twice.leaf.linear.bias)
        assert torch.allclose(result(x)["sum"], x + x + 1 + 2)

    def test_regions_without_gradients(self):
        class Region(torch.nn.Module):
            def forward(self, x):
                with torch.no_grad():
                    y = x * 2
                return y + x
        x = torch.ones(2, requires_grad=True)
        result = unflatten(export(Region(), (x,)))(x)
        result.sum().backward()
        assert torch.equal(x.grad, torch.ones(2))

    def test_inputs_are_checked(self, example):
        module, x = example
        result = unflatten(export(module, (x,), dynamic_shapes={"x": {0: Dim("n", max=8)}}))
        with pytest.raises(RuntimeError, match="to be <= 8, but got 9"):
            result(torch.randn(9, 4))


class Nested(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((2,), 3.0))

    def forward(self, a, b, *, k=3):
        return {"r": a * self.weight + b[0] * k, "q": [b[0] + 1]}


class Caller(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Nested()

    def forward(self, x, y):
        first = self.part(x, [y], k=4)
        second = self.part(x * 2, [y], k=5)
        return first["r"] + second["q"][0] + second["r"]


class TestKeptSignatures:
    def program(self):
        x, y = torch.randn(2), torch.randn(2)
        return export(Caller(), (x, y), preserve_module_call_signature=("part",)), x, y

    def test_are_in_the_module_call_graph(self):
        program, _, _ = self.program()
        entries = {entry.fqn: entry.signature for entry in program.module_call_graph}
        assert [argument.name for argument in entries["part"].inputs] == ["x", "y", ""]
        assert entries["part"].inputs[2].value == 4
        assert [argument.name for argument in entries["part@1"].outputs] == ["add_2", "add_3"]

    def test_modules_take_what_the_originals_took(self):
        program, x, y = self.program()
        result = unflatten(program)
        assert isinstance(result.part, InterpreterModuleDispatcher)
        assert all(isinstance(module, InterpreterModule) for module in result.part.call_modules())
        for _ in range(2):
            assert torch.equal(result(x, y), Caller()(x, y))
        result.part = Nested()
        assert torch.equal(result(x, y), Caller()(x, y))

    def test_outlive_a_file(self):
        program, x, y = self.program()
        file = io.BytesIO()
        save(program, file)
        file.seek(0)
        loaded = load(file)
        assert str(loaded.module_call_graph) == str(program.module_call_graph)
        assert torch.equal(unflatten(loaded)(x, y), Caller()(x, y))

    def test_calls_of_two_forms_are_refused(self):
        class Other(Caller):
            def forward(self, x, y):
                return self.part(x, [y])["r"] + self.part(x, b=[y])["r"]
        with pytest.raises(AssertionError, match="in_spec mismatch for _export_root.part"):
            export(Other(), (torch.ones(2), torch.ones(2)), preserve_module_call_signature=("part",))


class Shared(torch.nn.Module):
    """A container of two names, and lists that share their members."""

    def __init__(self):
        super().__init__()
        self.a = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
        self.b = self.a
        self.rows = torch.nn.ModuleList([self.a[0], torch.nn.Linear(3, 3)])

    def forward(self, x):
        x = self.b(self.a(x))
        for row in self.rows:
            x = row(x)
        return x


@pytest.mark.parametrize("kept", [(), ("a", "b")])
def test_parts_of_a_container_of_two_names_go_by_the_name_it_is_called_by(kept):
    model, x = Shared(), torch.ones(2, 3)
    program = export(model, (x,), preserve_module_call_signature=kept)
    paths = [list(node.meta["nn_module_stack"].values())[-1][0] for node in program.graph.nodes if node.op == "call_function"]
    assert paths == ["a.0", "a.1", "b.0", "b.1", "rows.0", "rows.1"]
    whole = torch.export.unflatten(program)
    assert torch.equal(whole(x), model(x))
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    assert torch.equal(torch.export.unflatten(torch.export.load(file))(x), model(x))


def test_arguments_of_another_structure_need_an_adapter():
    whole = torch.export.unflatten(export(torch.nn.Linear(3, 3), (torch.ones(2, 3),)))
    with pytest.raises(TypeError, match="flat args adapter"):
        whole([torch.ones(2, 3)])


def test_a_part_whose_signature_is_kept_can_be_swapped():
    from umbra.export._swap import _swap_modules
    model, other, x = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU()), torch.nn.Linear(3, 3), torch.ones(2, 3)
    swapped = _swap_modules(export(model, (x,), preserve_module_call_signature=("0",)), {"0": other})
    assert torch.equal(swapped(x), other(x).relu())
    with pytest.raises(AssertionError, match="no signature"):
        _swap_modules(export(model, (x,)), {"0": other})


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x, scale=1.0):
        self.count.add_(1)
        return {"result": x * scale + self.count}


class CountingTwice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Counting(), Counting()

    def forward(self, x):
        return self.b(self.a(x)["result"], scale=2.0)["result"] + self.a(x)["result"]


def test_kept_signatures_of_modules_that_write_their_buffers():
    module = CountingTwice()
    flat = unflatten(export(module, (torch.ones(2),), preserve_module_call_signature=("a", "b")))
    for _ in range(3):
        assert torch.equal(flat(torch.ones(2)), module(torch.ones(2)))
    assert flat.a.count == module.a.count == 6


def test_buffers_share_memory_as_they_did():
    class Part(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("whole", torch.zeros(4))
            self.register_buffer("part", self.whole[1:3])

        def forward(self, x):
            self.whole.add_(x)
            return self.part + 0
    program = export(Part(), (torch.ones(4),))
    flat = unflatten(program)
    assert flat(torch.ones(4)).tolist() == [1, 1] and flat(torch.ones(4)).tolist() == [2, 2]
    assert program.state_dict["whole"].tolist() == [0] * 4


class Mixed(torch.nn.Module):
    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
        return y.float() + 1


def test_a_region_of_autocast_may_be_unflattened_and_exported_again():
    x = torch.eye(2) * 2
    program = export(Mixed(), (x,))
    for _ in range(3):
        program = export(unflatten(program), (x,))
        assert torch.equal(unflatten(program)(x), Mixed()(x))
    assert [str(node.target) for node in program.graph.nodes].count("aten._assert_tensor_metadata.default") == 1


def test_calls_of_graphs_are_part_of_their_caller():
    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.traced = torch.fx.symbolic_trace(Leaf())

        def forward(self, x):
            return self.traced(x) * 2
    program = export(Outer(), (torch.ones(4),))
    paths = {node.name: [path for path, _ in node.meta["nn_module_stack"].values()] for node in program.graph.nodes if node.op == "call_function"}
    assert paths == {"linear": ["", "traced.linear"], "mul": [""]}


def test_parts_show_their_graphs():
    unflattened = unflatten(export(torch.nn.Sequential(torch.nn.Linear(2, 3)), (torch.ones(4, 2),)))
    assert '_0: "f32[4, 3]" = getattr(self, "0")(input_1);' in unflattened.print_readable(print_output=False)
    part = unflattened.get_submodule("0")
    assert torch.equal(part.graph_module(torch.ones(4, 2)), part(torch.ones(4, 2)))
    with pytest.raises(ValueError, match="keyword mismatch"):
        unflattened(torch.ones(4, 2), y=1)
