"""Where torch keeps Variable, the old name of Tensor."""
from umbra.autograd import Variable  # noqa: F401
