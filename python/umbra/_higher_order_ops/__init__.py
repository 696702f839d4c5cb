"""Operators that take functions: `cond`, `while_loop`, `map`, `scan`; `ops.higher_order.cond` as graphs call them."""
import types

from umbra._higher_order_ops.auto_functionalize import auto_functionalized, auto_functionalized_v2
from umbra._higher_order_ops.cond import cond, cond_op
from umbra._higher_order_ops.map import map, map_impl
from umbra._higher_order_ops.scan import associative_scan, scan, scan_op
from umbra._higher_order_ops.while_loop import while_loop, while_loop_op
from umbra._higher_order_ops.wrap import wrap_with_autocast, wrap_with_set_grad_enabled

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]

namespace = types.SimpleNamespace(auto_functionalized=auto_functionalized, auto_functionalized_v2=auto_functionalized_v2, cond=cond_op, map_impl=map_impl,
                                  scan=scan_op, while_loop=while_loop_op, wrap_with_autocast=wrap_with_autocast,
                                  wrap_with_set_grad_enabled=wrap_with_set_grad_enabled)
