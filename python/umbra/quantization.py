"""The older place of torch.ao.quantization."""
from umbra._modules import lazy_submodules
from umbra.ao.quantization import DeQuantStub, FakeQuantizeBase, ObserverBase, QuantStub, QuantWrapper  # noqa: F401

__getattr__ = lazy_submodules(__name__)
