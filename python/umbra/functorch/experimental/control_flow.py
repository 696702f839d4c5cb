"""Control flow that capture records."""
from umbra._higher_order_ops.cond import cond  # noqa: F401
