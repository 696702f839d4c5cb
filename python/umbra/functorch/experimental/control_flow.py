"""Control flow that capture records."""
from umbra._higher_order_ops import cond, map  # noqa: F401
