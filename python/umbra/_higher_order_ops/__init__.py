"""Operators that take functions: `cond`, `while_loop`, `map`; `ops.higher_order.cond` as graphs call them."""
import types

from umbra._higher_order_ops.cond import cond, cond_op
from umbra._higher_order_ops.map import map, map_impl
from umbra._higher_order_ops.while_loop import while_loop, while_loop_op

__all__ = ["cond", "map", "while_loop"]

namespace = types.SimpleNamespace(cond=cond_op, map_impl=map_impl, while_loop=while_loop_op)
