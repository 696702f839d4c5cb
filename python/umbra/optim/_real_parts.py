"""The state of a complex parameter, as an update sees it: its tensors as pairs of real numbers."""
import collections.abc

import umbra


class RealParts(collections.abc.MutableMapping):
    """What is read are views of the complex tensors in `state`, so that writes reach them; what is stored becomes complex again. An update that
    is written for real numbers so treats real and imaginary parts as parameters of their own, as PyTorch's do."""

    def __init__(self, state, parameter):
        self._state, self._sizes = state, (*parameter.shape, 2)

    def __getitem__(self, name):
        value = self._state[name]
        return umbra.view_as_real(value) if isinstance(value, umbra.Tensor) and value.is_complex() else value

    def __setitem__(self, name, value):
        is_pairs = isinstance(value, umbra.Tensor) and tuple(value.shape) == self._sizes
        self._state[name] = umbra.view_as_complex(value.contiguous()) if is_pairs else value

    def __delitem__(self, name):
        del self._state[name]

    def __iter__(self):
        return iter(self._state)

    def __len__(self):
        return len(self._state)
