"""torch.compile of functions that ask for attributes by names nobody can read in their code, for all of them at once, or for what objects are."""
import collections
import copy
import dataclasses
import functools
import gc
import inspect
import numbers
import operator
import types
import warnings
import weakref

import pytest

import umbra as torch


def ones():
    return torch.ones(3)


class Thing:
    def __init__(self, **values):
        self.__dict__.update(values)


def compiled_and_plain(function, *changes, inputs=ones):
    """The compiled function is called after each change, and gives what the function gives."""
    compiled = torch.compile(function, backend="eager")
    for change in (lambda: None, *changes):
        change()
        assert torch.equal(compiled(inputs()), function(inputs()))
    return compiled


def put(values, key, value):
    return lambda: operator.setitem(values, key, value)


def set_to(thing, name, value):
    return lambda: setattr(thing, name, value)


# ---- names that are no names of the code ----

def test_a_getter_of_dotted_names_is_seen_through():
    thing = Thing(part=Thing(scale=[2.0]))
    get = operator.attrgetter("part.scale")
    changes = put(thing.part.scale, 0, 5.0), set_to(thing, "part", Thing(scale=[7.0]))
    compiled_and_plain(lambda x: x * get(thing)[0], *changes)
    compiled_and_plain(lambda x: x * operator.attrgetter("part.scale")(thing)[0], put(thing.part.scale, 0, 6.0))


def test_a_caller_of_a_method_is_seen_through():
    class Scaled:
        def by(self, x):
            return x * 2
    thing, call = Scaled(), operator.methodcaller("by", ones())
    compiled_and_plain(lambda x: x + call(thing), set_to(Scaled, "by", lambda self, x: x * 100))


def test_a_format_reads_attributes():
    thing = Thing(values=[2])
    compiled_and_plain(lambda x: x * float("{0.values[0]}".format(thing)), put(thing.values, 0, 5))


def test_names_that_are_computed():
    class Base:
        y_1 = 2.0
    thing = Base()

    def asks(x):
        for i in range(4):
            if hasattr(thing, "y_" + str(i)):
                x = x * getattr(thing, "y_" + str(i))
        return x
    compiled_and_plain(asks, set_to(Base, "y_1", 5.0), set_to(Base, "y_2", 3.0), set_to(thing, "y_3", 7.0), lambda: delattr(Base, "y_2"))


@pytest.mark.parametrize("items", [lambda thing: vars(thing).values(), lambda thing: thing.__dict__.values(),
                                   lambda thing: [value for name, value in inspect.getmembers(thing) if name[0] == "m"],
                                   lambda thing: vars(copy.deepcopy(thing)).values(), lambda thing: vars(copy.copy(thing)).values()])
def test_all_attributes_of_an_object(items):
    thing = Thing(m_1=[2.0], m_2=[3.0])
    compiled_and_plain(lambda x: x * sum(value[0] for value in items(thing)), put(thing.m_1, 0, 5.0), set_to(thing, "m_3", [10.0]),
                       lambda: delattr(thing, "m_1"))


def test_all_attributes_of_a_class():
    class Base:
        y_1 = 2.0

    def by_dict(x):
        return x * sum(value for name, value in vars(Base).items() if name.startswith("y_"))

    def by_dir(x):
        return x * sum(getattr(Base, name) for name in dir(Base) if name.startswith("y_"))
    for function in (by_dict, by_dir):
        compiled_and_plain(function, set_to(Base, "y_1", 5.0), set_to(Base, "y_2", 3.0), lambda: delattr(Base, "y_2"))
    compiled_and_plain(lambda x: x * Base.__dict__["y_" + str(1)], set_to(Base, "y_1", 8.0))


def test_all_attributes_of_a_module():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.m_1 = [2.0]

        def forward(self, x):
            return x * sum(value[0] for name, value in vars(self).items() if name.startswith("m_"))
    model = Model()
    compiled_and_plain(model, put(model.m_1, 0, 3.0), set_to(model, "m_2", [4.0]))


@pytest.mark.parametrize("ask", [dataclasses.asdict, dataclasses.astuple, dataclasses.replace])
def test_helpers_of_dataclasses(ask):
    @dataclasses.dataclass
    class Config:
        first: list
        second: float = 1.0
    config = Config([1.0, 2.0])

    def asks(x):
        found = ask(config)
        values = found.values() if isinstance(found, dict) else found if isinstance(found, tuple) else vars(found).values()
        first, second = values
        return x * sum(first) + second
    compiled_and_plain(asks, put(config.first, 0, 5.0), set_to(config, "second", 9.0))


def test_globals_by_a_computed_name():
    names = {"__builtins__": __builtins__, "torch": torch, "SCALE_1": 2.0}
    exec("def asks(x):\n    return x * globals()['SCALE_' + str(1)]", names)
    compiled_and_plain(names["asks"], put(names, "SCALE_1", 3.0))


# ---- what an object is ----

def test_another_class_of_the_same_object():
    class First:
        pass

    class Second(First):
        pass
    thing = First()
    compiled_and_plain(lambda x: x * 2 if isinstance(thing, Second) else x * 3, set_to(thing, "__class__", Second), set_to(thing, "__class__", First))


def test_attributes_of_a_class_of_classes():
    class Meta(type):
        scale = 2.0

    class Made(metaclass=Meta):
        pass
    compiled_and_plain(lambda x: x * Made.scale, set_to(Meta, "scale", 3.0), set_to(Made, "scale", 4.0))


@pytest.mark.parametrize("base, value", [(str, "a"), (int, 2), (float, 2.0)])
def test_numbers_and_texts_with_attributes(base, value):
    class Kind(base):
        pass
    thing = Kind(value)
    thing.scale = 2.0
    compiled_and_plain(lambda x: x * thing.scale, set_to(thing, "scale", 3.0))

    def takes(x, kind):
        return x * getattr(kind, "scale", 10.0)
    compiled = torch.compile(takes, backend="eager")
    for change in (lambda: None, set_to(thing, "scale", 4.0)):
        change()
        for kind in (thing, value, Kind(value)):
            assert torch.equal(compiled(ones(), kind), takes(ones(), kind))


def test_a_weak_reference_keeps_nothing_alive():
    def ask(reference):
        return torch.compile(lambda x: x * 100 if reference() is None else x * reference().scale, backend="eager")
    thing = Thing(scale=2.0)
    compiled = ask(weakref.ref(thing))
    assert compiled(ones()).tolist() == [2.0] * 3
    thing.scale = 3.0
    assert compiled(ones()).tolist() == [3.0] * 3
    del thing
    gc.collect()
    assert compiled(ones()).tolist() == [100.0] * 3


def test_a_weak_container_gets_smaller():
    kept = [Thing(), Thing()]
    found = weakref.WeakValueDictionary(enumerate(kept))
    compiled = torch.compile(lambda x: x * len(found), backend="eager")
    assert compiled(ones()).tolist() == [2.0] * 3
    kept.pop()
    gc.collect()
    assert compiled(ones()).tolist() == [1.0] * 3


def test_hooks_of_all_modules():
    model = torch.nn.Sequential(torch.nn.Identity())
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert compiled(ones()).tolist() == [1.0] * 3
    hook = torch.nn.modules.module.register_module_forward_pre_hook(lambda module, args: (args[0] * 2,))
    try:
        assert compiled(ones()).tolist() == model(ones()).tolist() == [4.0] * 3
    finally:
        hook.remove()
    assert compiled(ones()).tolist() == [1.0] * 3


# ---- symbols ----

@pytest.mark.parametrize("question", [lambda n: isinstance(n, int), lambda n: isinstance(n, (str, int)), lambda n: isinstance(n, numbers.Integral),
                                      lambda n: type(n) is int, lambda n: type(n) in (int, float)])
def test_sizes_and_integers_are_integers(question):
    by_size = torch.compile(lambda x: x * 2 if question(x.shape[0]) else x * 3, backend="eager")
    by_number = torch.compile(lambda x, n: x * 2 if question(n) else x * 3, backend="eager")
    for n in (3, 4, 5):
        assert by_size(torch.ones(n)).tolist() == [2.0] * n
        assert by_number(torch.ones(1), n).tolist() == [2.0]


def test_a_function_of_several_kinds_takes_integers():
    @functools.singledispatch
    def of(n, x):
        return x

    @of.register(int)
    def _(n, x):
        return x * n
    compiled = torch.compile(lambda x, n: of(n, x), backend="eager")
    assert [compiled(torch.ones(1), n).item() for n in (3, 4, 5, 1.5)] == [3.0, 4.0, 5.0, 1.0]


@pytest.mark.parametrize("dynamic", [True, False, None])
def test_classes_of_numbers_are_those_of_python(dynamic):
    compiled = torch.compile(lambda x, n: x * 2 if type(n) is int else x * 3, backend="eager", dynamic=dynamic)
    assert [compiled(torch.ones(1), n).item() for n in (3, 4, 5, 1.5)] == [2.0, 2.0, 2.0, 3.0]


def test_a_size_is_a_key():
    table = {3: 10.0, 4: 20.0}
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module.forward
    compiled = torch.compile(lambda x: x * table.get(x.shape[0], 1.0), backend=backend, fullgraph=True)
    assert [compiled(torch.ones(n))[0].item() for n in (3, 4, 5, 3, 4)] == [10.0, 20.0, 1.0, 10.0, 20.0]
    assert len(graphs) == 3
    table[5] = 7.0
    assert compiled(torch.ones(5))[0].item() == 7.0


def test_masks_that_are_kept_by_size():
    @functools.lru_cache
    def mask(n):
        return torch.ones(n, n).tril()
    compiled = torch.compile(lambda x: mask(x.shape[0]) @ x, backend="eager")
    for n in (3, 4, 5, 3):
        assert compiled(torch.ones(n)).tolist() == [float(i + 1) for i in range(n)]


# ---- what graphs do not know ----

def test_versions_texts_and_states_are_those_of_the_call():
    version = torch.compile(lambda x: x * x._version, backend="eager")
    x = torch.ones(1)
    assert version(x).item() == 0
    x.add_(1)
    assert version(x).item() == 2
    text = torch.compile(lambda x: (x * 2, repr(x), f"{x}"), backend="eager")
    assert text(torch.ones(2))[1:] == ("tensor([1., 1.])", "tensor([1., 1.])")
    state = torch.compile(lambda x: (x * 2, torch.get_rng_state()), backend="eager")
    for seed in (0, 7):
        torch.manual_seed(seed)
        assert torch.equal(state(ones())[1], torch.get_rng_state())
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"repr\(\) on tensor"):
        torch.compile(lambda x: repr(x), backend="eager", fullgraph=True)(ones())


def test_values_of_an_inference_mode_are_such():
    def function(x):
        with torch.inference_mode():
            return x * 2
    compiled = torch.compile(function, backend="eager")
    assert [compiled(ones()).is_inference() for _ in range(2)] == [True, True]
    with torch.inference_mode():
        assert torch.compile(function, backend="eager", fullgraph=True)(ones()).is_inference()


def test_attributes_of_results_are_kept():
    def marks(x):
        y = x * 2
        y.tag = 7
        return y
    compiled = torch.compile(marks, backend="eager")
    assert [compiled(ones()).tag for _ in range(2)] == [7, 7]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_second_derivatives_are_refused_whatever_is_saved(backend):
    x = torch.arange(1.0, 4.0).requires_grad_()
    first, = torch.autograd.grad(torch.compile(lambda x: (x ** 3).sum(), backend=backend)(x), x, create_graph=True)
    assert first.requires_grad
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        first.sum().backward()


def test_collected_objects_end_no_capture():
    class Noisy:
        def __del__(self):
            deleted.append(1)
    deleted = []

    def cycle():
        thing = Noisy()
        thing.own = thing

    def function(x):
        gc.collect(0)
        return x * 2
    cycle()
    compiled = torch.compile(function, backend="eager")
    assert compiled(ones()).tolist() == [2.0] * 3 and gc.isenabled()


def test_reads_of_other_containers():
    values, first = collections.UserDict(scale=1.0), types.SimpleNamespace(scale=[2.0])

    def asks(x):
        return x * values["scale"] + getattr(first, "sca" + "le"[:2])[0]
    compiled_and_plain(asks, put(values, "scale", 3.0), put(first.scale, 0, 4.0))


def test_a_cache_that_has_something_stays_whole():
    scale = [1.0]

    @functools.lru_cache(maxsize=4)
    def scaled(n):
        return n * scale[0]
    compiled = torch.compile(lambda x: x * scaled(x.shape[0]), backend="eager")
    for n in (1, 2, 3, 4, 5, 6, 2, 1):
        scaled(n + 10)
        assert compiled(torch.ones(n))[0].item() == n
        gc.collect()


@pytest.mark.parametrize("name, ask", [("__len__", len), ("__bool__", bool), ("__float__", float), ("__contains__", lambda thing: 1 in thing),
                                       ("__neg__", operator.neg), ("__eq__", lambda thing: thing == 1), ("__getitem__", lambda thing: thing[0])])
def test_methods_that_python_calls_by_itself(name, ask):
    methods = {"__float__": (lambda self: 2.0, lambda self: 3.0)}
    first, second = methods.get(name, (lambda self, *other: True, lambda self, *other: False))
    kind = type("Kind", (), {name: first, "__hash__": None})
    thing = kind()
    compiled_and_plain(lambda x: x * (2 if ask(thing) in (True, 2.0) else 3), set_to(kind, name, second))


def test_the_base_of_an_argument_is_that_of_the_call():
    compiled, base = torch.compile(lambda x: (x * 2, x._base), backend="aot_eager"), torch.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert compiled(base[1:])[1] is base and compiled(torch.ones(2))[1] is None
    with pytest.raises(torch._dynamo.exc.Unsupported, match="Tensor._base"):
        torch.compile(lambda x: (x * 2, x._base is None), backend="aot_eager", fullgraph=True)(base[1:])
