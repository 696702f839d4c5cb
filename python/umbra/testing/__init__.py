"""For tests: comparison of tensors, tensors to test with, checks of texts."""
from umbra.testing._comparison import assert_allclose, assert_close
from umbra.testing._creation import make_tensor
from umbra.testing._filecheck import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]
