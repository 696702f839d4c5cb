"""torch.compile: what stands around a call and is not part of the function: modes, classes of parameters, the module itself."""
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
