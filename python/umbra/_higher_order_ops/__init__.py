"""Operators that take functions: `ops.higher_order.cond`."""
import types

from umbra._higher_order_ops.cond import cond_op

namespace = types.SimpleNamespace(cond=cond_op)
