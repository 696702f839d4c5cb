"""What help() says: functions that users look up tell what they do."""
import doctest
import importlib
import inspect
import operator

import pytest

import umbra
import umbra.export
import umbra.func
from umbra._modules import torch_names
from umbra._operator_docs import _texts


@pytest.mark.parametrize("module", [umbra.nn.functional, umbra.func, umbra.export], ids=lambda module: module.__name__)
def test_functions_of_a_module_say_what_they_do(module):
    without = [name for name, value in vars(module).items()
               if inspect.isfunction(value) and not name.startswith("_") and value.__module__.startswith(module.__name__) and not value.__doc__]
    assert without == []


def test_functions_of_the_package_say_what_they_do():
    for name in "manual_seed seed initial_seed get_rng_state set_rng_state set_printoptions is_tensor numel split asarray broadcast_tensors " \
                "broadcast_shapes set_default_device get_default_device is_floating_point is_complex typename".split():
        assert getattr(umbra, name).__doc__, name
    for function in (umbra.add, umbra.cat, umbra.Tensor.view, umbra.nn.Linear, umbra.nn.functional.relu):
        assert function.__doc__


@pytest.mark.parametrize("path", ["", "nn", "nn.functional", "func", "export", "library", "optim", "optim.lr_scheduler", "autograd", "linalg", "fft", "special",
                                  "utils.data", "utils.checkpoint", "fx", "jit", "nn.init", "nn.utils", "distributions", "cuda", "amp", "compiler", "overrides",
                                  "profiler", "sparse", "nested", "testing"])
def test_what_users_look_up_is_described(path):
    module = importlib.import_module(f"umbra.{path}".rstrip("."))
    found = {name: getattr(module, name, None) for name in torch_names()[f"torch.{path}".rstrip(".")]}
    without = [name for name, value in found.items() if callable(value) and not inspect.ismodule(value) and not value.__doc__]
    assert without == []


@pytest.mark.parametrize("name", [
    "Tensor", "Size", "device", "dtype", "Generator", "finfo", "iinfo", "UntypedStorage", "fx.Graph", "func.grad", "func.grad_and_value", "func.hessian",
    "func.jacfwd", "func.jvp", "func.vjp", "func.linearize", "func.stack_module_state", "export.export", "export.unflatten", "library.custom_op",
    "library.infer_schema", "FloatTensor", "LongTensor", "autograd.backward", "autograd.grad", "autograd.Function", "autograd.no_grad"])
def test_examples_of_classes_and_functions_are_true(name):
    text = operator.attrgetter(name)(umbra).__doc__
    runner = doctest.DocTestRunner()
    runner.run(doctest.DocTestParser().get_doctest(text, {"torch": umbra}, name, None, 0))
    assert runner.tries > 0 and runner.failures == 0


def operators_of_the_api():
    """The functions and methods that people look up, by the name of the module or class."""
    for path, place in (("torch", umbra), ("torch.fft", umbra.fft), ("torch.linalg", umbra.linalg), ("torch.special", umbra.special),
                        ("torch.nn.functional", umbra.nn.functional), ("torch.Tensor", umbra.Tensor)):
        for name in sorted(torch_names()[path]):
            value = getattr(place, name, None)
            if type(value) in (type(umbra.add), type(umbra.Tensor.add)):
                yield f"{path}.{name}", value.__doc__


def test_operators_say_what_they_do_above_their_schemas():
    without = [name for name, text in operators_of_the_api() if text.startswith("aten::")]
    assert without == []
    assert umbra.relu_.__doc__.startswith("Writes its first argument: the values, 0 where they are negative.\n\naten::relu_(")
    assert umbra.arccos.__doc__.startswith(umbra.acos.__doc__.partition("\n")[0])


def test_examples_of_operators_are_true():
    runner = doctest.DocTestRunner()
    for name, text in dict(operators_of_the_api()).items():
        examples = doctest.DocTestParser().get_doctest(text.partition("\n\naten::")[0], {"torch": umbra}, name, None, 0)
        runner.run(examples)
    assert runner.tries > 30 and runner.failures == 0


def test_texts_are_of_operators_that_are_there():
    assert [name for name in _texts() if not umbra._C._overload_names(f"aten::{name}")] == []


@pytest.mark.parametrize("path", ["", "autograd", "utils.data", "func", "jit", "amp"])
def test_functions_of_the_library_say_more_than_what_they_take(path):
    module = importlib.import_module(f"umbra.{path}".rstrip("."))
    found = {name: getattr(module, name, None) for name in torch_names()[f"torch.{path}".rstrip(".")]}
    assert [name for name, value in found.items() if callable(value) and (value.__doc__ or "").startswith(f"{name}(") and "\n\n" not in value.__doc__] == []
