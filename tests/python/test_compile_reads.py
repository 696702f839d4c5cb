"""torch.compile: whatever a captured function read, another value of it is another kind of call."""
import array
import collections
import datetime
import decimal
import functools
import itertools
import os
import sys
import threading
import types
import weakref

import numpy
import pytest

import umbra as torch

pytestmark = pytest.mark.filterwarnings("ignore:torch.compile")

SCALE = 1.0


def numbers():
    return torch.tensor([1.0, 2.0])


def results(function, change, *arguments):
    """What it gives before and after the change, and once more."""
    given = arguments or (numbers(),)
    first = function(*given)
    change()
    return [str(first), str(function(*given)), str(function(*given))]


def with_value(before, after, use):
    """A program that reads a variable which becomes another one."""
    def program(compiled):
        value = before

        def change():
            nonlocal value
            value = after
        return results(compiled(lambda x: use(x, value)), change)
    return program


def with_change(make, change, use):
    """A program that reads an object which changes."""
    def program(compiled):
        held = make()
        return results(compiled(lambda x: use(x, held)), lambda: change(held))
    return program


class Plain:
    def __init__(self, scale=1.0):
        self.scale = scale

    def read(self):
        return self.scale


class Mixed:
    __slots__ = ("scale", "other", "__dict__")

    def __init__(self):
        self.scale = self.free = 1.0


class Derived(dict):
    missing = 1.0

    def __missing__(self, key):
        return SCALE


class Described:
    class Descriptor:
        def __get__(self, owner, kind):
            return SCALE
    value = Descriptor()

    def __init__(self):
        self.made = SCALE

    def __sub__(self, other):
        return other * SCALE

    def __float__(self):
        return float(SCALE)


def chain(length):
    first = last = Plain()
    for _ in range(length):
        last.next = Plain()
        last = last.next
    return first, last


def reached(first, length):
    for _ in range(length):
        first = first.next
    return first.scale


def set_scale(value):
    global SCALE
    SCALE = value


VALUES = [
    (1 + 2j, 2 + 1j, lambda x, v: x * v), (torch.float32, torch.float64, lambda x, v: x.to(v)), (0.0, -0.0, lambda x, v: x / v),
    (torch.Size([2]), torch.Size([3]), lambda x, v: torch.ones(v)), (slice(0, 1), slice(1, 2), lambda x, v: x[v]),
    (range(2), range(3), lambda x, v: sum(x * i for i in v)), (decimal.Decimal(1), decimal.Decimal(2), lambda x, v: x * float(v)),
    (numpy.float32(1), numpy.float32(2), lambda x, v: x * float(v)), (numpy.dtype("int8"), numpy.dtype("uint8"), lambda x, v: x * (v == numpy.int8)),
    (datetime.timedelta(1), datetime.timedelta(2), lambda x, v: x * v.days), (bytearray(b"a"), bytearray(b"b"), lambda x, v: x * v[0]),
    (functools.partial(lambda s, x: s * x, 1), functools.partial(lambda s, x: s * x, 2), lambda x, v: v(x)),
]


@pytest.mark.parametrize("before, after, use", VALUES, ids=[type(case[0]).__name__ for case in VALUES])
def test_another_value_of_a_variable_is_another_call(before, after, use):
    program = with_value(before, after, use)
    assert program(lambda f: torch.compile(f, backend="eager")) == program(lambda f: f)


def weak_dict():
    held = Plain()
    return held, weakref.WeakValueDictionary(key=held)


CHANGES = {
    "bytes": (lambda: bytearray(b"a"), lambda o: o.__setitem__(0, 7), lambda x, o: x * o[0]),
    "array": (lambda: array.array("d", [1.0]), lambda o: o.__setitem__(0, 7.0), lambda x, o: x * o[0]),
    "memoryview": (lambda: memoryview(bytearray(b"a")), lambda o: o.__setitem__(0, 7), lambda x, o: x * o[0]),
    "large array": (lambda: numpy.ones(300_000), lambda o: o.__setitem__(0, 7), lambda x, o: x * float(o[0])),
    "shape of an array": (lambda: numpy.ones(6), lambda o: setattr(o, "shape", (2, 3)), lambda x, o: x * o.shape[0]),
    "array of objects": (lambda: numpy.array([Plain()], dtype=object), lambda o: setattr(o[0], "scale", 2.0), lambda x, o: x * o[0].scale),
    "deep dict": (lambda: {"a": {"b": {"c": {"d": {"e": {"f": 1.0}}}}}}, lambda o: o["a"]["b"]["c"]["d"]["e"].update(f=2.0),
                  lambda x, o: x * o["a"]["b"]["c"]["d"]["e"]["f"]),
    "deep objects": (lambda: chain(30), lambda o: setattr(o[1], "scale", 2.0), lambda x, o: x * reached(o[0], 30)),
    "bound method": (lambda: Plain().read, lambda o: setattr(o.__self__, "scale", 2.0), lambda x, o: x * o()),
    "method in a list": (lambda: [Plain().read], lambda o: setattr(o[0].__self__, "scale", 2.0), lambda x, o: x * o[0]()),
    "partial": (lambda: functools.partial(lambda d, x: x * d["s"], {"s": 1.0}), lambda o: o.args[0].update(s=2.0), lambda x, o: o(x)),
    "order of a dict": (lambda: {"a": 1.0, "b": 2.0}, lambda o: o.update(a=o.pop("a")), lambda x, o: x * list(o.values())[0]),
    "order of an ordered dict": (lambda: collections.OrderedDict(a=1.0, b=2.0), lambda o: o.move_to_end("a"), lambda x, o: x * list(o.values())[0]),
    "proxy": (lambda: (d := {"a": 1.0}, types.MappingProxyType(d)), lambda o: o[0].update(a=2.0), lambda x, o: x * o[1]["a"]),
    "attribute of a dict": (Derived, lambda o: setattr(o, "scale", 2.0), lambda x, o: x * getattr(o, "scale", 1.0)),
    "class of a dict": (lambda: type("Own", (Derived,), {})(), lambda o: setattr(type(o), "missing", 2.0), lambda x, o: x * o.missing),
    "weak reference": (lambda: (p := Plain(), weakref.ref(p)), lambda o: setattr(o[0], "scale", 2.0), lambda x, o: x * o[1]().scale),
    "weak dict": (weak_dict, lambda o: setattr(o[0], "scale", 2.0), lambda x, o: x * o[1]["key"].scale),
    "another dict of attributes": (Plain, lambda o: setattr(o, "__dict__", {"scale": 2.0}), lambda x, o: x * o.scale),
    "another class": (lambda: type("One", (), {"s": 1.0})(), lambda o: setattr(o, "__class__", type("Two", (), {"s": 2.0})), lambda x, o: x * o.s),
    "slot": (Mixed, lambda o: setattr(o, "scale", 2.0), lambda x, o: x * o.scale * o.free),
    "slot that was empty": (Mixed, lambda o: setattr(o, "other", 2.0), lambda x, o: x * getattr(o, "other", 1.0)),
    "class attribute that was not there": (lambda: type("One", (), {})(), lambda o: setattr(type(o), "new", 2.0), lambda x, o: x * getattr(o, "new", 1.0)),
    "attribute of a module": (lambda: types.ModuleType("m"), lambda o: setattr(o, "new", 2.0), lambda x, o: x * getattr(o, "new", 1.0)),
    "attribute by a name that was made": (lambda: types.SimpleNamespace(a1=[1.0]), lambda o: o.a1.__setitem__(0, 2.0),
                                          lambda x, o: x * getattr(o, f"a{len(x.shape)}")[0]),
    "attribute of a tensor": (lambda: torch.ones(2), lambda o: setattr(o, "scale", 2.0), lambda x, o: x * o * getattr(o, "scale", 1.0)),
}


@pytest.mark.parametrize("case", list(CHANGES))
def test_an_object_that_has_changed_is_another_call(case):
    program = with_change(*CHANGES[case])
    assert program(lambda f: torch.compile(f, backend="eager")) == program(lambda f: f)


def reads_a_descriptor(x, owner=Described()):
    return x * owner.value


def makes_an_object(x):
    return x * Described().made


def uses_operators(x, owner=Described()):
    return (owner - x) * float(owner)


def uses_what_is_missing(x, d=Derived()):
    return x * d["nothing"]


def evaluates(x):
    return x * eval("SCALE * 2")


def reads_globals(x):
    return x * globals()["SCALE"]


@pytest.mark.parametrize("function", [reads_a_descriptor, makes_an_object, uses_operators, uses_what_is_missing, evaluates, reads_globals])
def test_functions_that_python_calls_by_itself_are_watched(function):
    set_scale(1.0)
    compiled = torch.compile(function, backend="eager")
    assert torch.equal(compiled(numbers()), function(numbers()))
    set_scale(3.0)
    assert torch.equal(compiled(numbers()), function(numbers()))


def test_functions_of_a_module_that_is_imported_inside_are_watched():
    module = types.ModuleType("umbras_test_of_imports")
    exec("scale = 1.0\ndef read(): return scale", module.__dict__)
    sys.modules[module.__name__] = module

    def f(x):
        from umbras_test_of_imports import read
        return x * read()
    compiled = torch.compile(f, backend="eager")
    assert compiled(numbers()).tolist() == [1, 2]
    module.scale = 2.0
    assert compiled(numbers()).tolist() == [2, 4]
    del sys.modules[module.__name__]


def test_attributes_of_functions_are_watched():
    def f(x):
        return x * f.scale
    f.scale = 1.0
    compiled = torch.compile(f, backend="eager")
    assert compiled(numbers()).tolist() == [1, 2]
    f.scale = 2.0
    assert compiled(numbers()).tolist() == [2, 4]


def test_a_name_that_becomes_a_global_hides_the_builtin():
    space = {}
    exec("def f(x): return x * abs(-1)", space)
    compiled = torch.compile(space["f"], backend="eager")
    assert compiled(numbers()).tolist() == [1, 2]
    space["abs"] = lambda number: 5.0
    assert compiled(numbers()).tolist() == [5, 10]


def test_each_thread_reads_its_own_values():
    local, seen = threading.local(), []
    local.scale = 1.0
    compiled = torch.compile(lambda x: x * local.scale, backend="eager")
    compiled(numbers())

    def other():
        local.scale = 2.0
        seen.append(compiled(numbers()).tolist())
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == [[2, 4]]


def test_what_super_calls_is_watched():
    class Base:
        def scaled(self, x):
            return x * 1

    class Child(Base):
        def scaled(self, x):
            return super().scaled(x)
    child = Child()
    compiled = torch.compile(lambda x: child.scaled(x), backend="eager")
    assert compiled(numbers()).tolist() == [1, 2]
    Base.scaled = lambda self, x: x * 2
    assert compiled(numbers()).tolist() == [2, 4]


def test_hooks_tuples_and_classes_of_modules_are_watched():
    layer, x = torch.nn.Conv1d(1, 1, 2, bias=False), torch.arange(6.0).reshape(1, 1, 6)
    compiled = torch.compile(layer, backend="eager")
    assert torch.equal(compiled(x), layer(x))
    layer.stride = (2,)
    assert torch.equal(compiled(x), layer(x))
    hook = layer.register_forward_hook(lambda module, given, result: result * 2)
    assert torch.equal(compiled(x), layer(x))
    hook.remove()
    layer.__class__ = type("Twice", (torch.nn.Conv1d,), {"forward": lambda self, x: x * 2})
    assert torch.equal(compiled(x), x * 2)


def test_an_argument_may_have_attributes_and_be_what_the_function_reads_anyway():
    held = numbers()
    compiled = torch.compile(lambda x: x * (2 if x is held else 3) * getattr(x, "scale", 1), backend="eager")
    assert compiled(numbers()).tolist() == [3, 6] and compiled(held).tolist() == [2, 4]
    scaled = numbers()
    scaled.scale = 10
    assert compiled(scaled).tolist() == [30, 60] and compiled(numbers()).tolist() == [3, 6]


def test_questions_that_no_guard_asks_run_each_time():
    def asks(x):
        return x * torch.get_num_threads() if x._is_view() else x * (torch.get_float32_matmul_precision() == "highest")
    compiled = torch.compile(asks, backend="eager")
    for x in (numbers(), torch.stack([numbers()])[0]):
        assert torch.equal(compiled(x), asks(x))
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(asks, backend="eager", fullgraph=True)(numbers())


def test_iterators_and_generators_of_numbers_are_used_up_at_each_call():
    for make in (lambda: itertools.count(1), lambda: iter([1, 2, 3, 4])):
        values, same = make(), make()
        compiled = torch.compile(lambda x: x * next(values), backend="eager")
        assert [compiled(numbers()).tolist() for _ in range(3)] == [(numbers() * next(same)).tolist() for _ in range(3)]
    drawn, same = numpy.random.default_rng(0), numpy.random.default_rng(0)
    compiled = torch.compile(lambda x: x * drawn.normal(), backend="eager")
    assert [compiled(numbers()).tolist() for _ in range(3)] == [(numbers() * same.normal()).tolist() for _ in range(3)]


def test_the_system_is_asked_at_each_call(tmp_path):
    place = tmp_path / "there"
    compiled = torch.compile(lambda x: x * os.path.exists(place), backend="eager")
    assert compiled(numbers()).tolist() == [0, 0]
    place.touch()
    assert compiled(numbers()).tolist() == [1, 2]


# ---- what is put back after a capture that counts for nothing ----

class Making(collections.OrderedDict):
    """Makes what it is asked for, as tables of layers by name do."""

    def __getitem__(self, key):
        return super().__getitem__(key)()


class PlainMaking(dict):
    def __getitem__(self, key):
        return super().__getitem__(key)()

    def keys(self):
        return []


class Counting(list):
    def __iter__(self):
        return iter(range(len(self)))


def test_containers_that_show_other_things_than_lie_in_them_keep_what_lies_in_them():
    made, plain, counting = Making(), PlainMaking(a=dict), Counting([dict, 2])
    collections.OrderedDict.__setitem__(made, "a", dict)

    def look(x):
        return x + len(made["a"]) + len(plain["a"]) + counting[1]
    compiled = torch.compile(look, backend="aot_eager")
    for _ in range(2):
        assert compiled(torch.ones(1)).tolist() == [3]
    assert list(dict.items(made)) == list(dict.items(plain)) == [("a", dict)] and counting[:] == [dict, 2]


def test_the_order_of_a_modules_parts_is_read():
    class Parts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.full((1,), 2.0))
            self.register_buffer("c", torch.full((1,), 3.0))
            self.register_buffer("d", torch.full((1,), 4.0))
            self.first, self.second = torch.nn.ReLU(), torch.nn.Sigmoid()
    parts = Parts()

    def function(x):
        for weight, tensor in enumerate([*parts.parameters(), *parts.buffers()]):
            x = x + tensor * weight ** 2
        for part in parts.children():
            x = part(x) - 40
        return x
    compiled, x = torch.compile(function, backend="eager"), torch.ones(1)
    results = [compiled(x)]
    for held in (parts._parameters, parts._buffers, parts._modules):
        key = next(iter(held))
        held[key] = held.pop(key)
        assert torch.equal(compiled(x), function(x))
        results.append(function(x))
    assert len({value.item() for value in results}) == 4


def test_an_array_that_does_not_give_its_bytes():
    import numpy.ma
    masked = numpy.ma.masked
    assert torch.compile(lambda x: x + (masked is None), backend="eager")(torch.ones(1)).item() == 1
