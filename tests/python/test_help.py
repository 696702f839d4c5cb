"""What help() says: functions that users look up tell what they do."""
import inspect

import pytest

import umbra
import umbra.export
import umbra.func


@pytest.mark.parametrize("module", [umbra.nn.functional, umbra.func, umbra.export], ids=lambda module: module.__name__)
def test_functions_of_a_module_say_what_they_do(module):
    without = [name for name, value in vars(module).items()
               if inspect.isfunction(value) and not name.startswith("_") and value.__module__.startswith(module.__name__) and not value.__doc__]
    assert without == []


def test_functions_of_the_package_say_what_they_do():
    for name in "manual_seed seed initial_seed get_rng_state set_rng_state set_printoptions is_tensor numel split asarray broadcast_tensors " \
                "broadcast_shapes set_default_device get_default_device is_floating_point is_complex typename".split():
        assert getattr(umbra, name).__doc__, name
    for operator in (umbra.add, umbra.cat, umbra.Tensor.view, umbra.nn.Linear, umbra.nn.functional.relu):
        assert operator.__doc__
