"""Helpers of the Python tests."""
import pytest


@pytest.fixture(autouse=True)
def _no_mode_left_open():
    """A test leaves the thread's modes and switches as it found them."""
    yield
    import umbra
    assert umbra._C._dispatch_modes() == []
    assert umbra._C._torch_function_modes() == []
    assert umbra.is_grad_enabled()
