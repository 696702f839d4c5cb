"""Which calls of a compiled function use graphs again, and what is told of those that do not."""
import copy
import gc
import subprocess
import sys
import warnings
import weakref

import pytest

import umbra as torch
from umbra._functorch.aot_autograd import aot_export_module, aot_function, aot_module, make_boxed_func
from umbra._functorch.compilers import nop
from umbra._functorch.partitioners import min_cut_rematerialization_partition

info = torch.compiler.cache_info


def counted(function):
    """The function with its runs counted: it runs when it is captured."""
    def run(*args, **kwargs):
        run.calls += 1
        return function(*args, **kwargs)
    run.calls = 0
    return run


def test_a_call_of_a_known_kind_does_not_run_the_function():
    f = counted(lambda x, y: {"sum": x + y, "parts": (x, [y * 2])})
    compiled = aot_function(f, nop)
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    first, runs = compiled(x, y), f.calls
    again = compiled(y, x)
    assert f.calls == runs and torch.equal(first["sum"], again["sum"])
    assert again["parts"][0] is y and torch.equal(again["parts"][1][0], x * 2)
    assert (info(compiled).hits, info(compiled).misses) == (1, 1)


@pytest.mark.parametrize("other, reason", [
    (lambda x: x.double(), "tensor 'x' dtype mismatch. expected Float, actual Double"),
    (lambda x: torch.randn(3, 3), "tensor 'x' size mismatch at index 0. expected 2, actual 3"),
    (lambda x: torch.randn(3, 2).t(), None),
    (lambda x: torch.empty_strided((2, 3), (4, 1)).fill_(1), "tensor 'x' stride mismatch at index 0. expected 3, actual 4"),
    (lambda x: torch.randn(2, 3, 1), "tensor 'x' rank mismatch. expected 2, actual 3"),
    (lambda x: torch.randn(2, 3, requires_grad=True), "tensor 'x' requires_grad mismatch. expected requires_grad=0"),
    (lambda x: 3, "tensor 'x' type mismatch. expected a tensor, actual int"),
])
def test_a_call_of_another_kind_is_captured_and_says_why(other, reason):
    compiled = aot_function(lambda x: x * 2, nop)
    x = torch.randn(2, 3)
    compiled(x)
    given = other(x)
    expected, found = given * 2, compiled(given)
    assert torch.equal(expected, found) if isinstance(given, torch.Tensor) else expected == found
    assert info(compiled).misses == 2
    assert reason is None or info(compiled).reasons[reason] == 1


def test_values_that_are_no_tensors_are_told_apart():
    compiled = aot_function(lambda x, n: x / n if isinstance(n, float) else x * n, nop)
    x = torch.ones(2)
    for n in (1, True, 1.0, 0.0, -0.0, 2, 1):
        expected = x / n if isinstance(n, float) else x * n
        assert torch.equal(compiled(x, n), expected)
    assert info(compiled).misses == 6 and info(compiled).reasons["n == 1"] == 1


def test_inputs_that_become_one_tensor_or_share_memory_are_captured_anew():
    def f(x, y):
        x.add_(1)
        return x * y
    compiled = aot_function(f, nop)
    for make in (lambda: (torch.ones(2), torch.ones(2)), lambda: (torch.ones(2),) * 2, lambda: torch.ones(2, 2).unbind(),
                 lambda: (torch.ones(2), torch.ones(2))):
        assert torch.equal(compiled(*make()), f(*make()))
    assert info(compiled).misses == 3


def test_the_threads_modes_are_guarded():
    weight = torch.randn(4, 4)
    compiled = torch.compile(lambda x: (x @ weight).float() + torch.ones(4).to(x.dtype), backend="eager")
    x = torch.randn(4, 4)

    def both():
        assert torch.equal(compiled(x), (x @ weight).float() + torch.ones(4))
    both()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        both()
    with torch.no_grad():
        both()
    torch.use_deterministic_algorithms(True)
    try:
        both()
    finally:
        torch.use_deterministic_algorithms(False)
    both()
    reasons = info(compiled).reasons
    assert reasons["GLOBAL_STATE changed: autocast(cpu)_enabled "] == 1
    assert info(compiled).misses == 4 and info(compiled).hits == 1


def test_a_region_without_autocast_stays_without_it_when_graphs_run_inside_of_one():
    def f(x):
        with torch.autocast("cpu", enabled=False):
            return x @ x
    compiled = aot_function(f, nop)
    x = torch.randn(8, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert compiled(x).dtype == f(x).dtype == torch.float32
        assert compiled(x).dtype == torch.float32


def test_the_default_device_is_guarded():
    for compiled in (torch.compile(lambda x: torch.ones(2), backend="eager"),
                     aot_function(lambda x: torch.ones(2), nop)):
        x = torch.ones(1)
        for _ in range(2):
            assert compiled(x).device.type == "cpu"
            with torch.device("meta"):
                assert compiled(x).device.type == "meta"
            torch.set_default_device("meta")
            try:
                assert compiled(x).device.type == "meta"
            finally:
                torch.set_default_device(None)
        assert info(compiled).misses == 2


FLAG = 2.0
TABLE = {"scale": 2.0}
WEIGHT = torch.ones(3)


def helper(x):
    return x * FLAG


def test_what_the_function_takes_from_outside_is_watched():
    global FLAG, TABLE, WEIGHT, helper
    settings = [1.0]

    def f(x, bias=None):
        return helper(x) + TABLE["scale"] + WEIGHT + settings[0]
    g = counted(f)
    compiled = torch.compile(f, backend="eager")
    x = torch.ones(3)

    def check():
        assert torch.equal(compiled(x), f(x))
        assert torch.equal(compiled(x), g(x))
    check()
    FLAG = 3.0
    check()
    TABLE["scale"] = 5.0
    check()
    WEIGHT = torch.full((3,), 7.0)
    check()
    settings[0] = 4.0
    check()
    TABLE = dict(TABLE)  # another dict that is alike, and then is not
    check()
    TABLE["scale"] = 6.0
    check()
    before, helper = helper, lambda x: x - 1
    try:
        check()
    finally:
        helper, FLAG, TABLE["scale"] = before, 2.0, 2.0
    found = info(compiled)
    assert found.misses == 7 and found.reasons["FLAG == 2.0"] == 1 and found.reasons["WEIGHT is another object"] == 1


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)
        self.factor = 2

    def forward(self, x):
        return self.inner(x) * self.factor


def test_attributes_and_parameters_of_a_compiled_module_are_watched():
    module = Scaled()
    compiled = torch.compile(module, backend="aot_eager")
    x = torch.randn(2, 3)
    for change in (lambda: None, lambda: setattr(module, "factor", 5), lambda: setattr(module.inner, "weight", torch.nn.Parameter(torch.ones(3, 3))),
                   lambda: module.inner.bias.requires_grad_(False), lambda: setattr(module, "inner", torch.nn.Linear(3, 3)), module.eval):
        change()
        for _ in range(2):
            assert torch.equal(compiled(x), module(x))


def test_a_module_compiled_ahead_of_time_takes_other_parameters_and_buffers():
    module = torch.nn.BatchNorm1d(3)
    compiled = aot_module(module, nop)
    x = torch.randn(4, 3)
    other = torch.nn.BatchNorm1d(3)
    for _ in range(3):
        assert torch.equal(compiled(x), other(x))
    assert torch.equal(module.running_mean, other.running_mean)
    module.running_mean, other.running_mean = torch.ones(3), torch.ones(3)
    assert torch.equal(compiled(x), other(x)) and torch.equal(module.running_mean, other.running_mean)
    module.eval(), other.eval()
    assert torch.equal(compiled(x), other(x))
    assert info(compiled).misses == 2


def test_beyond_the_limit_calls_that_have_graphs_go_on_with_them():
    ran = []

    def backend(module, inputs):
        number = len(ran)
        ran.append(0)

        def run(*args):
            ran[number] += 1
            return module(*args)
        return run
    compiled = torch.compile(lambda x: x + 1, backend=backend, dynamic=False, recompile_limit=2)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for size in (2, 3, 4, 2, 3, 5):
            assert torch.equal(compiled(torch.ones(size)), torch.ones(size) + 1)
    assert ran == [2, 2] and len(seen) == 1
    assert "size mismatch at index 0" in str(seen[0].message)
    with torch._dynamo.config.patch(recompile_limit=1):
        limited = torch.compile(lambda x: x + 1, backend=backend, dynamic=False)
        with pytest.warns(UserWarning, match="recompile_limit"):
            limited(torch.ones(2)), limited(torch.ones(3))
    assert len(ran) == 3
    torch._dynamo.reset()
    compiled(torch.ones(2))
    assert len(ran) == 4


def test_beyond_the_limit_a_call_is_an_error_where_that_is_asked_for():
    config, errors = torch._dynamo.config, torch._dynamo.exc

    def make(**settings):
        return torch.compile(lambda x: x + 1, backend="eager", dynamic=False, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = make(fullgraph=True, recompile_limit=1)
        compiled(torch.ones(2))
        with pytest.raises(errors.FailOnRecompileLimitHit, match="fullgraph=True"):
            compiled(torch.ones(3))
        assert compiled(torch.ones(2)).tolist() == [2, 2]
        with config.patch(cache_size_limit=1, fail_on_recompile_limit_hit=True):
            compiled = make()
            compiled(torch.ones(2))
            with pytest.raises(errors.FailOnRecompileLimitHit, match="fail_on_recompile_limit_hit"):
                compiled(torch.ones(3))
    with config.patch(error_on_recompile=True):
        compiled = make()
        compiled(torch.ones(2))
        with pytest.raises(errors.RecompileError, match="tensor 'x' size mismatch at index 0. expected 2, actual 3"):
            compiled(torch.ones(3))


def test_an_integer_becomes_a_symbol_with_the_second_one():
    compiled = torch.compile(lambda x, n: x * n, backend="eager")
    for n in range(2, 20):
        assert torch.equal(compiled(torch.ones(3), n), torch.full((3,), float(n)))
    assert info(compiled).misses == 2


def test_the_oldest_captures_make_place():
    compiled = aot_function(lambda x: x * 2, nop)
    for size in range(1, 80):
        assert compiled(torch.ones(size)).shape == (size,)
    found = info(compiled)
    assert (found.size, found.evictions, found.misses) == (64, 15, 79)
    compiled(torch.ones(1))
    assert info(compiled).misses == 80


def test_a_graph_that_is_edited_or_hooked_after_it_was_compiled_runs_as_it_is_now():
    graphs = []

    def keep(module, inputs):
        graphs.append(module)
        return make_boxed_func(module)
    compiled = aot_function(lambda x: x + 1, keep)
    x = torch.zeros(2)
    assert compiled(x).tolist() == [1, 1] and compiled(x).tolist() == [1, 1]
    module = graphs[0]
    node = next(node for node in module.graph.nodes if node.op == "call_function")
    node.args = (node.args[0], 5)
    module.recompile()
    assert compiled(x).tolist() == [5, 5]
    handle = module.register_forward_hook(lambda module, args, output: [output[0] * 2])
    assert compiled(x).tolist() == [10, 10]
    handle.remove()
    assert compiled(x).tolist() == [5, 5]


def test_a_compiled_function_is_a_method_of_a_class():
    class Scaler:
        def __init__(self, factor):
            self.factor, self.weight = factor, torch.full((2,), float(factor))

        @torch.compile(backend="eager")
        def run(self, x):
            return x * self.factor + self.weight
    two, three = Scaler(2), Scaler(3)
    for _ in range(2):
        assert two.run(torch.ones(2)).tolist() == [4, 4] and three.run(torch.ones(2)).tolist() == [6, 6]
    two.factor, three.weight = 10, torch.zeros(2)
    assert two.run(torch.ones(2)).tolist() == [12, 12] and three.run(torch.ones(2)).tolist() == [3, 3]
    assert Scaler.run.__name__ == "run"


def test_a_copy_of_a_compiled_module_has_parameters_of_its_own():
    for make in (lambda m: aot_module(m, nop), lambda m: torch.compile(m, backend="eager")):
        compiled = make(torch.nn.Linear(2, 2))
        x = torch.ones(1, 2)
        before = compiled(x)
        other = copy.deepcopy(compiled)
        with torch.no_grad():
            for parameter in other.parameters():
                parameter.zero_()
        assert other(x).tolist() == [[0, 0]] and torch.equal(compiled(x), before)


def test_a_compiled_module_that_nobody_has_goes():
    for make in (lambda m: aot_module(m, nop), lambda m: torch.compile(m, backend="eager")):
        module = torch.nn.Linear(2, 2)
        gone, compiled = weakref.ref(module), make(module)
        compiled(torch.ones(1, 2)).sum().backward()
        del module, compiled
        gc.collect()
        assert gone() is None


def test_cache_info_is_for_compiled_functions():
    with pytest.raises(TypeError, match="compiled function"):
        info(lambda x: x)


# ---- the cache on disk ----

GPT = """
import sys, time
import umbra as torch
from umbra._functorch.aot_autograd import aot_function, aot_module
from umbra._functorch.compilers import nop
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
x = torch.randn(2, 5, 16, requires_grad=True)
compiled = aot_module(layer, nop)
y = compiled(x)
y.sin().sum().backward()
eager = torch.autograd.grad(layer(x).sin().sum(), x)[0]
assert torch.allclose(eager, x.grad, atol=1e-5)
print(torch.compiler.disk_cache_info())
"""


def run_program(directory, program=GPT):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False,
                          env={"UMBRA_CACHE_DIR": str(directory), "PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin"})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_another_process_finds_the_graphs(tmp_path):
    assert "hits=0, misses=1, stored=1" in run_program(tmp_path)
    assert "hits=1, misses=0, stored=0" in run_program(tmp_path)


def test_a_damaged_file_is_replaced(tmp_path):
    run_program(tmp_path)
    [file] = tmp_path.iterdir()
    whole = file.read_bytes()
    for damaged in (b"", whole[:100], whole[:-1], whole.replace(b"aten::", b"bten::", 1), whole[:2000] + b"\xff" + whole[2001:]):
        file.write_bytes(damaged)
        found = run_program(tmp_path)
        assert "hits=0, misses=1, stored=1, damaged=1" in found and file.read_bytes() == whole


@pytest.fixture
def cache(tmp_path):
    torch.compiler.set_cache_directory(tmp_path)
    yield tmp_path
    torch.compiler.set_cache_directory(None)


def stored(directory):
    return len(list(directory.iterdir()))


def test_functions_of_other_operators_numbers_or_modes_have_other_files(cache):
    x = torch.randn(3, requires_grad=True)
    for f in (lambda x: x * 2, lambda x: x * 3, lambda x: x + 2, lambda x: (x * 2).sin(), lambda x: x.detach() * 2 + x * 2):
        before = stored(cache)
        for _ in range(2):
            assert torch.equal(aot_function(f, nop)(x), f(x))
        assert stored(cache) == before + 1

    def without(x):
        with torch.no_grad():
            y = x * 2
        return y * x
    for f in (without, lambda x: x * 2 * x):
        gradient = torch.autograd.grad(f(x).sum(), x)[0]
        for _ in range(2):
            assert torch.equal(torch.autograd.grad(aot_function(f, nop)(x).sum(), x)[0], gradient)


def test_what_only_this_process_knows_is_not_kept(cache):
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    def hooked(x):
        y = x * 3
        y.register_hook(lambda gradient: gradient * 10)
        return y
    x = torch.randn(3, requires_grad=True)
    constant = lambda x: x * torch.tensor([[1.0] * 600] * 600)  # noqa: E731
    before = torch.compiler.disk_cache_info().bypassed
    for f in (Doubled.apply, hooked):
        expected = torch.autograd.grad(f(x).sum(), x)[0]
        assert torch.equal(torch.autograd.grad(aot_function(f, nop)(x).sum(), x)[0], expected)
    aot_function(constant, nop)(torch.ones(600))  # more than a megabyte
    aot_function(lambda x: x[x > 0] * 2, nop, dynamic=True)(x.detach())  # a size that only the run tells
    aot_function(lambda x: x.sin(), nop, decompositions={torch.ops.aten.sin.default: lambda x: x.cos()})(x.detach())
    after = torch.compiler.disk_cache_info().bypassed
    assert stored(cache) == 0 and sum(after.values()) == sum(before.values()) + 5


def test_constants_are_kept_by_their_contents(cache):
    def times(numbers):
        return lambda x: x * torch.tensor(numbers)
    x = torch.randn(3, requires_grad=True)
    for numbers in ([1.0, 2.0, 3.0], [1.0, 2.0, 4.0], [1, 2, 3]):
        before = stored(cache)
        for _ in range(2):
            result = aot_function(times(numbers), nop)(x)
            assert torch.equal(result, x * torch.tensor(numbers))
            assert torch.equal(torch.autograd.grad(result.sum(), x)[0], torch.tensor(numbers) * torch.ones(3))
        assert stored(cache) == before + 1


def test_tables_of_the_librarys_own_functions_are_part_of_the_key(cache):
    from umbra._decomp import core_aten_decompositions
    x = torch.randn(3)
    for table in ({}, core_aten_decompositions()):
        before = stored(cache)
        for _ in range(2):
            assert torch.allclose(aot_function(torch.nn.functional.silu, nop, decompositions=table)(x), torch.nn.functional.silu(x))
        assert stored(cache) == before + 1


def test_graphs_of_symbolic_sizes_come_back_with_their_guards(cache):
    def f(x, y, n):
        z = x.reshape(-1) if x.shape[0] > 3 else x.t().reshape(-1) * 2
        return (z * y.sum() * n).view(x.shape[1], -1), x.shape[0] * 2, torch.cat([x, x])[: x.shape[0]]

    def leaf(*sizes):
        return torch.arange(1.0, 1 + sizes[0] * sizes[1]).reshape(sizes).requires_grad_()
    hits = torch.compiler.disk_cache_info().hits
    for _ in range(2):
        compiled = aot_function(f, nop, partition_fn=min_cut_rematerialization_partition, dynamic=True)
        for sizes in ((4, 3), (5, 2), (2, 3), (1, 3), (8, 3), (0, 2)):
            x, again, y = leaf(*sizes), leaf(*sizes), torch.ones(sizes[1] + 1, requires_grad=True)
            if 0 in sizes:
                continue
            found, expected = compiled(x, y, 3), f(again, y, 3)
            assert torch.allclose(found[0], expected[0]) and found[1] == expected[1] and torch.equal(found[2], expected[2])
            (found[0].sin().sum() + found[2].sum()).backward()
            (expected[0].sin().sum() + expected[2].sum()).backward()
            assert torch.allclose(x.grad, again.grad)
    assert torch.compiler.disk_cache_info().hits > hits


DYNAMIC = """
import umbra as torch
from umbra._functorch.aot_autograd import aot_module
from umbra._functorch.compilers import nop
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
compiled = aot_module(layer, nop, dynamic=True)
for sizes in ((2, 5, 16), (3, 7, 16), (4, 6, 16)):
    x = torch.randn(*sizes, requires_grad=True)
    compiled(x).sin().sum().backward()
    assert torch.allclose(torch.autograd.grad(layer(x).sin().sum(), x)[0], x.grad, atol=1e-5)
print(torch.compiler.disk_cache_info())
"""


def test_another_process_finds_graphs_of_symbolic_sizes(tmp_path):
    first, second = run_program(tmp_path, DYNAMIC), run_program(tmp_path, DYNAMIC)
    assert "hits=0" in first and "misses=0" in second and "bypassed={}" in second


def test_writes_views_and_plain_results_come_from_files_too(cache):
    def f(x, y, n):
        y.add_(n)
        return x * y, y, y[0], n, "text"
    for _ in range(2):
        x, y, z = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2), torch.ones(2, 2)
        found, expected = aot_function(f, nop)(x, y, 3), f(x, z, 3)
        assert torch.equal(found[0], expected[0]) and found[1] is y and torch.equal(y, z) and found[3:] == [3, "text"]
        assert found[2]._base is y
    assert stored(cache) == 1


def test_exports_and_results_that_are_symbols_work_beside_the_cache(cache):
    class Pair(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x), x
    for _ in range(2):
        graph, _ = aot_export_module(Pair(2, 2), (torch.ones(1, 2),), trace_joint=False)
        assert any(node.op == "call_function" for node in graph.graph.nodes)
        assert aot_function(lambda x: (x * 2, x.shape[0]), nop, dynamic=True)(torch.ones(3))[1] == 3


def test_inside_a_transform_a_known_function_is_part_of_what_is_transformed():
    compiled = torch.compile(lambda x: x.sin() * 2, backend="eager")
    x = torch.randn(3, 4)
    for _ in range(2):
        assert torch.allclose(compiled(x[0]), x[0].sin() * 2)
        assert torch.allclose(torch.func.vmap(compiled)(x), x.sin() * 2)
        assert torch.allclose(torch.func.grad(lambda y: compiled(y).sum())(x[0]), x[0].cos() * 2)


@pytest.mark.parametrize("compile", [lambda f: aot_function(f, nop), lambda f: torch.compile(f, backend="aot_eager")])
def test_an_argument_that_may_be_nothing_is_told_from_a_tensor(compile):
    call = compile(lambda x, y: x if y is None else x + y)
    given = [None, torch.ones(2), None, torch.ones(2)]
    assert [call(torch.ones(2), y).tolist() for y in given] == [[1, 1], [2, 2], [1, 1], [2, 2]]


@pytest.mark.parametrize("compile", [lambda f: aot_function(f, nop), lambda f: torch.compile(f, backend="aot_eager")])
def test_parameters_are_told_from_other_tensors(compile):
    call = compile(lambda x: x * (2 if isinstance(x, torch.nn.Parameter) else 3))
    given = [torch.nn.Parameter(torch.ones(1)), torch.ones(1, requires_grad=True), torch.nn.Parameter(torch.ones(1)), torch.ones(1)]
    assert [call(x).item() for x in given] == [2, 3, 2, 3]


def test_a_module_s_parameters_are_parameters_while_it_is_captured():
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))
            self.register_buffer("scale", torch.ones(2))

        def forward(self, x):
            return x * isinstance(self.weight, torch.nn.Parameter) + isinstance(self.scale, torch.nn.Parameter)
    assert torch.compile(Layer(), backend="aot_eager")(torch.ones(2)).tolist() == [1, 1]


def test_arguments_of_registered_classes_need_no_names_of_their_parts():
    class Both:
        def __init__(self, first, second):
            self.first, self.second = first, second
    torch.utils._pytree.register_pytree_node(Both, lambda both: ([both.first, both.second], None), lambda parts, _: Both(*parts))
    for compile in (lambda f: aot_function(f, nop), lambda f: torch.compile(f, backend="aot_eager", fullgraph=True)):
        call = compile(lambda both: Both(both.second * 2, both.first))
        assert call(Both(torch.ones(1), torch.ones(2))).first.tolist() == [2, 2]
