"""Compiled modules as objects of Python's: containers, what is left to Python, hooks, regions; the answers are PyTorch 2.15's."""
from typing import Optional, Tuple, Union

import pytest
import umbra as torch
from script_files import reloaded
from umbra import Tensor, nn

script = torch.jit.script


class Containers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.ReLU()])
        self.named = nn.ModuleDict({"a": nn.ReLU()})

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.named["a"](x)


def test_containers_of_a_scripted_module_are_those_that_it_was_made_of():
    module = Containers()
    s = script(module)
    assert s.layers[0] is module.layers[0] and list(s.layers) == list(module.layers) and len(s.layers) == 2 and len(s.layers[:1]) == 1
    assert "a" in s.named and list(s.named) == ["a"] and s.named["a"] is module.named["a"]
    with pytest.raises(NotImplementedError):
        len(s)
    with pytest.raises(NotImplementedError):
        reloaded(s).layers[0]
    assert bool(s)


def test_modules_of_containers_are_named_by_their_attributes():
    assert '_0 = getattr(layers, "0")\n  _1 = getattr(layers, "1")' in script(Containers()).code


def test_methods_that_would_change_what_a_module_is_are_refused():
    s = script(Containers())
    for name in ("requires_grad_", "get_submodule", "register_forward_hook", "to_empty"):
        with pytest.raises(RuntimeError, match=f"{name} is not supported on ScriptModules"):
            getattr(s, name)()
    traced = torch.jit.trace(Containers(), torch.ones(1, 3))
    assert not any(p.requires_grad for p in traced.requires_grad_(False).parameters())


def test_modules_and_tensors_are_not_added_to_a_compiled_module():
    s = script(Containers())
    s.layers = s.layers
    with pytest.raises(RuntimeError, match="Cannot re-assign modules in a ScriptModule with non-scripted module, tried to replace existing module 'layers': ReLU"):
        s.layers = nn.ReLU()
    with pytest.raises(RuntimeError, match="Can't add a new parameter after ScriptModule construction. Tried to add 'w"):
        s.w = nn.Parameter(torch.ones(1))
    s.kept = torch.ones(1)
    assert s.kept.item() == 1 and "kept" not in dict(s.named_buffers())


class Constant(nn.Module):
    __constants__ = ["a"]

    def __init__(self):
        super().__init__()
        self.a = 3

    def forward(self):
        return self.a


def test_constants_are_fixed_and_kept_in_files():
    s = script(Constant())
    with pytest.raises(RuntimeError, match="Can't set constant 'a' which has value:3"):
        s.a = 4
    assert reloaded(s).a == 3


def test_methods_are_added_as_text():
    s = script(Constant())
    s.define("""
    def more(self, x: int, y: int = 2):
        return x + y + self.a
    """)
    assert s.more(1) == 6 and s.more(1, y=1) == 5

    class Own(torch.jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.define("""
            def forward(self, x: int) -> int:
                return x + 2
            """)

        @torch.jit.script_method
        def other(self, x: int):
            return x

    assert Own()(3) == 5 and "def other" in Own().other.code


def test_functions_of_a_text_have_their_defaults():
    unit = torch.jit.CompilationUnit("""
    def f(x: int, y: int = 3):
        return x + y
    """)
    assert unit.f(1) == 4


def test_code_comes_with_the_constants_that_it_names():
    kept = torch.ones(2)
    text, constants = torch.jit.trace(lambda x: x + kept, torch.ones(2)).code_with_constants
    assert "CONSTANTS.c0" in text and constants["c0"].tolist() == [1, 1]


# ---- what is left to Python ----

class Ignoring(nn.Module):
    x: Optional[Tensor]

    def __init__(self):
        super().__init__()
        self.x = None
        self.n: int = 1

    @torch.jit.ignore
    def fill(self) -> Tensor:
        if self.x is None:
            self.x = torch.tensor([3])
        self.seen = True
        return torch.ones(1)

    @torch.jit.ignore
    def read(self):
        return self.n

    @torch.jit.export
    def write(self, n: int):
        self.n = n

    def forward(self, x):
        return x + self.fill()


def test_ignored_methods_see_the_compiled_module():
    module = Ignoring()
    s = script(module)
    s.write(5)
    assert s.read() == 5 and module.n == 1
    s(torch.ones(1))
    assert s.x.tolist() == [3] and module.x is None and s.seen


@torch.jit.ignore
def two() -> Tuple[Tuple[Tensor, Tensor]]:
    return torch.ones(1), torch.ones(1)


@torch.jit.ignore
def text() -> int:
    return "a"


@torch.jit.ignore
def failing() -> int:
    raise ValueError("oops")


def test_what_python_gives_back_has_to_be_what_was_declared():
    def f():
        return two()

    def g():
        return text()

    def h():
        return failing()

    with pytest.raises(RuntimeError, match=r"expected value of type \(\(Tensor, Tensor\)\) for return value but instead got value of type tuple"):
        script(f)()
    with pytest.raises(RuntimeError, match="expected value of type int for return value but instead got value of type str"):
        script(g)()
    with pytest.raises(RuntimeError, match=r"ValueError: oops\n\nAt:\n.*: failing"):
        script(h)()


# ---- hooks ----

class Text(nn.Module):
    def forward(self, x: str):
        return x + "!"


def with_hooks(*hooks, before=False):
    module = Text()
    for hook in hooks:
        (module.register_forward_pre_hook if before else module.register_forward_hook)(hook)
    return module


def test_hooks_after_forward_need_no_declared_result():
    def louder(self, input: Tuple[str], output: str):
        return output + input[0]

    def silent(self, input: Tuple[str], output: str):
        pass

    assert script(with_hooks(louder, silent, louder))("a") == "a!aa"


def test_signatures_of_hooks_are_checked():
    def no_result(self, input: Tuple[str]):
        return ("a",)

    def wrong_result(self, input: Tuple[str]) -> Tuple[int]:
        return (1,)

    def no_tuple(self, input: str) -> None:
        pass

    def wrong_output(self, input: Tuple[str], output: int) -> None:
        pass

    def too_few(self) -> None:
        pass

    for hooks, before, message in (((no_result,), True, "is missing a return annotation"),
                                   ((wrong_result,), True, "returned the wrong type of: 'Tuple\\[int\\]'"),
                                   ((no_tuple,), True, "expected the input argument to be typed as a Tuple but found type: 'str'"),
                                   ((wrong_output,), False, "has the wrong type for the output argument. Received type: 'int'. Expected type: 'str'"),
                                   ((too_few,), False, "was expected to only have exactly 3 inputs but it had 1 inputs")):
        with pytest.raises(RuntimeError, match=message):
            script(with_hooks(*hooks, before=before))


def test_names_of_hooks_are_those_of_no_other_method():
    def make(word):
        def hook(self, input: Tuple[str], output: str) -> None:
            print(word)
        return hook

    def forward(self, input: Tuple[str], output: str) -> None:
        pass

    with pytest.raises(RuntimeError, match="has at least two different python definitions"):
        script(with_hooks(make("a"), make("b")))
    with pytest.raises(RuntimeError, match="Can't define hook: forward on class"):
        script(with_hooks(forward))


# ---- regions ----

def test_programs_have_regions_of_autocast():
    def f(x: Tensor, on: bool):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=on):
            y = torch.mm(x, x)
        return y, torch.mm(x, x)

    short, full = script(f)(torch.ones(2, 2), True)
    assert (short.dtype, full.dtype) == (torch.bfloat16, torch.float32)
    assert script(f)(torch.ones(2, 2), False)[0].dtype == torch.float32
    assert not torch.is_autocast_enabled("cpu")

    class Module(nn.Module):
        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return torch.mm(x, x)

    assert reloaded(script(Module()))(torch.ones(2, 2)).dtype == torch.bfloat16


# ---- loops over modules ----

def test_a_loop_over_modules_may_be_left_by_a_return_alone():
    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.ReLU(), nn.Sigmoid(), nn.Tanh()])

    class Returns(Layers):
        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
                if x.sum() > 0:
                    return x
            return x - 1

    class Continues(Layers):
        def forward(self, x):
            for i, layer in enumerate(self.layers):
                if i == 0:
                    continue
                x = layer(x)
            return x

    for value in (torch.ones(1), -torch.ones(1)):
        assert torch.equal(script(Returns())(value), Returns()(value))
    with pytest.raises(RuntimeError, match="we do not support break or continue inside the body of these loops"):
        script(Continues())


def test_dicts_of_what_modules_give():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.ReLU(), nn.Sigmoid()])

        def forward(self, x):
            return {str(i): layer(x) for i, layer in enumerate(self.layers)}, self.layers.training

    given, training = script(Named())(torch.zeros(1))
    assert {k: v.item() for k, v in given.items()} == {"0": 0.0, "1": 0.5} and training


def test_parameters_of_a_dict_are_read_by_name():
    class Parameters(nn.Module):
        def __init__(self):
            super().__init__()
            self.values = nn.ParameterDict({"a": nn.Parameter(torch.ones(1) * 3)})

        def forward(self, x):
            return x + self.values["a"]

    assert script(Parameters())(torch.ones(1)).item() == 4


def test_attributes_of_several_types_are_kept_in_files():
    class Either(nn.Module):
        value: Union[int, float, str]

        def __init__(self):
            super().__init__()
            self.value = 3

        def forward(self):
            return self.value

    assert reloaded(script(Either()))() == 3


def test_a_module_without_forward_has_no_code():
    class Exports(nn.Module):
        @torch.jit.export
        def go(self, x: int):
            return x

    s = script(Exports())
    assert s.go(1) == 1
    with pytest.raises(RuntimeError, match="Method 'forward' is not defined"):
        s.graph  # noqa


class Either(nn.Module):
    """Projects by a layer or by a matrix."""

    def __init__(self, projection):
        super().__init__()
        self.projection = projection

    def forward(self, x: torch.Tensor):
        if isinstance(x, nn.Module):
            return x * 0
        if isinstance(self.projection, (nn.Conv1d, nn.Linear)):
            return self.projection(x)
        elif isinstance(self.projection, nn.Module):
            return self.projection(x) * 2
        else:
            return x @ self.projection


@pytest.mark.parametrize("projection", [nn.Linear(2, 2), nn.ReLU(), nn.Parameter(torch.ones(2, 3))])
def test_of_which_class_a_module_is_decides_what_is_compiled(projection):
    x, module = torch.rand(1, 2), Either(projection)
    assert torch.equal(torch.jit.script(module)(x), module(x))
