"""torch.compile: what stands around a call and is not part of the function: modes, classes of parameters, the module itself."""
import warnings

import pytest

import umbra as torch
from umbra.utils._python_dispatch import TorchDispatchMode


def test_what_a_mode_makes_of_calls_is_not_captured():
    class Zeros(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 0 if func is torch.ops.aten.sin.default else result

    compiled = torch.compile(lambda x: x.sin(), backend="aot_eager")
    with Zeros():
        assert compiled(torch.ones(2)).tolist() == [0, 0]
    assert torch.equal(compiled(torch.ones(2)), torch.ones(2).sin())


def test_a_parameters_class_decides_what_calls_of_a_compiled_module_give():
    class Negated(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            result = super().__torch_function__(func, types, args, kwargs or {})
            return -result if func is torch.Tensor.mul else result

    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(2).as_subclass(Negated))

        def forward(self, x):
            return x * self.w

    module = Scaled()
    assert torch.compile(module, backend="aot_eager")(torch.ones(2)).tolist() == module(torch.ones(2)).tolist() == [-1, -1]


def test_a_compiled_container_has_its_length():
    assert len(torch.compile(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.ReLU()))) == 2
    assert not torch.compile(torch.nn.Sequential()) and torch.compile(torch.nn.ReLU())


def test_a_function_mode_sees_each_call_of_the_function_and_no_other():
    class Log(torch.overrides.TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_function__(self, function, classes, args=(), kwargs=None):
            self.names.append(function.__name__)
            return function(*args, **(kwargs or {}))
    compiled, x, log = torch.compile(lambda x: (x.sin() * 2).sum(), backend="aot_eager"), torch.ones(2), Log()
    for calls in (1, 2, 3):
        compiled(x)
        with log:
            compiled(x)
        assert log.names == ["sin", "mul", "sum"] * calls


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("tell, put, before, after", [
    (torch.is_grad_enabled, torch.set_grad_enabled, True, False),
    (lambda: torch.is_autocast_enabled("cpu"), lambda on: torch.set_autocast_enabled("cpu", on), False, True),
    (lambda: torch.get_autocast_dtype("cpu"), lambda dtype: torch.set_autocast_dtype("cpu", dtype), torch.bfloat16, torch.float16),
    (torch.get_default_dtype, torch.set_default_dtype, torch.float32, torch.float64),
    (lambda: torch.ones(1).device.type, torch.set_default_device, "cpu", "meta"),
    (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, False, True),
    (torch.backends.cuda.math_sdp_enabled, torch.backends.cuda.enable_math_sdp, True, False),
    (torch.__future__.get_swap_module_params_on_conversion, torch.__future__.set_swap_module_params_on_conversion, False, True),
    (torch.__future__.get_overwrite_module_params_on_conversion, torch.__future__.set_overwrite_module_params_on_conversion, False, True),
], ids=["grad", "autocast", "autocast type", "type", "device", "deterministic", "attention", "swap", "overwrite"])
def test_a_switch_that_a_function_sets_is_set_at_each_call_and_not_before(tell, put, before, after, fullgraph):
    def function(x):
        first = x * (2 if tell() == before else 3)
        put(after)
        return first, x * (5 if tell() == before else 7)
    compiled, x = torch.compile(function, backend="aot_eager", fullgraph=fullgraph), torch.tensor([1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for _ in range(4):
                put(before)
                assert [value.item() for value in compiled(x)] == [2, 7]
                assert tell() == after
        finally:
            put(None if before == "cpu" else before)


def test_what_ran_before_gradients_are_switched_off_has_them():
    def function(x):
        first = x * 2
        torch.set_grad_enabled(False)
        return first, x * 3
    compiled, x = torch.compile(function, backend="aot_eager"), torch.ones(1, requires_grad=True)
    for _ in range(2):
        try:
            assert [value.requires_grad for value in compiled(x)] == [True, False]
        finally:
            torch.set_grad_enabled(True)


def test_a_compiler_is_known_to_those_who_ask():
    def function(x):
        return x + (1 if torch.compiler.is_dynamo_compiling() else 0) + (10 if torch.compiler.is_compiling() else 0)

    class Asks(torch.nn.Module):
        def forward(self, x):
            return function(x)
    x = torch.zeros(1)
    assert function(x).item() == 0 and torch.compile(function, backend="eager")(x).item() == 11
    assert torch.export.export(Asks(), (x,)).module()(x).item() == 10


def test_a_submodule_with_the_name_of_a_method():
    class Base(torch.nn.Module):
        def linear(self, x):
            return x * 3

    class Hidden(Base):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)

        def forward(self, x):
            return self.linear(x)
    module, x = Hidden(), torch.ones(2)
    assert torch.compile(module, backend="aot_eager")(x).tolist() == module(x).tolist() == [3, 3]
