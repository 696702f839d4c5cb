"""Fake tensors."""
from umbra._subclasses.fake_tensor import (  # noqa: F401
    DynamicOutputShapeException, FakeTensor, FakeTensorMode, UnsupportedFakeTensorException)
from umbra._subclasses.fake_utils import CrossRefFakeMode  # noqa: F401
from umbra._modules import lazy_submodules

__getattr__ = lazy_submodules(__name__)
