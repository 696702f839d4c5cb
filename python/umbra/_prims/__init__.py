"""Names of torch's primitives."""
from umbra._prims import utils  # noqa: F401
