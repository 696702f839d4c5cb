"""For tests: comparison of tensors, and tensors to test with."""
from umbra.testing._comparison import assert_allclose, assert_close
from umbra.testing._creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
