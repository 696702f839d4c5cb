"""torch.compile of functions whose arguments and results are objects of dataclasses."""
import dataclasses
import typing

import pytest
from counting import Counting

import umbra as torch


@dataclasses.dataclass
class Batch:
    values: typing.Any
    scale: float = 2.0
    mask: typing.Any = None

    def scaled(self):
        return self.values * self.scale


@dataclasses.dataclass(frozen=True)
class Frozen:
    inner: Batch
    parts: list


def numbers(start=0.0):
    return torch.arange(3.0) + start


def compile_whole(function):
    backend = Counting()
    return torch.compile(function, backend=backend, fullgraph=True), backend


def test_new_objects_with_other_tensors_use_the_same_graphs():
    compiled, backend = compile_whole(lambda batch: batch.scaled())
    for i in range(12):
        assert torch.equal(compiled(Batch(numbers(i))), numbers(i) * 2)
    assert backend.graphs == 1
    assert torch.equal(compiled(Batch(numbers(), 3.0)), numbers() * 3)
    assert backend.graphs == 2


def test_calls_need_no_python_from_the_second_on():
    compiled, backend = compile_whole(lambda batch: batch.scaled())
    compiled(Batch(numbers()))
    compiled._compiled.run = None  # where calls go whose graphs C++ does not know
    hits = torch.compiler.cache_info(compiled).hits
    compiled(Batch(numbers(1)))
    assert torch.compiler.cache_info(compiled).hits == hits + 1 and backend.graphs == 1


def test_objects_inside_of_objects_and_lists():
    compiled, backend = compile_whole(lambda frozen: frozen.inner.values * 2 + sum(frozen.parts))
    for i in range(10):
        assert torch.equal(compiled(Frozen(Batch(numbers(i)), [numbers(), 1.0])), numbers(i) * 2 + numbers() + 1)
    assert backend.graphs == 1
    by_list = torch.compile(lambda batches: batches[0].values + batches[1].values, backend="eager", fullgraph=True)
    assert torch.equal(by_list([Batch(numbers()), Batch(numbers(1))]), numbers() + numbers(1))


def test_what_is_there_decides():
    compiled, _ = compile_whole(lambda batch: batch.values if batch.mask is None else batch.values * batch.mask)
    assert torch.equal(compiled(Batch(numbers())), numbers())
    assert torch.equal(compiled(Batch(numbers(), mask=numbers(1))), numbers() * numbers(1))
    extra = Batch(numbers())
    extra.more = 1
    assert torch.equal(torch.compile(lambda b: b.values * getattr(b, "more", 5), backend="eager")(extra), numbers())


def test_methods_of_the_class_are_watched():
    @dataclasses.dataclass
    class Local:
        values: typing.Any
        factor = 2.0

        def by(self):
            return self.values * self.factor
    compiled, _ = compile_whole(lambda local: local.by())
    assert torch.equal(compiled(Local(numbers())), numbers() * 2)
    Local.factor = 3.0
    assert torch.equal(compiled(Local(numbers())), numbers() * 3)
    Local.by = lambda self: self.values + 100
    assert torch.equal(compiled(Local(numbers())), numbers(100))


def test_objects_that_are_changed():
    def changes(batch):
        batch.values = batch.values * 2
        batch.scale += 1
        return batch.values
    compiled = torch.compile(changes, backend="eager")
    batch = Batch(numbers())
    for i in range(4):
        assert torch.equal(compiled(batch), numbers() * 2 ** (i + 1)) and batch.scale == 3.0 + i


def test_tensors_of_objects_that_are_written():
    compiled, _ = compile_whole(lambda batch: batch.values.add_(1) * 2)
    batch = Batch(numbers())
    assert torch.equal(compiled(batch), numbers(1) * 2) and torch.equal(batch.values, numbers(1))
    base = torch.arange(6.0)
    shared = torch.compile(lambda batch, x: batch.values + x.mul_(2), backend="eager", fullgraph=True)
    assert shared(Batch(base[:3]), base[1:4]).tolist() == [2.0, 6.0, 10.0] and base.tolist() == [0, 2, 4, 6, 4, 5]


def test_the_same_object_twice_is_one():
    compiled = torch.compile(lambda a, b: a.values * 2 if a is b else a.values * 3, backend="eager")
    batch = Batch(numbers())
    for first, second, factor in ((batch, Batch(numbers()), 3), (batch, batch, 2), (Batch(numbers()), batch, 3)):
        assert torch.equal(compiled(first, second), numbers() * factor)


def test_an_object_that_the_function_knows():
    known = Batch(numbers())
    compiled = torch.compile(lambda batch: batch.values * 2 if batch is known else batch.values * 3, backend="eager")
    assert torch.equal(compiled(Batch(numbers())), numbers() * 3)
    assert torch.equal(compiled(known), numbers() * 2)
    assert torch.equal(compiled(Batch(numbers())), numbers() * 3)


def test_results():
    compiled, backend = compile_whole(lambda x: (Batch(x * 2, 5.0), Frozen(Batch(x), [x + 1])))
    for i in range(3):
        batch, frozen = compiled(numbers(i))
        assert type(batch) is Batch and batch.scale == 5.0 and torch.equal(batch.values, numbers(i) * 2)
        assert type(frozen) is Frozen and torch.equal(frozen.inner.values, numbers(i)) and torch.equal(frozen.parts[0], numbers(i + 1))
    assert compiled(numbers())[0] is not compiled(numbers())[0] and backend.graphs == 1


def test_arguments_among_the_results():
    compiled, _ = compile_whole(lambda frozen: (frozen.inner, frozen, Batch(frozen.inner.values * 2)))
    for i in range(3):
        given = Frozen(Batch(numbers(i)), [1])
        inner, whole, made = compiled(given)
        assert inner is given.inner and whole is given and torch.equal(made.values, numbers(i) * 2)


def test_gradients():
    compiled, backend = compile_whole(lambda batch: Batch((batch.values ** 2).sum()))
    for i in range(3):
        x = numbers(i).requires_grad_()
        compiled(Batch(x)).values.backward()
        assert torch.equal(x.grad, numbers(i) * 2)
    assert backend.graphs == 1


def test_a_module_that_gives_an_object():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))

        def forward(self, x, target=None):
            y = x * self.weight
            return Batch(y, mask=None if target is None else (y - target).sum())
    model = Model()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    assert compiled(numbers()).mask is None
    compiled(numbers(), torch.zeros(3)).mask.backward()
    assert torch.equal(model.weight.grad, numbers())


@pytest.mark.parametrize("options", [{"slots": True}, {"eq": False}])
def test_objects_that_are_not_their_attributes_stay_what_they_are(options):
    @dataclasses.dataclass(**options)
    class Other:
        values: typing.Any
    compiled = torch.compile(lambda other: other.values * 2, backend="eager")
    for i in range(3):
        assert torch.equal(compiled(Other(numbers(i))), numbers(i) * 2)
