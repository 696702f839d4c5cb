"""What ahead-of-time autograd's entry points take beside the function: writes in the graphs, partitions, assumptions, exports."""
import contextlib

import pytest

import umbra as torch
from umbra._functorch import config
from umbra._functorch.aot_autograd import aot_export_joint_simple, aot_export_module, aot_function, aot_module_simplified
from umbra.functorch.compile import default_partition, min_cut_rematerialization_partition, nop


def graph_of(function, *inputs, **options):
    found = []

    def keep(module, _):
        found.append(module)
        return module
    result = aot_function(function, keep, nop, **options)(*inputs)
    return result, found[0].code


def calls(code):
    return [line.split("torch.ops.aten.")[1].split("(")[0] for line in code.splitlines() if "torch.ops.aten." in line]


def test_writes_that_are_no_part_of_autograd_stay_in_the_graph():
    def f(x, buffer):
        buffer.add_(1)
        return x * buffer
    for keep, expected in ((True, ["add.Tensor", "mul.Tensor", "copy_.default"]), (False, ["add.Tensor", "mul.Tensor"])):
        x, buffer = torch.ones(2, requires_grad=True), torch.zeros(2)
        result, code = graph_of(f, x, buffer, keep_inference_input_mutations=keep)
        assert calls(code) == expected and buffer.tolist() == [1.0, 1.0]
        result.sum().backward()
        assert x.grad.tolist() == [1.0, 1.0]


def test_what_the_backward_reads_is_kept_as_it_was_before_the_graph_wrote_it():
    def f(x, buffer):
        y = x * (buffer + 1) + x * (buffer * 3) + x * buffer.exp()  # three values that the backward can compute of one
        buffer.mul_(5)
        return y

    def observe(call):
        x, buffer = torch.ones(2, requires_grad=True), torch.full((2,), 2.0)
        call(x, buffer).sum().backward()
        return x.grad.tolist(), buffer.tolist()
    compiled = aot_function(f, nop, partition_fn=min_cut_rematerialization_partition, keep_inference_input_mutations=True)
    assert observe(compiled) == observe(f)


def test_an_input_takes_another_tensors_memory():
    def f(a, b):
        with torch.no_grad():
            a.set_(b * 2)
        return a + 1
    a, b = torch.zeros(2), torch.ones(3)
    result, code = graph_of(f, a, b, keep_inference_input_mutations=True)
    assert "set_.source_Tensor" in calls(code) and a.tolist() == [2.0] * 3 and result.tolist() == [3.0] * 3
    with pytest.raises(AssertionError, match="Encountered a set_ on a graph input"):
        aot_function(f, nop)(torch.zeros(2), torch.ones(3))

    def writes_what_was_left(a):
        view = a.view(-1)
        a.set_(torch.ones(2))
        view.mul_(2)
        return a + 1
    with pytest.raises(RuntimeError, match="cannot mutate tensors with frozen storage"):
        aot_function(writes_what_was_left, nop, keep_inference_input_mutations=True)(torch.zeros(2))


def test_partition_functions_of_the_users_own():
    seen = []

    def cut(joint, inputs, *, num_fwd_outputs):
        seen.append((len(inputs[0]), len(inputs[1]), num_fwd_outputs))
        return min_cut_rematerialization_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs)
    x = torch.arange(3.0).requires_grad_()
    aot_function(lambda x: x.sin().cos(), nop, partition_fn=cut)(x).sum().backward()
    assert seen == [(1, 1, 1)]
    assert torch.allclose(x.grad, -x.sin().sin() * x.cos())


def test_a_joint_graph_is_cut_by_hand():
    x = torch.arange(3.0).requires_grad_()
    joint = aot_export_joint_simple(lambda x: (x.exp() * x,), (x,), trace_joint=True)
    assert "def forward(self, primals, tangents):" in joint.code
    (result,), (gradient,) = joint([x.detach()], [torch.ones(3)])
    assert torch.allclose(gradient, (x + 1) * x.exp()) and torch.allclose(result, x.exp() * x)
    for partition in (default_partition, min_cut_rematerialization_partition):
        forward, backward = partition(joint, (), num_fwd_outputs=1)
        result, *saved = forward(x.detach())
        (gradient,) = backward(*saved, torch.ones(3))
        assert torch.allclose(gradient, (x + 1) * x.exp()) and torch.allclose(result, x.exp() * x)


class Transposes(torch.nn.Module):
    def forward(self, x, y):
        x.t_()
        return (x + y,)


class Adds(torch.nn.Module):
    def forward(self, x, y):
        return (x + y,)


def test_graphs_for_one_call_check_what_they_assume(monkeypatch):
    monkeypatch.setattr(config, "debug_assert", True)
    x, y = torch.randn(2, 2), torch.randn(2, 2)
    with pytest.raises(AssertionError, match="input 1 would be a duplicate of input 0"):
        aot_module_simplified(Transposes(), (x, x), nop)(x, y)
    with pytest.raises(AssertionError, match="input 1 would not require grad"):
        aot_module_simplified(Adds(), (x, y), nop)(x, y.clone().requires_grad_())
    fake = torch._subclasses.fake_tensor.FakeTensorMode().from_tensor(torch.ones(2, 2))

    class UsesFake(torch.nn.Module):
        def forward(self, x):
            return (x + fake,)
    with pytest.raises(AssertionError, match="Unexpected fake"):
        aot_module_simplified(UsesFake(), (fake.clone(),), nop)


def test_exports_refuse_inputs_that_share_memory_which_is_written():
    def writes(x, y):
        x.mul_(2)
        return (x + y,)
    x = torch.randn(2)
    with pytest.raises(RuntimeError, match="Encountered duplicated inputs that are mutated"):
        aot_export_joint_simple(writes, (x, x), trace_joint=False)
    with pytest.raises(RuntimeError, match="Encountered aliased inputs that are mutated"):
        aot_export_joint_simple(writes, (x, x.view(-1)), trace_joint=False)
    same = aot_export_joint_simple(lambda x, y: (x + y,), (x, x), trace_joint=False)
    assert same(torch.ones(2), torch.zeros(2))[0].tolist() == [1.0, 1.0]


def test_an_export_above_autograd_keeps_composites_whole_and_has_no_writes():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count.add_(1)
            with torch.no_grad():
                x = x + 1
            return (self.linear(x).relu_(),)
    model = Model()
    module, signature = aot_export_module(model, (torch.ones(1, 2),), trace_joint=False, pre_dispatch=True)
    assert calls(module.code) == ["add.Tensor", "add.Tensor", "linear.default", "relu.default"]
    assert module.code.count("_set_grad_enabled(") == 2
    assert signature.buffers_to_mutate == {"add": "count"}
    count, result = module(model.linear.weight, model.linear.bias, torch.tensor(4.0), torch.ones(1, 2))
    assert count.item() == 5 and torch.equal(result, model.linear(torch.full((1, 2), 2.0)).relu())


def test_nodes_of_both_graphs_know_the_users_line():
    def f(x):
        y = x.sin()
        return y * 2

    def lines(module, _):
        for node in module.graph.nodes:
            if node.op == "call_function":
                assert "test_aot_options.py" in node.stack_trace and ("x.sin()" in node.stack_trace or "y * 2" in node.stack_trace)
        return module
    aot_function(f, lines, lines)(torch.ones(2, requires_grad=True)).sum().backward()


def test_a_backward_that_changes_the_metadata_of_an_input_is_refused():
    class Transposing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(b)
            return a.clone()

        @staticmethod
        def backward(ctx, gradient):
            ctx.saved_tensors[0].t_()
            return gradient, None
    with pytest.raises(AssertionError, match="metadata mutated in the backward"):
        aot_function(Transposing.apply, nop)(torch.ones(2, 2, requires_grad=True), torch.ones(2, 2))


def test_a_simplified_module_gives_a_tuple():
    with pytest.raises(RuntimeError, match="Graph output must be a"):
        aot_module_simplified(torch.nn.Linear(1, 1), (torch.ones(1),), nop)


def test_compilers_are_told_what_they_compile():
    from umbra.functorch.compile import get_aot_compilation_context, get_aot_graph_name
    seen = []

    def compiler(graph, _):
        (name,), model, count = get_aot_compilation_context()
        assert get_aot_graph_name() == f"{model}__{name}_{count}"
        seen.append((name.split("_", 1)[1], count))
        return graph
    function = aot_function(lambda x: x.sin().sin(), compiler)
    result = function(torch.ones(3, requires_grad=True))
    function(torch.ones(3))
    result.sum().backward()
    first = seen[0][1]
    assert seen == [("forward", first), ("inference", first + 1), ("backward", first + 2)]
    assert get_aot_compilation_context()[0] == []


def test_calls_without_gradients_that_give_views_of_inputs_have_inference_graphs():
    seen = []

    def compiler(graph, _):
        seen.append(graph)
        return graph
    x = torch.ones(2, 3, requires_grad=True).clone()
    with torch.no_grad():
        view, other = aot_function(lambda x: (x.view(-1), x.sin()), nop, inference_compiler=compiler)(x)
    assert len(seen) == 1 and view.requires_grad and not other.requires_grad


def test_what_exports_of_joint_graphs_refuse():
    def function(values):
        return (values[0] + 1,)
    with pytest.raises(RuntimeError, match="requires individual inputs not to be pytrees"):
        aot_export_joint_simple(function, [[torch.ones(2)]], trace_joint=False)
    with config.patch(functionalize_rng_ops=True), pytest.raises(RuntimeError, match="Functionalized RNG is not currently supported"):
        aot_export_joint_simple(lambda x: (x + 1,), [torch.ones(2)], trace_joint=True)


def test_graphs_become_scripts():
    from umbra.functorch.compile import ts_compile
    x = torch.tensor([1., 2.], requires_grad=True)
    y = aot_function(lambda x: x.double().sin() * 2, ts_compile)(x)
    y.sum().backward()
    assert torch.allclose(y, x.double().sin() * 2) and torch.allclose(x.grad, 2 * x.cos())


def test_a_randomised_activation_in_place_is_captured():
    x = torch.tensor([-1., 2.], requires_grad=True)
    y = aot_function(lambda x: torch.nn.functional.rrelu(x * 1, 0.2, 0.8, training=True, inplace=True), nop)(x)
    y.sum().backward()
    assert -0.8 <= y[0] <= -0.2 and y[1] == 2 and torch.allclose(x.grad, y.detach() / x.detach())


@pytest.mark.parametrize("outputs, message", [([], "expected 1 outputs, got 0"), ([1, 2], "expected 1 outputs, got 2")])
def test_a_compiler_whose_function_gives_another_number_of_results_is_an_error(outputs, message):
    def compiler(graph, inputs):
        return lambda *args: [args[0]] * len(outputs)
    with pytest.raises(AssertionError, match=message):
        aot_function(lambda x: x.sin(), compiler)(torch.ones(1))
    with pytest.raises(AssertionError, match=f"expected 2 outputs, got {len(outputs)}") if len(outputs) != 2 else contextlib.nullcontext():
        aot_function(lambda x: x.sin(), compiler)(torch.ones(1, requires_grad=True))


@pytest.mark.parametrize("gradients, message", [([], r"incorrect number of gradients \(expected 1, got 0\)"), ([3], "expected Variable or None")])
def test_a_backward_compiler_whose_function_gives_something_else_is_an_error(gradients, message):
    result = aot_function(lambda x: x.sin(), nop, lambda graph, inputs: lambda *args: gradients)(torch.ones(1, requires_grad=True))
    with pytest.raises(RuntimeError, match=message):
        result.backward()
