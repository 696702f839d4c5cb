"""What torch.jit.script says of a function or class that it does not take."""
import pytest

import umbra as torch


def refused(function):
    with pytest.raises(RuntimeError) as error:
        torch.jit.script(function)
    return str(error.value)
