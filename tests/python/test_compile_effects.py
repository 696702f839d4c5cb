"""torch.compile: what a function does besides computing values (gradients set, hooks, seeds, clocks, buffers that are replaced) is done at each call, and
results are what the function gave."""
import builtins
import collections
import contextvars
import functools
import io
import random
import time
import types
import warnings

import numpy
import pytest
from counting import Counting

import umbra as torch

pytestmark = pytest.mark.filterwarnings("ignore:torch.compile")

Pair = collections.namedtuple("Pair", "first second")


def compiled(function):
    return torch.compile(function, backend="aot_eager")


def numbers():
    return torch.tensor([1.0, 2.0, 3.0])


@pytest.mark.parametrize("function", [
    lambda x: (x + 1, x + 2), lambda x: [x + 1, x + 2], lambda x: (x + 1,), lambda x: (), lambda x: (x + 1, [x + 2, (x,)]), lambda x: Pair(x + 1, x),
    lambda x: x.shape, lambda x: (x + 1, x.shape), lambda x: {"a": (x, x.size())}, lambda x: x.max(0), lambda x: (x + 1, None), lambda x: x.split(1),
])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_results_have_the_types_that_the_function_gave(function, backend):
    def types(value):
        if isinstance(value, dict):
            return {key: types(part) for key, part in value.items()}
        return (type(value), [types(part) for part in value]) if isinstance(value, (tuple, list)) else type(value)
    call = torch.compile(function, backend=backend)
    for _ in range(2):
        assert types(call(numbers())) == types(function(numbers()))


def test_a_backend_may_print_and_ask_for_the_time(capsys):
    def backend(module, inputs):
        print("compiling at", time.time())
        return module
    call = torch.compile(lambda x: x + 1, backend=backend)
    assert call(numbers()).tolist() == [2, 3, 4] and torch.compiler.cache_info(call).misses == 1
    assert capsys.readouterr().out.startswith("compiling at")


def test_functions_that_stop_captures_are_themselves_again_afterwards():
    before = builtins.print, time.time
    compiled(lambda x: x + 1)(numbers())
    assert (builtins.print, time.time) == before


def sets_gradients(change):
    x, w = numbers(), numbers().requires_grad_()

    def function(x):
        w.grad = None
        return (x * w).sum()
    call = change(function)
    for _ in range(3):
        call(x).backward()
    return w.grad.tolist()


def sets_the_gradient_of_an_argument(change):
    x = numbers()

    def function(x):
        x.grad = torch.ones(3)
        return x * 2
    change(function)(x)
    return x.grad.tolist()


def asks_for_a_gradient(change):
    x = numbers().requires_grad_()
    call = change(lambda x: x * 2 if x.grad is None else x * x.grad)
    before = call(x)
    x.grad = torch.full((3,), 5.0)
    return before.tolist(), call(x).tolist()


def asks_for_a_gradient_of_another_tensor(change):
    w = numbers().requires_grad_()
    call = change(lambda x: x if w.grad is None else x * w.grad)
    before = call(numbers())
    (w * 2).sum().backward()
    return before.tolist(), call(numbers()).tolist()


def optimises(change):
    w = numbers().requires_grad_()
    optimizer = torch.optim.SGD([w], 0.1, momentum=0.9)
    step, found = change(optimizer.step), []
    for _ in range(3):
        optimizer.zero_grad()
        (w * w).sum().backward()
        step()
        found.append(w.tolist())
    return found


def requires_gradients(change):
    x = numbers()
    result = change(lambda x: x.requires_grad_() * 2)(x)
    return x.requires_grad, result.requires_grad


def requires_gradients_of_another_tensor(change):
    w = numbers()

    def function(x):
        w.requires_grad_()
        return x * w
    return change(function)(numbers()).requires_grad, w.requires_grad


def detaches(change):
    x = numbers().requires_grad_() * 1
    result = change(lambda x: x.detach_() * 2)(x)
    return x.requires_grad, result.requires_grad


def gives_a_new_leaf(change):
    result = change(lambda x: torch.nn.Parameter(x * 2))(numbers())
    return type(result).__name__, result.is_leaf, result.requires_grad


def gives_what_a_new_leaf_made(change):
    return change(lambda x: torch.zeros(3, requires_grad=True) + x)(numbers()).requires_grad


def asks_whether_it_is_a_leaf(change):
    return change(lambda x: (x * 2, x.is_leaf, x.grad_fn is None, (x * 2).is_leaf))(numbers().requires_grad_())[1:]


def retains_gradients(change):
    def function(x):
        y = x * 2
        y.retain_grad()
        return y
    y = change(function)(numbers().requires_grad_())
    y.sum().backward()
    return y.grad.tolist()


def hooks_an_argument(change):
    x = numbers().requires_grad_()

    def function(x):
        x.register_hook(lambda gradient: gradient * 2)
        return (x * 3).sum()
    change(function)(x).backward()
    x.sum().backward()
    return x.grad.tolist()


def hooks_another_tensor(change):
    w, seen = numbers().requires_grad_(), []

    def function(x):
        w.register_hook(lambda gradient: seen.append(1))
        return (x * w).sum()
    call = change(function)
    call(numbers()).backward()
    call(numbers()).backward()
    return len(seen)


def gives_a_tensor_an_attribute(change):
    x = numbers()

    def function(x):
        x.note = "seen"
        return x * 2
    change(function)(x)
    return x.note


def replaces_a_buffer(change):
    class Sums(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x):
            self.total = self.total + x
            return self.total * 2
    module = Sums()
    call = change(module)
    return [call(numbers()).tolist() for _ in range(3)], module.total.tolist()


def replaces_a_parameter(change):
    class Doubles(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(numbers())

        def forward(self, x):
            self.weight = torch.nn.Parameter(self.weight * 2)
            return x * self.weight
    module = Doubles()
    call = change(module)
    return [call(numbers()).tolist() for _ in range(3)], module.weight.tolist()


def draws_by_python(change):
    random.seed(0)
    call = change(lambda x: x * random.random())
    return [call(numbers()).tolist() for _ in range(2)]


def draws_by_numpy(change):
    numpy.random.seed(0)
    call = change(lambda x: x * float(numpy.random.rand()))
    return [call(numbers()).tolist() for _ in range(2)]


def seeds(change):
    def function(x):
        torch.manual_seed(3)
        return x + torch.rand(3)
    call = change(function)
    return [call(numbers()).tolist() for _ in range(2)]


def is_an_object(change):
    class Scale:
        factor = 2.0

        def __call__(self, x):
            return x * self.factor
    scale = Scale()
    call, found = change(scale), []
    for scale.factor in (2.0, 3.0):
        found.append(call(numbers()).tolist())
    return found


def takes_a_class_of_tensors(change):
    class Named(torch.Tensor):
        pass
    call = change(lambda x: x * 2)
    return [type(call(x)).__name__ for x in (numbers(), numbers().as_subclass(Named), numbers())]


@pytest.mark.parametrize("program", [
    sets_gradients, sets_the_gradient_of_an_argument, asks_for_a_gradient, asks_for_a_gradient_of_another_tensor, optimises, requires_gradients,
    requires_gradients_of_another_tensor, detaches, gives_a_new_leaf, gives_what_a_new_leaf_made, asks_whether_it_is_a_leaf, retains_gradients,
    hooks_an_argument, hooks_another_tensor, gives_a_tensor_an_attribute, replaces_a_buffer, replaces_a_parameter, draws_by_python, draws_by_numpy, seeds,
    is_an_object, takes_a_class_of_tensors,
])
def test_a_compiled_function_does_what_the_function_does(program):
    assert program(compiled) == program(lambda function: function)


def test_a_function_that_asks_for_the_time_is_not_captured():
    seen = []
    call = compiled(lambda x: (seen.append(time.perf_counter()), x * 2)[1])
    call(numbers()), call(numbers())
    assert len(set(seen)) == 2


def test_an_effect_that_cannot_be_captured_is_refused_where_the_whole_function_must_be():
    def function(x):
        x.requires_grad_()
        return x * 2
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(function, backend="eager", fullgraph=True)(numbers())


def uses_up_a_generator(change):
    generator = (number for number in (1.0, 2.0, 3.0))
    call = change(lambda x: x * next(generator))
    return [call(numbers()).tolist() for _ in range(3)]


def uses_up_an_iterator_that_it_is_given(change):
    call = change(lambda x, factors: x * sum(factors))
    return [call(numbers(), iter(factors)).tolist() for factors in ([1.0, 2.0], [3.0])]


def reads_a_context_variable(change):
    variable = contextvars.ContextVar("variable", default=2.0)
    call = change(lambda x: x * variable.get())
    found = [call(numbers()).tolist()]
    variable.set(3.0)
    return found + [call(numbers()).tolist()]


def fills_a_cache(change):
    @functools.lru_cache
    def table(size):
        return torch.arange(size) * 2.0
    call = change(lambda x: x * table(3))
    return [call(numbers()).tolist() for _ in range(3)], table(3).tolist()


@pytest.mark.parametrize("program", [uses_up_a_generator, uses_up_an_iterator_that_it_is_given, reads_a_context_variable, fills_a_cache])
def test_state_that_nobody_can_look_at_is_what_it_would_be_without_captures(program):
    assert program(compiled) == program(lambda function: function)


def writes_sizes_into_texts(change):
    call = change(lambda x: f"{x.shape[0]} of {x.shape} and {x.numel()}")
    return [call(torch.ones(size)) for size in (2, 3, 4, 5)]


def test_texts_have_the_numbers_of_the_call():
    assert writes_sizes_into_texts(compiled) == writes_sizes_into_texts(lambda function: function)


def test_what_is_set_on_a_compiled_module_is_set_on_the_module():
    module = torch.nn.Linear(2, 2)
    call = compiled(module)
    call.note, call.weight = "new", torch.nn.Parameter(torch.zeros(2, 2))
    assert module.note == "new" and module.weight is call.weight and call(torch.ones(1, 2)).tolist() == [module.bias.tolist()]
    del call.note
    assert not hasattr(module, "note")


def test_what_a_backend_raises_is_told_as_its_failure():
    def broken(module, inputs):
        raise ValueError("no code for this")
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="backend='broken' raised:\nValueError: no code for this") as error:
        torch.compile(lambda x: x + 1, backend=broken)(numbers())
    assert isinstance(error.value.inner_exception, ValueError)


def test_an_operator_without_a_fake_kernel_is_refused():
    @torch.library.custom_op("effects::without_fake", mutates_args=())
    def without_fake(x: torch.Tensor) -> torch.Tensor:
        return x * 2
    with pytest.raises(torch._dynamo.exc.TorchRuntimeError, match="no fake impl"):
        compiled(lambda x: without_fake(x) + 1)(numbers())


def test_stances():
    backend = Counting()
    call = torch.compile(lambda x: x + 1, backend=backend)
    with torch.compiler.set_stance("force_eager"):
        assert call(numbers()).tolist() == [2, 3, 4] and backend.graphs == 0
    with torch.compiler.set_stance("eager_on_recompile"):
        assert call(numbers()).tolist() == [2, 3, 4] and backend.graphs == 0
    call(numbers())
    with torch.compiler.set_stance("fail_on_recompile"):
        call(numbers())
        with pytest.raises(RuntimeError, match="Detected recompile when torch.compile stance is 'fail_on_recompile'"):
            call(numbers().double())
    assert backend.graphs == 1

    @torch.compiler.set_stance("force_eager")
    def eagerly(x):
        return call(x)
    assert eagerly(numbers().double()).dtype == torch.float64 and backend.graphs == 1
    call(numbers().double())
    assert backend.graphs == 2
    other = Counting()
    late = torch.compile(lambda x: x * 2, backend=other)
    with torch.compiler.set_stance("eager_then_compile"):
        late(numbers())
        assert other.graphs == 0
        late(numbers())
    assert other.graphs == 1
    with pytest.raises(RuntimeError, match="force_backend"):
        torch.compiler.set_stance("force_eager", force_backend="eager")


def test_force_eager_runs_functions_as_they_are_where_graphs_are_there_too():
    call = torch.compile(lambda x: x + 1 if torch.compiler.is_compiling() else x + 10, backend="eager")
    assert call(numbers()).tolist() == [2, 3, 4]
    with torch.compiler.set_stance("force_eager"):
        assert call(numbers()).tolist() == [11, 12, 13]


def keeps_features_by_hooks(change):
    module, features, last = torch.nn.Sequential(torch.nn.Identity(), torch.nn.ReLU()), [], {}
    module[0].register_forward_hook(lambda layer, inputs, output: features.append(output * 2))
    module[1].register_forward_hook(lambda layer, inputs, output: last.update(value=output))
    call = change(module)
    for factor in (1, 2, 3, 4, 5):
        call(numbers() * factor)
    return [feature.tolist() for feature in features], last["value"].tolist()


def reads_values_of_another_tensor(change):
    scale = torch.tensor([2.0, 3.0])
    call = change(lambda x: x * scale.tolist()[0] + float(scale.numpy()[1]))
    found = [call(numbers()).tolist()]
    scale.fill_(7.0)
    return found + [call(numbers()).tolist()]


def writes_files(change, path):
    def function(x):
        with open(path, "a") as file:
            file.write("called ")
        assert path.open().read()
        return x * 2
    call = change(function)
    call(numbers()), call(numbers())
    return path.read_text()


def test_what_hooks_and_values_of_other_tensors_do_is_done_at_each_call(tmp_path):
    for program in (keeps_features_by_hooks, reads_values_of_another_tensor):
        assert program(compiled) == program(lambda function: function)
    assert writes_files(compiled, tmp_path / "calls") == "called called "


def test_a_lazy_module_gets_its_sizes_by_its_first_call():
    module = torch.nn.Sequential(torch.nn.LazyLinear(3), torch.nn.ReLU())
    call = compiled(module)
    assert call(torch.ones(1, 2)).shape == (1, 3) and module[0].weight.shape == (3, 2) and call(torch.ones(4, 2)).shape == (4, 3)


def asks_whether_another_tensor_requires_gradients(change):
    weight = numbers()
    call = change(lambda x: x * weight if weight.requires_grad else x)
    before = call(numbers())
    weight.requires_grad_()
    after = call(numbers())
    return before.tolist(), after.tolist(), after.requires_grad


def test_a_question_about_another_tensor_is_asked_again():
    assert asks_whether_another_tensor_requires_gradients(compiled) == asks_whether_another_tensor_requires_gradients(lambda function: function)


def changes_bytes(held=bytearray(b"a")):
    return held, lambda x: (held.__setitem__(0, held[0] + 1), x * 2)[1]


def changes_an_array():
    held = numpy.zeros(2)

    def f(x):
        held[0] += 1
        return x * float(held[0])
    return held, f


def changes_what_a_partial_holds():
    held = []
    kept = functools.partial(lambda numbers, x: (numbers.append(1), x * len(numbers))[1], held)
    return held, lambda x: kept(x)


def turns_a_switch():
    held = {"on": False}

    def f(x):
        held["on"] = not held["on"]
        return x * 2 if held["on"] else x * 3
    return held, f


def moves_to_the_end():
    held = collections.OrderedDict(a=1, b=2)

    def f(x):
        held.move_to_end(next(iter(held)))
        return x * next(iter(held.values()))
    return held, f


def makes_objects_that_count():
    held = []

    class Counted:
        def __init__(self):
            held.append(1)

        def __radd__(self, other):
            held.append(2)
            return other
    return held, lambda x: x + Counted()


def writes_to_a_file():
    held = io.StringIO()
    return held, lambda x: (held.write("a"), x * 2)[1]


def gives_a_tensor_attributes():
    held = torch.ones(3)

    def f(x):
        held.count = getattr(held, "count", 0) + 1
        return x * held
    return held, f


def gives_an_attribute_by_name():
    held, name = types.SimpleNamespace(numbers=[1.0]), "numbers"

    def f(x):
        setattr(held, name, [getattr(held, name)[0] + 1])
        return x * 2
    return held, f


@pytest.mark.parametrize("program", [
    changes_bytes, changes_an_array, changes_what_a_partial_holds, turns_a_switch, moves_to_the_end, makes_objects_that_count, writes_to_a_file,
    gives_a_tensor_attributes, gives_an_attribute_by_name])
def test_what_a_function_changes_is_changed_once_a_call(program):
    def observe(compile):
        held, function = program()
        call, seen = compile(function), []
        for _ in range(4):
            seen += [call(numbers()).tolist(), held.getvalue() if isinstance(held, io.StringIO) else str(held), str(getattr(held, "__dict__", None))]
        return seen
    changes_bytes.__defaults__[0][0] = 1
    expected = observe(lambda f: f)
    changes_bytes.__defaults__[0][0] = 1
    assert observe(compiled) == expected


def test_a_mode_that_a_function_changes_is_changed_at_each_call():
    call = compiled(lambda x: (torch.set_grad_enabled(False), x * 2)[1])
    try:
        for _ in range(4):
            torch.set_grad_enabled(True)
            call(numbers())
            assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)


def test_a_container_that_a_function_is_given_is_given_back_itself():
    call = torch.compile(lambda x, given: (x * 2, given, [3]), backend="aot_eager", fullgraph=True)
    for given in ([numbers()], [numbers()], [numbers()]):
        doubled, same, made = call(given[0], given)
        assert doubled.tolist() == [2, 4, 6] and same is given
        made.append(4)
    assert call(numbers(), given)[-1] == [3]


def test_a_container_that_a_function_reads_is_given_back_itself():
    held = [1, {"a": 2}]
    call = compiled(lambda x: (x * 2, held, held[1]))
    for other in (held, held, [1, {"a": 2}]):
        held = other
        _, first, second = call(numbers())
        assert first is held and second is held[1]


def test_warnings_of_a_function_are_given_at_each_call():
    def f(x):
        warnings.warn("watch out")
        return x * 2
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call = compiled(f)
        for _ in range(3):
            call(numbers())
    assert sum("watch out" in str(w.message) for w in seen) == 3
    assert torch.compile(f, backend="eager", fullgraph=True)(numbers()).tolist() == [2, 4, 6]


def test_a_capture_does_not_stop_between_two_halves_of_what_the_library_notes():
    compiled(lambda x: x.cummax(0))(torch.ones(2, 3))  # the class of its results becomes known to trees
    known = torch.utils._pytree.SUPPORTED_NODES.keys()
    assert torch.return_types.cummax in known and known == torch.utils._pytree.SUPPORTED_SERIALIZED_TYPES.keys()
