"""Objects that a compiled function makes and gives back, and attributes that it gives its arguments."""
import functools
import itertools
import warnings

import pytest

import umbra as torch
from umbra._dynamo.exc import Unsupported


def whole(function):
    return torch.compile(function, backend="aot_eager", fullgraph=True)


class Box:
    def __init__(self, value):
        self.value = value


class Slotted:
    __slots__ = ("value", "never")

    def __init__(self, value):
        self.value = value


@pytest.mark.parametrize("make, look", [
    (Box, lambda found: found.value),
    (lambda y: Box([Box(y), 3]), lambda found: found.value[0].value),
    (Slotted, lambda found: found.value),
    (lambda y: {y, 1}, lambda found: next(part for part in found if isinstance(part, torch.Tensor))),
    (lambda y: functools.partial(torch.add, y), lambda found: found(torch.zeros(2))),
    (lambda y: lambda x: x + y, lambda found: found(torch.zeros(2))),
    (lambda y: lambda x, y=y, *, z=y: x + (y + z) / 2, lambda found: found(torch.zeros(2))),
    (lambda y: Box(y).__eq__.__self__.__init__, lambda found: found.__self__.value),
    (lambda y: iter([y]), next),
    (lambda y: (part for part in (y, y)), next),
    (lambda y: map(torch.abs, [y]), next),
    (lambda y: {"a": y}.items(), lambda found: dict(found)["a"]),
    (lambda y: {"a": y}.values(), lambda found: list(found)[0]),
], ids=lambda part: "")
def test_each_call_gives_an_object_of_its_own(make, look):
    compiled = whole(lambda x: make(x * 2))
    found = [compiled(torch.ones(2) * i) for i in (1, 2)]
    assert found[0] is not found[1] and type(found[0]) is type(found[1])
    assert [look(part).tolist() for part in found] == [[2, 2], [4, 4]]
    x = torch.ones(2, requires_grad=True)
    look(compiled(x)).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_a_closure_keeps_names_of_the_call_and_shares_those_of_others():
    factor = 3.0

    def function(x):
        count = 0

        def step(y):
            nonlocal count
            count += 1
            return (y * factor + x).tolist(), count
        return step
    compiled = whole(function)
    first, second = compiled(torch.ones(1)), compiled(torch.zeros(1))
    assert first(torch.ones(1)) == ([4], 1) and first(torch.ones(1)) == ([4], 2) and second(torch.ones(1)) == ([3], 1)
    factor = 5.0
    assert first(torch.ones(1)) == ([6], 3) and first.__qualname__.endswith("step")


def test_what_is_there_is_given_back_itself():
    module, box = torch.nn.Linear(1, 1), Box(1)
    compiled = whole(lambda x, box: (x * 2, module, box, len, torch.relu, torch.nn.functional.relu, ..., torch.Tensor.add, torch.ops.aten.add.Tensor,
                                     closes_over_itself, x.shape))
    for _ in range(2):
        _, *found, shape = compiled(torch.ones(1), box)
        expected = (module, box, len, torch.relu, torch.nn.functional.relu, ..., torch.Tensor.add, torch.ops.aten.add.Tensor, closes_over_itself)
        assert all(a is b for a, b in zip(found, expected)) and type(shape) is torch.Size
    module = torch.nn.Linear(1, 1)
    assert compiled(torch.ones(1), box)[1] is module


def closes_over_itself(x):
    def again(n):
        return x if n == 0 else again(n - 1)
    return again


SHARED, LAZY = Box(2), functools.lru_cache(lambda: Box(3))


@pytest.mark.parametrize("function, why", [
    (lambda x: (lambda box: (box, [box]))(Box(x)), "one Box twice"),
    (closes_over_itself, "one function twice"),
    (lambda x: (lambda part: (Box(part), part))([x]), "one list twice"),
    (lambda x: (lambda part: (part, part))({"x": x}), "one dict twice"),
    (lambda x: (x, type("Local", (), {"x": x})), "a class that the function makes"),
    (lambda x: type("Local", (), {"x": x})(), "a class that the function makes"),
    (lambda x: (x * 2, SHARED), "a Box from outside"),
    (lambda x: Box([SHARED, x]), "a Box from outside"),
    (lambda x: map(torch.abs, itertools.repeat(x)), "more than 1000 values"),
    (lambda x: (x + i for i in itertools.count()), "more than 1000 values"),
], ids=lambda part: part if isinstance(part, str) else "")
def test_objects_that_are_shared_or_never_end_are_refused(function, why):
    with pytest.raises(Unsupported, match=why):
        whole(function)(torch.ones(1))


def test_a_list_of_the_arguments_inside_of_an_object_is_refused():
    with pytest.raises(Unsupported, match="an argument's list"):
        whole(lambda x, part: Box(part))(torch.ones(1), [1])
    given = [1]
    found, made = whole(lambda x, part: (part, Box(x)))(torch.ones(1), given)
    assert found is given and made.value.tolist() == [1]


def test_a_cached_object_is_the_cached_one():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = torch.compile(lambda x: (x * 2, LAZY()), backend="aot_eager")
        assert all(compiled(torch.ones(1))[1] is LAZY() for _ in range(3))


def test_arguments_get_attributes():
    def function(x, y):
        x.note, x.pair, y.note = 5, (x * 2, [x]), Box(y + 1)
        return x.pair[0] * 1
    compiled = whole(function)
    for i in (1, 2):
        x, y = torch.ones(2) * i, torch.zeros(2)
        x.requires_grad_()
        result = compiled(x, y)
        assert x.note == 5 and x.pair[1][0] is x and y.note.value.tolist() == [1, 1]
        (result.sum() + x.pair[0].sum()).backward()
        assert x.grad.tolist() == [4, 4]


def test_an_attribute_that_is_also_the_result_is_one_tensor():
    def function(x):
        x.kept = x * 3
        return x.kept
    compiled = whole(function)
    for _ in range(2):
        x = torch.ones(2)
        assert compiled(x) is x.kept


def test_an_attribute_that_is_taken_away_is_refused():
    def function(x):
        del x.note
        return x * 2
    x = torch.ones(1)
    x.note = 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.compile(function, backend="aot_eager")(x)
    assert not hasattr(x, "note")


@pytest.mark.parametrize("whole_graph", [False, True])
def test_attributes_of_parameters_are_seen(whole_graph):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))
            self.weight.scale = 3.0

        def forward(self, x):
            return x * self.weight * getattr(self.weight, "scale", 1.0)
    net = Net()
    compiled = torch.compile(net, backend="aot_eager", fullgraph=whole_graph)
    for scale in (3.0, 5.0):
        net.weight.scale = scale
        assert compiled(torch.ones(2)).tolist() == [scale] * 2


HELD = {"list": [1, 2], "dict": {"a": torch.ones(2)}}


@pytest.mark.parametrize("kind", HELD)
def test_a_container_from_outside_is_given_as_itself(kind):
    class Holder:
        held = HELD[kind]
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module
    compiled = torch.compile(lambda x: (x + 1, {"inside": Holder.held}), backend=backend, fullgraph=True)
    x, first = torch.ones(2), Holder.held
    for _ in range(3):
        result, held = compiled(x)
        assert result.tolist() == [2, 2] and held["inside"] is first and len(graphs) == 1
    Holder.held = type(first)(first)  # an equal one
    assert Holder.held is not first and compiled(x)[1]["inside"] is Holder.held and len(graphs) == 2
    Holder.held = first
    assert compiled(x)[1]["inside"] is first and len(graphs) == 2


def test_a_container_of_the_arguments_beside_one_from_outside_is_refused():
    outer = [1]
    compiled = torch.compile(lambda x, given: (x + 1, given, outer), backend="eager", fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="a container of the arguments and one from outside"):
        compiled(torch.ones(2), [2])
    given = [2]
    _, first, second = torch.compile(lambda x, given: (x + 1, given, outer), backend="eager")(torch.ones(2), given)
    assert first is given and second is outer
