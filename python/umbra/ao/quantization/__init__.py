"""Observers and fake quantisation: no module is one here."""
from umbra._modules import lazy_submodules
from umbra.ao.quantization.stubs import DeQuantStub, QuantStub, QuantWrapper  # noqa: F401
from umbra.nn import Module


class ObserverBase(Module):
    """A module that keeps statistics of what passes it, to choose scales by. To be derived from: `forward` and `calculate_qparams` are the user's."""

    def __init__(self, dtype, is_dynamic=False):
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    def calculate_qparams(self, **kwargs):
        raise NotImplementedError(f"{type(self).__name__}.calculate_qparams is not written")


class FakeQuantizeBase(Module):
    """A module that rounds as a quantised one would. To be derived from."""

    def calculate_qparams(self, **kwargs):
        raise NotImplementedError(f"{type(self).__name__}.calculate_qparams is not written")


__getattr__ = lazy_submodules(__name__)
