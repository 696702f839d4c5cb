"""What users may put around a module's call and its attributes, and what they get."""
import inspect
import warnings

import pytest

import umbra as torch
from umbra import nn

x = torch.ones(1, 2)


def test_a_patched_call_sees_every_module():
    called, original = [], nn.Module.__call__

    def call(self, *args, **kwargs):
        called.append(type(self).__name__)
        return original(self, *args, **kwargs)
    nn.Module.__call__ = call
    try:
        nn.Sequential(nn.Linear(2, 2), nn.ReLU())(x)
    finally:
        nn.Module.__call__ = original
    nn.ReLU()(x)
    assert called == ["Sequential", "Linear", "ReLU"]


def test_a_patched_call_impl_is_what_a_call_runs():
    called, original = [], nn.Module._call_impl

    def call(self, *args, **kwargs):
        called.append(type(self).__name__)
        return original(self, *args, **kwargs)
    nn.Module._call_impl = call
    try:
        nn.ReLU()(x)
    finally:
        nn.Module._call_impl = original
    assert called == ["ReLU"]


def test_a_compiled_call_takes_the_place_of_the_call():
    module = nn.ReLU()
    module._compiled_call_impl = lambda y: "compiled"
    assert module(x) == "compiled" and torch.equal(module._call_impl(x), x)


def test_a_class_may_have_a_call_of_its_own():
    class Own(nn.Linear):
        def __call__(self, *args, **kwargs):
            return "own", super().__call__(*args, **kwargs).shape

    assert Own(2, 2)(x) == ("own", (1, 2))


def test_members_are_found_after_attributes_of_the_class():
    class Named(nn.Linear):
        pass

    module = Named(2, 2)
    assert module.weight is module._parameters["weight"]
    Named.weight = 3
    assert module.weight == 3
    del Named.weight
    assert module.weight is module._parameters["weight"]


def test_a_class_may_look_attributes_up_itself_at_any_time():
    class Late(nn.Linear):
        pass

    module = Late(2, 2)
    assert module.weight.shape == (2, 2)
    Late.__getattr__ = lambda self, name: "late " + name
    assert (module.weight, module.other) == ("late weight", "late other")
    del Late.__getattr__
    assert module.weight.shape == (2, 2)

    class Fallback(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.inner, name)

    assert Fallback().in_features == 2 and Fallback().inner.weight.shape == (2, 2)

    class Magic(nn.Linear):
        def __getattribute__(self, name):
            return 7 if name == "magic" else super().__getattribute__(name)

    assert Magic(2, 2).magic == 7 and Magic(2, 2)(x).shape == (1, 2)


def test_subclasses_may_be_made_without_telling_the_base():
    class Silent(nn.Linear):
        def __init_subclass__(cls, **kwargs):
            cls.given = kwargs

    class Inner(Silent, tag=3):
        pass

    assert Inner.given == {"tag": 3} and Inner(2, 2).bias.shape == (2,)


def test_errors_name_what_is_missing():
    class NoState(nn.Module):
        def __init__(self):
            pass

        def forward(self, y):
            return y

    class Property(nn.Module):
        @property
        def broken(self):
            return self.not_there

    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'nothing'"):
        nn.Linear(2, 2).nothing
    with pytest.raises(AttributeError, match="'NoState' object has no attribute '_backward_hooks'"):
        NoState()(x)
    with pytest.raises(AttributeError, match="'Property' object has no attribute 'broken'"):
        Property().broken
    with pytest.raises(NotImplementedError, match='missing the required "forward" function'):
        nn.Module()(x)


def test_a_call_shows_its_signature():
    assert str(inspect.signature(nn.Linear(2, 2))) == "(*args, **kwargs)"


def test_hooks_of_one_call_are_those_of_the_module_and_of_all():
    seen, module = [], nn.ReLU()
    handles = [module.register_forward_pre_hook(lambda m, a, k: seen.append(("pre", k)), with_kwargs=True),
               module.register_forward_hook(lambda m, a, o: o + 1),
               nn.modules.module.register_module_forward_hook(lambda m, a, o: seen.append("all"))]
    assert torch.equal(module(input=x), x + 1)
    for handle in handles:
        handle.remove()
    assert torch.equal(module(x), x) and seen == [("pre", {"input": x}), "all"]


def test_traced_modules_with_hooks_are_methods_without_them():
    inner = nn.Linear(2, 2)
    inner.register_forward_hook(lambda m, a, o: o * 2)
    traced = torch.jit.trace(nn.Sequential(inner, nn.ReLU()), x)
    assert "aten::mul" in str(traced.graph) and "aten::mul" not in str(getattr(traced, "0").graph)
    assert torch.allclose(traced(x), torch.relu(inner(x)))


def test_a_hook_that_is_always_called_is_called_after_a_failing_pre_hook():
    def fail(module, args):
        raise RuntimeError("before")
    layer, called = nn.Linear(1, 1), []
    layer.register_forward_pre_hook(fail)
    handle = layer.register_forward_hook(lambda *args: called.append(args[-1]), always_call=True, with_kwargs=True)
    with pytest.raises(RuntimeError, match="before"):
        layer(torch.ones(1, 1))
    assert called == [None]
    handle.remove()
    assert not layer._forward_hooks_with_kwargs and not layer._forward_hooks_always_called


class Calls(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def texts_of_warnings(function, *args):
    module = Calls(function)
    module.register_backward_hook(lambda *_: None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module(*args)
    assert all(w.category is FutureWarning for w in caught)
    return [str(w.message) for w in caught]


def test_hooks_of_the_last_operator_warn_where_they_miss_gradients():
    leaf = torch.ones(2, requires_grad=True)
    a, b = leaf * 1, leaf * 2
    for function, args, text in (
            (lambda values: values[0].clone(), ([a, b],), "hooks on a Module that does not take as input a single Tensor or a tuple of Tensors is deprecated"),
            (lambda x: [x.clone()], (a,), "hooks on a Module that does not return a single Tensor or a tuple of Tensors is deprecated"),
            (lambda x, y: (x.clone(), y.clone()), (a, b), "a non-full backward hook when outputs are generated by different autograd Nodes is deprecated"),
            (lambda x: x.clone().clone(), (a,), "a non-full backward hook when the forward contains multiple autograd Nodes is deprecated"),
            (lambda x: x.clone(), (leaf,), "the forward contains multiple autograd Nodes")):
        warned, = texts_of_warnings(function, *args)
        assert text in warned and warned.endswith("Please use register_full_backward_hook to get the documented behavior.")


def test_hooks_of_the_last_operator_do_not_warn_where_it_is_the_only_one():
    a = torch.ones(2, requires_grad=True) * 1
    assert not texts_of_warnings(lambda x: x.clone(), a) and not texts_of_warnings(lambda x: x.split(1), a)
    assert not texts_of_warnings(lambda x, y: x * y, a, a * 2) and not texts_of_warnings(lambda x: [x.detach()], a)
