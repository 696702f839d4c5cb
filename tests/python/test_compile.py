"""torch.compile: captured calls give what the function gives, and another kind of call is captured anew."""
import subprocess
import sys
import warnings

import pytest
from counting import Counting

import umbra as torch


def counting():
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module.forward
    return backend, graphs


def test_one_capture_serves_calls_of_one_kind_and_sizes_become_symbols_with_the_second_one():
    backend, graphs = counting()
    compiled = torch.compile(lambda x, n=2: x * n, backend=backend)
    for size in (3, 3, 4, 5, 6):
        assert torch.equal(compiled(torch.ones(size)), torch.full((size,), 2.0))
    assert len(graphs) == 2
    assert torch.equal(compiled(torch.ones(3), 5), torch.full((3,), 5.0))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "aot_eager_default_partitioner"])
def test_gradients_and_writes_are_the_functions(backend):
    def f(x, y):
        y.add_(1)
        return (x * y).sin().sum()

    def observe(call):
        x, y = torch.arange(3.0).requires_grad_(), torch.ones(3)
        call(x, y).backward()
        return x.grad.tolist(), y.tolist()
    assert observe(torch.compile(f, backend=backend)) == observe(f)


def test_what_the_function_reads_from_outside_is_guarded():
    scale = 2.0
    layer = torch.nn.Dropout(1.0)
    compiled = torch.compile(lambda x: layer(x) * scale, backend="eager")
    x = torch.ones(3)
    assert compiled(x).tolist() == [0.0] * 3
    layer.eval()
    assert compiled(x).tolist() == [2.0] * 3
    scale = 3.0
    assert compiled(x).tolist() == [3.0] * 3


def test_a_compiled_module_is_the_module_in_all_else():
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    compiled = torch.compile(module, backend="eager")
    assert list(compiled.state_dict())[0] == "_orig_mod.0.weight" and compiled._orig_mod is module
    x = torch.randn(4, 2)
    compiled(x).sum().backward()
    assert module[0].weight.grad is not None and int(module[1].num_batches_tracked) == 1
    compiled.eval()
    assert not module.training and torch.equal(compiled(x), module(x))


def test_a_compiled_module_compiles_other_functions_as_it_was():
    calls = []

    def backend(graph, inputs):
        calls.append(len(inputs))
        return graph
    module = torch.nn.Linear(2, 2)
    compiled = torch.compile(module, backend=backend)

    def step(x):
        """One step."""
        return module(x).sum()
    other = compiled.dynamo_ctx(step)
    x = torch.ones(1, 2)
    torch.testing.assert_close(other(x), step(x))
    assert calls and other.__doc__ == "One step."
    assert isinstance(compiled.dynamo_ctx(torch.nn.ReLU()), torch._dynamo.OptimizedModule)


def test_where_data_decide_the_function_runs_as_it_is_or_is_refused():
    def f(x):
        return x + 1 if x.sum() > 0 else -x
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = torch.compile(f, backend="eager")
        assert compiled(torch.ones(2)).tolist() == [2.0, 2.0] and compiled(-torch.ones(2)).tolist() == [1.0, 1.0]
    with pytest.raises(torch._dynamo.exc.Unsupported, match="Data-dependent branching"):
        torch.compile(f, backend="eager", fullgraph=True)(torch.ones(2))


def test_a_function_that_is_captured_too_often_runs_as_it_is():
    backend, graphs = counting()
    compiled = torch.compile(lambda x, n: x * n, backend=backend, dynamic=False, recompile_limit=3)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for n in range(10):
            assert compiled(torch.ones(2), float(n)).tolist() == [n, n]
    assert len(graphs) == 3 and any("recompile_limit" in str(w.message) for w in seen)


def test_the_default_backend_gives_eager_numbers_and_checks_its_options():
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    for settings in ({}, {"backend": "inductor"}, {"mode": "max-autotune"}, {"options": {"max_autotune": True, "triton.cudagraphs": False}}):
        out = torch.compile(lambda x: (x * x.sin()).sum(), **settings)(x)
        assert torch.equal(out, (x * x.sin()).sum())
        assert torch.allclose(torch.autograd.grad(out, x)[0], x.sin() + x * x.cos())
    layer = torch.nn.Linear(2, 2)
    layer.compile()
    assert torch.equal(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias))
    assert torch._dynamo.list_backends() == ["inductor"]
    for mode, options, text in (("fastest", None, "Unrecognized mode=fastest"), (None, {"nope": 1}, "Unexpected optimization option nope"),
                                (None, {"max_autotune": "yes"}, "got str should be bool")):
        with pytest.raises(RuntimeError, match=text):
            torch.compile(lambda x: x, mode=mode, options=options)
    with pytest.raises(NotImplementedError, match="post_grad_custom_post_pass"):
        torch.compile(lambda x: x, options={"post_grad_custom_post_pass": lambda graph: None})


def test_backends_are_refused_by_name():
    with pytest.raises(NotImplementedError, match="cudagraphs"):
        torch.compile(lambda x: x, backend="cudagraphs")
    with pytest.raises(torch._dynamo.exc.InvalidBackend, match="nope"):
        torch.compile(lambda x: x, backend="nope")
    with pytest.raises(RuntimeError, match="Either mode or options"):
        torch.compile(lambda x: x, backend="eager", mode="default", options={})


def test_attributes_of_classes_and_modules_are_watched():
    import types

    class Settings:
        factor, numbers = 2.0, [1.0]

    class Scaled(torch.nn.Module):
        scale = 2.0

        def forward(self, x):
            return x * self.scale
    place = types.ModuleType("place")
    place.factor = 2.0
    settings, module = Settings(), Scaled()
    functions = {
        "class": (lambda x: x * Settings.factor, lambda: setattr(Settings, "factor", 3.0)),
        "object": (lambda x: x * settings.factor, lambda: setattr(Settings, "factor", 4.0)),
        "list": (lambda x: x * Settings.numbers[0], lambda: Settings.numbers.__setitem__(0, 5.0)),
        "module": (lambda x: x * place.factor, lambda: setattr(place, "factor", 6.0)),
    }
    x = torch.ones(3)
    for name, (function, change) in functions.items():
        compiled = torch.compile(function, backend="eager")
        assert torch.equal(compiled(x), function(x)), name
        change()
        assert torch.equal(compiled(x), function(x)), name
    compiled = torch.compile(module, backend="eager")
    assert compiled(x).tolist() == [2, 2, 2]
    Scaled.scale = 7.0
    assert compiled(x).tolist() == [7, 7, 7]


def compiled_twice(function, change):
    """What it gives before and after a change, compiled and as it is."""
    compiled, x = torch.compile(function, backend="eager"), torch.ones(3)
    for _ in range(2):
        assert torch.equal(compiled(x), function(x))
        change()
    assert torch.equal(compiled(x), function(x))


def test_what_lies_deep_in_objects_is_watched():
    import collections
    import types

    class Slots:
        __slots__ = ("factor",)
    deep = types.SimpleNamespace(a=types.SimpleNamespace(b=types.SimpleNamespace(factor=2.0)))
    nested, queue, slots = [[[2.0]]], collections.deque([2.0]), Slots()
    slots.factor = 2.0

    def with_default(x, *, factor=2.0):
        return x * factor
    compiled_twice(lambda x: x * deep.a.b.factor, lambda: setattr(deep.a.b, "factor", deep.a.b.factor + 1))
    compiled_twice(lambda x: x * nested[0][0][0], lambda: nested[0][0].__setitem__(0, nested[0][0][0] + 1))
    compiled_twice(lambda x: x * queue[0], lambda: queue.append(queue.popleft() + 1))
    compiled_twice(lambda x: x * slots.factor, lambda: setattr(slots, "factor", slots.factor + 1))
    compiled_twice(with_default, lambda: with_default.__kwdefaults__.update(factor=with_default.__kwdefaults__["factor"] + 1))


total = 0


def test_a_function_that_changes_what_it_reads_runs_as_it_is():
    class Counter:
        count = 0

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.steps, self.kept = 0, []

        def forward(self, x):
            self.steps += 1
            self.kept.append(x.sum())
            return x * self.steps
    counter, kept, local = Counter(), [], 0

    def attribute(x):
        counter.count += 1
        return x * counter.count

    def appended(x):
        kept.append(x.sum())
        return x * len(kept)

    def cell(x):
        nonlocal local
        local += 1
        return x * local

    def of_module(x):
        global total
        total += 1
        return x * total
    x = torch.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for function in (attribute, appended, cell, of_module, Module()):
            compiled = torch.compile(function, backend="eager")
            assert [compiled(x)[0].item() for _ in range(5)] == [1, 2, 3, 4, 5]
    assert counter.count == 5 and [type(t) is torch.Tensor and t.item() for t in kept] == [3.0] * 5 and local == 5 and total == 5


def test_what_a_module_keeps_for_later_is_captured_from_the_second_call_on():
    class Cached(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = None

        def forward(self, x):
            if self.table is None:
                self.table = torch.arange(3.0)
            return x + self.table
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph
    module, x = Cached(), torch.ones(3)
    compiled = torch.compile(module, backend=backend)
    assert [compiled(x).tolist() for _ in range(3)] == [[1, 2, 3]] * 3
    assert not isinstance(module.table, torch._subclasses.FakeTensor) and len(graphs) == 1


def test_containers_that_a_function_is_given_may_be_changed():
    def collect(x, found, named):
        found.append(x * 2)
        named["last"] = x
        return x + len(found)
    compiled, found, named, x = torch.compile(collect, backend="eager"), [], {}, torch.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [compiled(x, found, named)[0].item() for _ in range(4)] == [2, 3, 4, 5]
    assert len(found) == 4 and found[0].tolist() == [2, 2, 2] and named["last"] is x


def test_functions_that_are_reached_by_objects_are_watched():
    import types

    class Owner:
        def __init__(self):
            self.inner, self.settings = types.SimpleNamespace(secret=2.0), {"factor": 2.0}

        def __call__(self, x):
            return x * self.inner.secret

        def helper(self, x):
            return x * self.settings["factor"]

        def go(self, x):
            return self.helper(x) + 1

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.settings, self.table = {"factor": 2.0}, torch.ones(3)

        def helper(self, x):
            return x * self.settings["factor"]

        def forward(self, x):
            return self.helper(x) + self.table
    owner, module, factor = Owner(), Module(), [2.0]
    functions = [lambda x: x * factor[0]]
    compiled_twice(lambda x: owner(x), lambda: setattr(owner.inner, "secret", owner.inner.secret + 1))
    compiled_twice(owner.go, lambda: owner.settings.update(factor=owner.settings["factor"] + 1))
    compiled_twice(lambda x: functions[0](x), lambda: factor.__setitem__(0, factor[0] + 1))
    compiled_twice(module, lambda: module.settings.update(factor=module.settings["factor"] + 1))
    compiled_twice(module, lambda: setattr(module, "table", module.table + 1))


def test_attributes_that_appear_and_arrays_are_watched():
    import types
    numpy = pytest.importorskip("numpy")
    place, array = types.SimpleNamespace(), numpy.array([2.0])
    compiled_twice(lambda x: x * getattr(place, "factor", 2.0), lambda: setattr(place, "factor", 3.0))
    compiled_twice(lambda x: x * float(array[0]), lambda: array.__iadd__(1))


def test_what_cannot_be_captured_runs_as_it_is():
    class Result:
        def __init__(self, value):
            self.value = value

        def __del__(self):  # a call might make one more
            pass
    x = torch.arange(3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.compile(lambda x: Result(x * 2), backend="eager")(x).value.tolist() == [0, 2, 4]
        assert torch.compile(lambda x: x.tolist(), backend="eager")(x) == [0, 1, 2]
        with pytest.raises(ValueError, match="its own"):
            torch.compile(fails, backend="eager")(x)
    with pytest.raises(RuntimeError, match="Found .*Result.* in output"):
        torch.compile(lambda x: Result(x * 2), backend="eager", fullgraph=True)(x)

    def backend(graph, inputs):
        raise KeyError("the backend's")
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="the backend's"):
        torch.compile(lambda x: x * 2, backend=backend)(x)


def fails(x):
    raise ValueError("its own")


def test_the_environment_is_watched(monkeypatch):
    import os
    monkeypatch.setenv("UMBRA_TEST_FACTOR", "2")
    compiled_twice(lambda x: x * int(os.environ["UMBRA_TEST_FACTOR"]), lambda: monkeypatch.setenv("UMBRA_TEST_FACTOR", "3"))


def test_a_size_marked_unbacked_has_one_capture():
    graphs = []
    compiled = torch.compile(lambda x: x * 2, backend=lambda graph, _: graphs.append(graph) or graph, fullgraph=True)
    for n in (4, 5, 7):
        x = torch.ones(n, 3)
        torch._dynamo.decorators.mark_unbacked(x, 0)
        assert torch.equal(compiled(x), x * 2)
    assert len(graphs) == 1
    with pytest.raises(NotImplementedError, match="mark_unbacked"):
        torch._dynamo.decorators.mark_unbacked(torch.ones(3), 0, shape_id="batch")


def test_export_does_not_go_by_sizes_marked_unbacked():
    x = torch.ones(4, 3)
    torch._dynamo.decorators.mark_unbacked(x, 0)
    assert not torch.export.export(torch.nn.ReLU(), (x,)).range_constraints


def needs_gradients(x):
    view = x[1:]
    return x * 2 if x.requires_grad else x * 3, view.requires_grad, x.is_leaf


@pytest.mark.parametrize("grad", [True, False])
def test_a_function_that_asks_what_its_arguments_are_to_autograd_is_told(grad):
    compiled = torch.compile(needs_gradients, backend="aot_eager", fullgraph=True)
    leaf = torch.ones(3, requires_grad=True)
    for x in (leaf, leaf * 1, torch.ones(3), leaf * 2, leaf):
        with torch.set_grad_enabled(grad):
            (value, *answers), (expected, *expected_answers) = compiled(x), needs_gradients(x)
        assert torch.equal(value, expected) and answers == expected_answers
    assert torch.compiler.cache_info(compiled).hits == 2
    assert "tensor 'x' is_leaf mismatch. expected is_leaf=1" in torch.compiler.cache_info(compiled).reasons


def test_leaves_and_what_was_computed_share_a_capture_where_nobody_asks():
    compiled = torch.compile(lambda x: x * 2, backend="aot_eager")
    leaf = torch.ones(3, requires_grad=True)
    for x in (leaf, leaf * 1):
        compiled(x).sum().backward()
    assert torch.compiler.cache_info(compiled).misses == 1 and torch.equal(leaf.grad, torch.full((3,), 4.0))


def test_a_view_that_is_given_twice_is_one_tensor():
    def f(x):
        view = x[:2]
        return view, {"again": [view]}, x.t(), view
    first, again, other, last = torch.compile(f, backend="aot_eager")(torch.ones(2, 2))
    assert first is last and first is again["again"][0] and first is not other


def test_numbers_and_sizes_that_only_data_tell_are_symbols_where_the_whole_function_is_asked_for():
    compiled = torch.compile(lambda x: x[x > 0] * x.sum().item(), fullgraph=True)
    for values in ([1.0, 2.0], [1.0, -2.0, 3.0, 4.0]):
        x = torch.tensor(values)
        assert torch.equal(compiled(x), x[x > 0] * x.sum())
    assert torch.compiler.cache_info(compiled).misses == 1
    with torch._dynamo.config.patch(capture_scalar_outputs=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        x = torch.ones(3, requires_grad=True)
        torch.compile(lambda x: x * x.sum().item())(x).sum().backward()
        assert x.grad.tolist() == [3.0] * 3


def test_a_limit_that_was_set_before_the_first_compilation_holds():
    code = ("import umbra as torch, warnings; warnings.simplefilter('ignore'); torch._dynamo.config.recompile_limit = 2; "
            "f = torch.compile(lambda x, s: x * len(s)); [f(torch.ones(1), 'a' * i) for i in range(5)]; print(torch.compiler.cache_info(f).size)")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "2\n"


def test_a_backend_of_compilers_gets_the_graphs_of_forward_and_backward():
    from umbra._dynamo.backends.common import aot_autograd
    seen = []

    def compiler(kind):
        def compile(module, inputs):
            seen.append((kind, [str(node.target) for node in module.graph.nodes if node.op == "call_function"]))
            return module.forward
        return compile
    backend = aot_autograd(fw_compiler=compiler("forward"), bw_compiler=compiler("backward"), inference_compiler=compiler("inference"),
                           decompositions=lambda: torch._decomp.get_decompositions([torch.ops.aten.silu]))
    compiled = torch.compile(torch.nn.functional.silu, backend=backend)
    x = torch.ones(2, requires_grad=True)
    compiled(x).sum().backward()
    compiled(x.detach())
    assert [kind for kind, _ in seen] == ["forward", "backward", "inference"]
    assert seen[0][1] == seen[2][1] == ["aten.sigmoid.default", "aten.mul.Tensor"]
    with pytest.raises(NotImplementedError, match="pre_grad_passes"):
        aot_autograd(fw_compiler=compiler("forward"), pre_grad_passes=print)


def test_backends_are_registered_by_name():
    backend, graphs = counting()
    torch._dynamo.register_backend(backend, name="counting_for_a_test")
    assert torch.compile(lambda x: x + 1, backend="counting_for_a_test")(torch.ones(1)).item() == 2 and len(graphs) == 1
    assert "counting_for_a_test" in torch._dynamo.list_backends() and torch._dynamo.lookup_backend("counting_for_a_test") is backend
    with pytest.raises(AssertionError, match="duplicate name"):
        torch._dynamo.register_backend(backend, name="counting_for_a_test")
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="did not return callable"):
        torch.compile(lambda x: x + 1, backend=lambda module, inputs: 3)(torch.ones(1))


def test_another_backend_may_be_the_default():
    backend, graphs = counting()
    torch.compiler.set_default_backend(backend)
    try:
        assert torch.compile(lambda x: x + 1)(torch.ones(1)).item() == 2 and len(graphs) == 1 and torch.compiler.get_default_backend() is backend
    finally:
        torch.compiler.set_default_backend(None)
    assert torch.compiler.get_default_backend() == "inductor"


def test_a_function_of_arrays_takes_and_gives_tensors():
    import numpy
    double = torch.compiler.wrap_numpy(lambda a, by=2: {"result": numpy.multiply(a, by)})
    assert torch.equal(double(torch.ones(2))["result"], torch.full((2,), 2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.equal(torch.compile(lambda x: double(x, by=3)["result"] + 1)(torch.ones(2)), torch.full((2,), 4.0))


def test_what_the_branch_of_a_cond_or_the_steps_of_a_loop_tell_is_a_symbol():
    def sizes(p, x):
        y = torch.cond(p, lambda x: x[:2].clone(), lambda x: x * 2, (x,))
        return y + 1, y.shape[0]

    def numbers(p, x):
        y, n = torch.cond(p, lambda x: (x.sin(), 3), lambda x: (x.cos(), 4), (x,))
        return y * n, n

    def steps(p, x):
        count, y = torch._higher_order_ops.while_loop(lambda i, x: (x.sum() < 20) & p, lambda i, x: (i + 1, x * 2), (0, x))
        return y, count
    for function in (sizes, numbers, steps):
        for dynamic in (None, True, False):
            compiled = torch.compile(function, backend="aot_eager", fullgraph=True, dynamic=dynamic)
            for p in (True, False):
                for x in (torch.arange(3.), torch.arange(4.)):
                    given = (torch.tensor(p), x)
                    (found, number), (expected, expected_number) = compiled(*given), function(*given)
                    assert torch.equal(found, expected) and number == expected_number
    x = torch.arange(3., requires_grad=True)
    found, number = torch.compile(numbers, backend="aot_eager", fullgraph=True)(torch.tensor(True), x)
    found.sum().backward()
    assert number == 3 and torch.allclose(x.grad, 3 * x.detach().cos())


@pytest.mark.filterwarnings("ignore:torch.compile")
def test_lists_of_numbers_that_data_tell_are_captured():
    def function(x):
        (a, b), (c, d) = x.tolist()
        return torch.ones(2) * (a + b * c + d), x[0, 0].tolist(), x.tolist()
    count = Counting()
    compiled = torch.compile(function, backend=count, fullgraph=True)
    for numbers in ([[1, 2], [3, 4]], [[4, 2], [1, 1]]):
        result, first, rows = compiled(torch.tensor(numbers))
        assert result.tolist() == [numbers[0][0] + numbers[0][1] * numbers[1][0] + numbers[1][1]] * 2
        assert first == numbers[0][0] and rows == numbers
    assert count.graphs == 1
    floats = torch.compile(lambda x: torch.ones(2) * x.tolist()[1], backend="aot_eager")
    assert floats(torch.tensor([1.5, 2.5])).tolist() == [2.5, 2.5] and floats(torch.tensor([1.5, 0.5])).tolist() == [0.5, 0.5]


@pytest.mark.filterwarnings("ignore:torch.compile")
def test_results_keep_their_class_or_are_refused():
    class Named(torch.Tensor):
        pass

    def noted(x):
        y = Named(x + 1)
        y.note = 3
        return y
    with pytest.raises(torch._dynamo.exc.Unsupported, match="a result of the class Named"):
        torch.compile(noted, backend="aot_eager", fullgraph=True)(torch.ones(2))
    for function in (lambda x: Named(x + 1), lambda x: (x + 1).as_subclass(Named), lambda x: [x, {"a": (x + 1).as_subclass(Named)}][1]["a"]):
        compiled = torch.compile(function, backend="aot_eager")
        assert all(type(compiled(torch.ones(2))) is Named for _ in range(3))
        whole, x = torch.compile(function, backend="aot_eager", fullgraph=True), torch.ones(2, requires_grad=True)
        assert all(type(whole(x * i)) is Named and whole(x * i).tolist() == [i + 1] * 2 for i in (1, 2))
        whole(x).sum().backward()
        assert x.grad.tolist() == [1, 1]


def test_settings_of_compilers_that_have_no_effect_can_be_named():
    with torch._dynamo.config.patch(accumulated_recompile_limit=3, specialize_int=True, assume_static_by_default=False):
        assert torch._dynamo.config.accumulated_recompile_limit == 3
        assert torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1)).item() == 2
    assert torch._dynamo.config.accumulated_recompile_limit == 256


def test_an_exception_that_leaves_a_whole_graph_is_unsupported_and_known():
    def missing(x):
        return {}["key"]
    with pytest.raises(torch._dynamo.exc.Unsupported, match="Observed exception\\n.*KeyError: 'key'") as info:
        torch.compile(missing, backend="eager", fullgraph=True)(torch.ones(1))
    assert type(info.value.__cause__) is KeyError
    with warnings.catch_warnings(), pytest.raises(KeyError):
        warnings.simplefilter("ignore")
        torch.compile(missing, backend="eager")(torch.ones(1))
