"""The older place of torch.ao.nn.quantized."""
from umbra.ao.nn.quantized import FloatFunctional  # noqa: F401
