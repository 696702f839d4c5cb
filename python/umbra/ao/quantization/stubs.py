"""Places where a model is to be quantised. Until it is, they give what they are given."""
from umbra.nn import Module


class _Place(Module):
    def __init__(self, qconfig=None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x):
        return x


class QuantStub(_Place):
    """Where floats are to become quantised values."""


class DeQuantStub(_Place):
    """Where quantised values are to become floats."""


class QuantWrapper(Module):
    """A module between the two."""

    def __init__(self, module):
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.add_module("quant", QuantStub(qconfig))
        self.add_module("dequant", DeQuantStub(qconfig))
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X):
        return self.dequant(self.module(self.quant(X)))
