"""What export records besides calls: the grad mode, buffers that are replaced, conditions that only the run can tell."""
import contextlib
import warnings

import pytest

import umbra
from export_functions import positive, positive_or_told  # pytest writes the assertions of tests anew
from umbra import nn
from umbra.export import Dim, export, load, save
from umbra.fx.experimental.proxy_tensor import make_fx


def module_of(function):
    class Module(nn.Module):
        def forward(self, x):
            return function(x)
    return Module()


# ---- grad mode ----

def half_tracked(x):
    with umbra.no_grad():
        y = x * 2
    return y + x


def test_no_grad_is_part_of_the_program(tmp_path):
    exported = export(module_of(half_tracked), (umbra.ones(2),))
    save(exported, tmp_path / "program.pt2")
    for program in (exported, load(tmp_path / "program.pt2")):
        x = umbra.ones(2, requires_grad=True)
        program.module()(x).sum().backward()
        assert x.grad.tolist() == [1, 1]
    assert "mul = torch.ops.higher_order.wrap_with_set_grad_enabled(False, submod_3, x)" in exported.graph_module.code


def test_regions_of_another_mode_are_submodules():
    def nested(x):
        with umbra.no_grad():
            y = x * 2
            z = y.sum()
            with umbra.enable_grad():
                w = z * x
            v = w + 1
        return y + x, z, w, v
    exported = export(module_of(nested), (umbra.ones(2),))
    assert [spec.arg.name for spec in exported.graph_signature.output_specs] == ["add_1", "sum_1", "mul_1", "getitem_2"]
    assert [name for name, _ in exported.graph_module.named_children()] == ["submod_1", "submod_3"]
    x = umbra.ones(2, requires_grad=True)
    results = exported.module()(x)
    assert [r.requires_grad for r in results] == [True, False, True, False]
    with umbra.no_grad():
        inside = export(module_of(nested), (umbra.ones(2),))
    assert "wrap_with_set_grad_enabled(True" in inside.graph_module.code


def test_the_mode_inside_is_the_callers():
    seen = []
    export(module_of(lambda x: seen.append(umbra.is_grad_enabled()) or x + 1), (umbra.ones(2),))
    assert seen == [True]


def test_make_fx_before_dispatch_switches_the_mode():
    graph = make_fx(half_tracked, pre_dispatch=True)(umbra.ones(2))
    assert [node.name for node in graph.graph.nodes] == ["x_1", "_set_grad_enabled", "mul", "_set_grad_enabled_1", "add", "output"]
    assert str([*graph.graph.nodes][1].target) == "<built-in function _set_grad_enabled>"
    x = umbra.ones(2, requires_grad=True)
    graph(x).sum().backward()
    assert x.grad.tolist() == [1, 1] and umbra.is_grad_enabled()
    assert "_set_grad_enabled" not in make_fx(half_tracked)(umbra.ones(2)).code


# ---- attributes ----

class Average(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", umbra.zeros(2))
        self.calls, self.seen, self.last = 0, [1], umbra.ones(2)

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x
        self.calls += 1
        self.seen.append(3)
        return self.mean * 2


def test_a_replaced_buffer_is_written(tmp_path):
    model = Average()
    exported = export(model, (umbra.ones(2),))
    assert "copy__default = torch.ops.aten.copy_.default(b_mean, add)" in exported.graph_module.code
    save(exported, tmp_path / "program.pt2")
    for program in (exported, load(tmp_path / "program.pt2")):
        module = program.module()
        assert module(umbra.ones(2)).tolist() == pytest.approx([0.2, 0.2])
        assert module.mean.tolist() == pytest.approx([0.1, 0.1])
        module.mean.zero_()


def test_the_module_is_as_before():
    model = Average()
    mean, last, seen = model.mean, model.last, model.seen
    export(model, (umbra.ones(2),))
    assert model.mean is mean and mean.tolist() == [0, 0] and model.calls == 0
    assert model.seen is seen and seen == [1]

    def assign(x):
        model.mean, model.last, model.fresh = model.mean + x, x + 1, x + 2
        raise ValueError("no")
    model.forward = assign
    with warnings.catch_warnings(record=True) as caught, pytest.raises(ValueError, match="no"):
        warnings.simplefilter("always")
        export(model, (umbra.ones(2),))
    assert model.mean is mean and model.last is last and not hasattr(model, "fresh")
    assert "The tensor attributes self.last, self.fresh were assigned during export." in str(caught[0].message)


def test_a_tensor_is_known_by_its_last_name():
    model = nn.Module()
    model.a, model.b = nn.Linear(2, 2), nn.Linear(2, 2)
    model.b.weight, model.shift = model.a.weight, umbra.ones(2)
    model.register_buffer("count", umbra.zeros(2))

    def forward(x):
        model.count.add_(1)
        return model.b(model.a(x)) + model.shift + umbra.tensor([1.0, 2.0]) + model.count
    model.forward = forward
    exported = export(model, (umbra.ones(2),))
    assert "linear = torch.ops.aten.linear.default(x, p_b_weight, p_a_bias)" in exported.graph_module.code
    assert "torch.ops.aten.add.Tensor(add_1, add_)" in exported.graph_module.code
    assert list(exported.constants) == ["shift", "lifted_tensor_0"]


# ---- conditions ----

def test_checks_are_asserted_when_the_program_runs(tmp_path):
    def forward(x):
        n = x.item()
        umbra._check(n >= 2)
        umbra._check(n <= 5)
        return umbra.zeros(n)
    exported = export(module_of(forward), (umbra.tensor(3),))
    assert str(exported.range_constraints) == "{u0: VR[2, 5]}"
    save(exported, tmp_path / "program.pt2")
    for program in (exported, load(tmp_path / "program.pt2")):
        module = program.module()
        assert module(umbra.tensor(4)).tolist() == [0] * 4
        with pytest.raises(RuntimeError, match="Runtime assertion failed for expression u0 >= 2 on node 'ge_1'"):
            module(umbra.tensor(1))
        with pytest.raises(RuntimeError, match="Runtime assertion failed for expression u0 <= 5 on node 'le_1'"):
            module(umbra.tensor(6))


def test_a_size_is_not_negative():
    exported = export(module_of(lambda x: umbra.zeros(x.item())), (umbra.tensor(3),))
    assert str(exported.range_constraints) == "{u0: VR[0, int_oo]}"
    with pytest.raises(RuntimeError, match="Runtime assertion failed for expression u0 >= 0"):
        exported.module()(umbra.tensor(-1))


def test_conditions_on_several_numbers_stand_behind_the_last():
    def forward(x, y):
        n, m = x.item(), y.item()
        umbra._check(n + m <= 10)
        umbra._check(n <= y.shape[0] + 8 if y.dim() else n <= 8)
        return umbra.zeros(n)

    class Module(nn.Module):
        def forward(self, x, y):
            return forward(x, y)
    exported = export(Module(), (umbra.tensor(3), umbra.tensor(4)))
    assert exported.module()(umbra.tensor(3), umbra.tensor(7)).tolist() == [0] * 3
    with pytest.raises(RuntimeError, match=r"failed for expression u0 \+ u1 <= 10"):
        exported.module()(umbra.tensor(3), umbra.tensor(8))


def test_conditions_on_sizes_of_inputs():
    def forward(x):
        k = x.nonzero().shape[0]
        umbra._check(k * 2 <= x.shape[0])
        return x.narrow(0, 0, k)
    exported = export(module_of(forward), (umbra.tensor([1.0, 0, 0, 0]),), dynamic_shapes={"x": {0: Dim("n")}})
    assert exported.module()(umbra.tensor([0.0, 5, 0, 0, 6])).tolist() == [0, 5]
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        exported.module()(umbra.ones(5))


# ---- sizes that only the run will tell ----

def test_sizes_of_the_run_come_first_and_are_bounded_by_the_inputs():
    for dim, most in ((Dim("n", max=64), 64), (Dim("n"), 2**63 - 2)):
        exported = export(module_of(lambda x: x[:, 0].nonzero().sum() + x), (umbra.ones(5, 8),), dynamic_shapes={"x": {0: dim}})
        assert str(exported.range_constraints).startswith(f"{{u0: VR[0, {most}], s77: ")
        assert any(node.name == "le_1" for node in exported.graph.nodes) == (most == 64)  # le was the index's question
        assert str(exported.run_decompositions().range_constraints).startswith(f"{{u0: VR[0, {most}], s77: ")
        assert exported.module()(umbra.ones(3, 8)).tolist() == [[4] * 8] * 3


def test_bounds_that_the_program_states_are_told_in_order():
    def forward(x):
        n = x.item()
        umbra._check(n > 2)
        return umbra.zeros(n)
    exported = export(module_of(forward), (umbra.tensor(3),))
    messages = [node.args[1] for node in exported.graph.nodes if "assert_scalar" in str(node.target)]
    assert [text.split("expression ")[1].split(" on")[0] for text in messages] == ["u0 >= 3", "2 < u0"]


def test_nonzero_is_bounded_by_the_input():
    def forward(x):
        k = x.nonzero().shape[0]
        assert k <= 10
        return x.narrow(0, 0, k), *x.split([k, 10 - k])
    exported = export(module_of(forward), (umbra.ones(10),))
    assert str(exported.range_constraints) == "{u0: VR[0, 10]}"
    narrow, first, rest = exported.module()(umbra.tensor([1.0, 0] * 5))
    assert narrow.tolist() == first.tolist() == [1, 0, 1, 0, 1] and rest.tolist() == [0, 1, 0, 1, 0]
    assert str(export(module_of(lambda x: x[x > 0]), (umbra.ones(10),)).range_constraints) == "{u0: VR[0, 10]}"


@pytest.mark.parametrize("forward, good, bad, failing", [
    (lambda x: umbra.zeros(x.item()) + umbra.zeros(3), 3, 4, "u0 <= 3"),
    (lambda x: umbra.zeros(x.item()).reshape(2, -1), 4, 3, r"Eq\(Mod\(u0, 2\), 0\)"),
    (lambda x: umbra.zeros(x.item())[0], 3, 0, "u0 >= 1"),
    (lambda x: umbra.ones(8).narrow(0, 0, x.item()), 3, 9, "u0 <= 8"),
])
def test_what_an_operator_needs_is_checked_in_the_run(forward, good, bad, failing):
    module = export(module_of(forward), (umbra.tensor(good),)).module()
    assert module(umbra.tensor(good)).tolist() == forward(umbra.tensor(good)).tolist()
    with pytest.raises(RuntimeError, match="Runtime assertion failed for expression " + failing):
        module(umbra.tensor(bad))


def test_places_that_only_the_run_will_tell():
    module = export(module_of(lambda x: umbra.arange(8)[x.item()]), (umbra.tensor(3),)).module()
    assert module(umbra.tensor(5)).item() == 5 and module(umbra.tensor(-1)).item() == 7
    with pytest.raises(IndexError):
        module(umbra.tensor(8))
    module = export(module_of(lambda x: umbra.arange(8)[:x.item()] * 2), (umbra.tensor(3),)).module()
    assert module(umbra.tensor(2)).tolist() == [0, 2] and module(umbra.tensor(-7)).tolist() == [0] and module(umbra.tensor(99)).shape == (8,)


def test_conversions_check_what_they_are_given(tmp_path):
    exported = export(module_of(lambda x: x.to(umbra.float64) + 1), (umbra.ones(2),))
    save(exported, tmp_path / "program.pt2")
    for program in (exported, load(tmp_path / "program.pt2")):
        names = [node.name for node in program.graph.nodes]
        assert names == ["x", "_assert_tensor_metadata_default", "to", "add", "output"]
        assert program.module()(umbra.ones(2)).dtype is umbra.float64
    assertion = list(exported.graph.nodes)[1]
    assert assertion.kwargs["dtype"] is umbra.float32 and str(assertion.kwargs["device"]) == "cpu"


def test_tensors_made_from_data_are_new_in_every_run():
    def forward(x):
        made = umbra.tensor([1.0, 2.0])
        made.add_(1)
        return x + made
    x = umbra.zeros(2)
    modules = [export(module_of(forward), (x,)).module()]
    modules += [make_fx(forward, tracing_mode=mode, pre_dispatch=pre)(x) for mode in ("real", "fake", "symbolic") for pre in (False, True)]
    for module in modules:
        assert module(x).tolist() == module(x).tolist() == [2, 3]
        assert "torch.ops.aten.lift_fresh_copy.default(" in module.code


def test_sizes_inside_tensor_literals_are_computed_in_each_run():
    class Model(umbra.nn.Module):
        def forward(self, x):
            n = x.shape[0]
            return umbra.tensor(n) + x, umbra.tensor([[n, 2], [3, n * 2]], dtype=umbra.float32), umbra.tensor([n / 2, 1]), umbra.tensor(n > 4)
    program = umbra.export.export(Model(), (umbra.ones(3),), dynamic_shapes=({0: umbra.export.Dim.DYNAMIC},)).module()
    for size in (5, 2):
        x = umbra.arange(float(size))
        for found, expected in zip(program(x), Model()(x)):
            assert found.dtype == expected.dtype and found.tolist() == expected.tolist()


def test_gradients_that_the_program_takes_are_part_of_it():
    class Gradient(umbra.nn.Module):
        def forward(self, x):
            x = x.detach().requires_grad_()
            return umbra.autograd.grad((x ** 3).sum(), x)[0]
    module = umbra.export.export(Gradient(), (umbra.ones(2),)).module()
    assert umbra.allclose(module(umbra.tensor([2.0, 3.0])), umbra.tensor([12.0, 27.0]))


class Forces(umbra.nn.Module):
    """An energy and its gradient with respect to the input, as models of forces between atoms have them."""

    def __init__(self):
        super().__init__()
        self.inside, self.outside = umbra.nn.Linear(3, 8), umbra.nn.Linear(8, 1)

    def forward(self, x):
        x = x.detach().requires_grad_()
        energy = self.outside(self.inside(x).tanh()).sum()
        return energy, -umbra.autograd.grad(energy, x, create_graph=True)[0]


def test_gradients_that_the_program_takes_through_layers_follow_the_input():
    model, x = Forces(), umbra.randn(4, 3)
    captured = make_fx(lambda x: model(x)[1], pre_dispatch=True)(umbra.randn(4, 3))
    program = export(model, (umbra.randn(4, 3),), dynamic_shapes=({0: umbra.export.Dim.DYNAMIC},))
    assert not program.constants
    expected = model(x)
    assert umbra.allclose(captured(x), expected[1])
    for size in (4, 7):
        y = umbra.randn(size, 3)
        assert all(umbra.allclose(a, b) for a, b in zip(program.module()(y), model(y)))


def test_gradients_that_the_program_takes_can_be_trained_through():
    model, x = Forces(), umbra.randn(4, 3)
    module = export(model, (umbra.randn(4, 3),)).module()
    model(x)[1].square().sum().backward()
    module(x)[1].square().sum().backward()
    for name in ("inside", "outside"):
        assert umbra.allclose(getattr(module, name).weight.grad, getattr(model, name).weight.grad, atol=1e-6)


def test_a_compiled_function_is_a_part_of_what_is_captured_around_it():
    from umbra._functorch.aot_autograd import aot_function, aot_module
    compiled = aot_function(lambda x, w: (x * w).sin(), lambda graph, _: graph)
    x, w = umbra.randn(2, 3), umbra.randn(3, requires_grad=True)
    for options in ({}, {"pre_dispatch": True}, {"tracing_mode": "symbolic"}):
        graph = make_fx(lambda x, w: compiled(x, w) * 2, **options)(x, w).graph
        assert [node.name for node in graph.nodes if node.op == "call_function"] == ["mul", "sin", "mul_1"]
    model = umbra.nn.Linear(3, 3)
    for wrapped in (aot_module(model, lambda graph, _: graph), umbra.compile(model, backend="aot_eager")):
        program = export(wrapped, (x,))
        assert [node.target for node in program.graph.nodes if node.op == "call_function"] == [umbra.ops.aten.linear.default]
        assert program.module()(x.clone().requires_grad_()).requires_grad


def test_attention_takes_its_weights_apart_before_its_biases():
    x = umbra.ones(1, 3, 4)
    program = umbra.export.export(umbra.nn.MultiheadAttention(4, 2), (x, x.clone(), x.clone()))
    assert [node.args[0].name for node in program.graph.nodes if str(node.target) == "aten.chunk.default"] == ["p_in_proj_weight", "p_in_proj_bias"]


def test_a_grad_mode_that_the_program_leaves_behind_is_the_programs_alone():
    def switch_off(x):
        y = x.sin()
        umbra.set_grad_enabled(False)
        return y.sum()

    program = export(module_of(switch_off), (umbra.ones(3),))
    assert umbra.is_grad_enabled()
    assert "wrap_with_set_grad_enabled" in program.graph_module.code
    assert not program.module()(umbra.ones(3, requires_grad=True)).requires_grad


# ---- conditions ----

def test_a_condition_that_is_asserted_is_checked_when_the_program_runs():
    module = export(module_of(positive), (umbra.zeros(2, dtype=umbra.int64),)).module()
    assert module(umbra.tensor([1, -3])).tolist() == [2, -2]
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        module(umbra.tensor([0, -3]))


def test_a_branch_and_an_assertion_with_a_message_are_refused():
    def branch(x):
        return x + 1 if x.item() > 0 else x

    for function in (branch, positive_or_told):
        with pytest.raises(umbra.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode):
            export(module_of(function), (umbra.tensor(1),))


def test_the_largest_of_a_list_of_sizes_is_computed():
    class Module(nn.Module):
        def forward(self, x, y):
            return x.sum() + max([x.shape[0], y.shape[0], x.shape[0]]) - min(x.shape[0], y.shape[0])

    module, sizes = Module(), {0: Dim.DYNAMIC}
    program = export(module, (umbra.ones(4), umbra.ones(5)), dynamic_shapes=(sizes, sizes)).module()
    for pair in ((umbra.ones(2), umbra.ones(9)), (umbra.ones(9), umbra.ones(2))):
        assert umbra.equal(program(*pair), module(*pair))


# ---- literals ----

LITERALS = {
    "sum": lambda x: umbra.tensor(30) + x.shape[0],
    "clamp": lambda x: umbra.clamp(umbra.tensor(30), max=x.shape[0]),
    "fill_": lambda x: umbra.tensor(30).fill_(x.shape[0]),
    "alpha": lambda x: umbra.add(umbra.tensor(30), 1, alpha=x.shape[0]),
    "mul_": lambda x: umbra.tensor(30).mul_(x.shape[0]) + 1,
    "eq": lambda x: umbra.tensor([1, 7]).eq(x.shape[0]),
    "masked_fill": lambda x: umbra.tensor([1, 7]).masked_fill(umbra.tensor([True, False]), x.shape[0]),
    "repeat": lambda x: umbra.tensor([1, 7]).repeat(x.shape[0]) + 1,
    "isin": lambda x: umbra.isin(x.shape[0], umbra.tensor([3, 7])),
    "power": lambda x: umbra.pow(umbra.tensor([3, 7]), x.shape[0]),
    "bucketize": lambda x: umbra.bucketize(x.shape[0], umbra.tensor([1, 5, 9])),
    "roll": lambda x: umbra.tensor([1, 7]).roll(x.shape[0]),
    "float": lambda x: umbra.tensor([1., 7.]).clamp_(0., x.shape[0] / 2),
    "part": lambda x: umbra.tensor([1, 7, 3, 4, 5, 6, 7])[:x.shape[0]].sum(),
    "part written": lambda x: (lambda t: (t[:x.shape[0]].add_(1), t.sum())[1])(umbra.tensor([1, 7, 3, 4, 5, 6, 7, 8, 9])),
}


@pytest.mark.parametrize("name", LITERALS)
def test_a_literal_and_a_size_make_something_that_differs_from_run_to_run(name):
    module = module_of(LITERALS[name])
    program = export(module, (umbra.ones(3),), dynamic_shapes={"x": {0: Dim.DYNAMIC}}).module()
    for size in (3, 6, 7):
        assert umbra.equal(program(umbra.ones(size)), module(umbra.ones(size)))


def test_a_masked_selection_has_no_more_elements_than_the_sizes_allow():
    shapes = {"x": {0: Dim("rows", max=100)}}
    ranges = export(module_of(lambda x: umbra.masked_select(x, x > 0)), (umbra.ones(3, 5),), dynamic_shapes=shapes).range_constraints
    assert ranges["u0"].upper == 500
    mask = umbra.ones(1, 3, dtype=umbra.bool)
    ranges = export(module_of(lambda x: umbra.masked_select(x, mask)), (umbra.ones(8, 1),), dynamic_shapes=shapes).range_constraints
    assert ranges["u0"].upper == 300


def test_the_inverse_of_a_transform_over_windows_is_exported_with_its_check():
    window = umbra.ones(4)
    module = module_of(lambda x: umbra.istft(x, n_fft=4, window=window))
    x = umbra.stft(umbra.arange(20.), n_fft=4, window=window, return_complex=True)
    program = export(module, (x,))
    assert umbra.allclose(program.module()(x), module(x))
    assert umbra.allclose(program.run_decompositions().module()(x), module(x))


# ---- captured again ----

def test_conditions_of_a_program_that_is_exported_again_stand_there_once():
    def shorter(x, n):
        length = n.item()
        umbra._check(length >= 0)
        umbra._check(length <= x.shape[0])
        return x[:length] * 2

    class Module(nn.Module):
        def forward(self, x, n):
            return shorter(x, n)
    args, shapes = (umbra.ones(3, 4), umbra.tensor(2)), ({0: Dim("rows")}, None)
    first = export(Module(), args, dynamic_shapes=shapes)
    again = export(export(first.module(), args, dynamic_shapes=shapes).module(), args, dynamic_shapes=shapes)
    assert again.graph_module.code == first.graph_module.code


def test_calls_of_branches_keep_their_lines_when_a_program_is_decomposed():
    program = export(module_of(lambda x: umbra.cond(x.sum() > 3, lambda x: x + 1, lambda x: x.sin(), (x,))), (umbra.ones(3),))
    for made in (program, program.run_decompositions(), export(program.module(), (umbra.ones(3),))):
        branch = made.graph_module.true_graph_0.graph
        assert all("umbra.cond(x.sum() > 3" in node.stack_trace for node in branch.find_nodes(op="call_function", target=umbra.ops.aten.add.Tensor))
        assert all("umbra.cond(x.sum() > 3" in node.stack_trace for node in made.graph.find_nodes(op="get_attr"))
        assert len(branch.find_nodes(op="call_function", target=umbra.ops.aten.add.Tensor)) == 1


# ---- buffers that learn ----

class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", umbra.zeros(2, 8, 4))
        self.layer = nn.Linear(4, 4)

    def forward(self, x, places):
        self.kept[:, places] = self.layer(x)
        self.kept.narrow(1, 0, 2).add_(1)
        self.kept[:, :4] *= 2
        return self.kept.sum(-1)


def test_a_buffer_that_was_written_with_gradients_is_written_again_through_views():
    def fresh():
        umbra.manual_seed(0)
        return Cache()
    args = umbra.randn(2, 2, 4), umbra.tensor([1, 3])
    expected, module = fresh()(*args), fresh()
    result = export(module, args).module()(*args)
    decomposed = export(fresh(), args).run_decompositions().module()(*args)
    assert umbra.allclose(result, expected) and umbra.allclose(decomposed, expected)
    result.sum().backward()
    assert module.layer.weight.grad is not None


class Keeps(nn.Module):
    def __init__(self, outside, fails=False):
        super().__init__()
        self.layer, self.outside, self.fails, self.plain = nn.Linear(2, 2), outside, fails, umbra.zeros(2)
        self.register_buffer("whole", umbra.zeros(4, 2))
        self.register_buffer("part", self.whole[:2])

    def forward(self, x):
        y = self.layer(x)
        self.part[0].copy_(y[0])
        self.plain.copy_(y[1])
        self.outside[0].add_(y)
        if self.fails:
            raise LookupError
        return self.part + self.outside[0]


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_capture_writes_with_gradients_has_no_history_afterwards(fails):
    outside = umbra.zeros(2, 2)
    module = Keeps([outside], fails)
    with pytest.raises(LookupError) if fails else contextlib.nullcontext():
        program = export(module, (umbra.ones(2, 2),))
        assert not program.state_dict["whole"].requires_grad
    assert not any(t.requires_grad or t.grad_fn for t in (module.whole, module.part, module.plain, outside))


def test_a_tensor_that_had_a_history_before_the_capture_keeps_it():
    weight = umbra.ones(2, requires_grad=True)
    doubled = weight * 2
    export(module_of(lambda x: x + doubled), (umbra.ones(2),))
    doubled.sum().backward()
    assert weight.grad.tolist() == [2, 2]
