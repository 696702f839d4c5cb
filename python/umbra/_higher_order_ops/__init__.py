"""Operators that take functions: `cond`, `while_loop`, `map`, `scan`; `ops.higher_order.cond` as graphs call them."""
import types

from umbra._higher_order_ops.auto_functionalize import auto_functionalized, auto_functionalized_v2
from umbra._higher_order_ops.cond import cond, cond_op
from umbra._higher_order_ops.dispatch import operators
from umbra._higher_order_ops.effects import with_effects
from umbra._higher_order_ops.invoke_subgraph import invoke_subgraph
from umbra._higher_order_ops.map import map, map_impl
from umbra._higher_order_ops.out_dtype import out_dtype
from umbra._higher_order_ops.run_const_graph import run_const_graph
from umbra._higher_order_ops.scan import scan, scan_op
from umbra._higher_order_ops.strict_mode import strict_mode_op
from umbra._higher_order_ops.while_loop import while_loop, while_loop_backward_op, while_loop_op
from umbra._higher_order_ops.wrap import (
    hints_wrapper, tag_activation_checkpoint, wrap, wrap_activation_checkpoint, wrap_with_autocast, wrap_with_set_grad_enabled)

from umbra._higher_order_ops.associative_scan import associative_scan, associative_scan_op  # isort: skip (the function, not the module)



class _Namespace(types.SimpleNamespace):
    """The library's operators, and those that users define."""

    def __getattr__(self, name):
        if name not in operators:
            raise AttributeError(f"'_HigherOrderNamespace' 'higher_order' object has no attribute '{name}'")
        return operators[name]


__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]

namespace = _Namespace(associative_scan=associative_scan_op, auto_functionalized=auto_functionalized,
                                  auto_functionalized_v2=auto_functionalized_v2, cond=cond_op, hints_wrapper=hints_wrapper,
                                  invoke_subgraph=invoke_subgraph, map_impl=map_impl, out_dtype=out_dtype, run_const_graph=run_const_graph,
                                  scan=scan_op, strict_mode=strict_mode_op, tag_activation_checkpoint=tag_activation_checkpoint,
                                  while_loop=while_loop_op, while_loop_backward=while_loop_backward_op, with_effects=with_effects, wrap=wrap, wrap_activation_checkpoint=wrap_activation_checkpoint,
                                  wrap_with_autocast=wrap_with_autocast, wrap_with_set_grad_enabled=wrap_with_set_grad_enabled)
