"""What rules of users' own operators that take functions are written with."""
import functools
import itertools

import umbra
from umbra import _C
from umbra._C import Tensor
from umbra.utils import _pytree as pytree


def autograd_not_implemented(op, deferred_error):
    """A rule for autograd: the call goes on below, and where something requires gradients, it is refused, or its results refuse the backward pass."""
    text = f"Autograd not implemented for {op}"

    def rule(*args, **kwargs):
        with _C._AutoDispatchBelowAutograd():
            results = op(*args, **kwargs)
        if not umbra.is_grad_enabled() or not any(isinstance(leaf, Tensor) and leaf.requires_grad for leaf in pytree.tree_leaves((args, kwargs))):
            return results
        if not deferred_error:
            raise RuntimeError(text)
        return pytree.tree_map_only(Tensor, lambda x: _refusing(text).apply(x.detach().requires_grad_()) if _has_gradients(x) else x.detach(), results)
    return rule


def _has_gradients(x):
    return x.is_floating_point() or x.is_complex()


def _refusing(text):
    """A function that gives its argument, and in the backward pass the error."""
    class DelayedError(umbra.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.text = text
            return x.view_as(x)

        @staticmethod
        def backward(ctx, gradient):
            raise RuntimeError(ctx.text)
    return DelayedError


def reenter_make_fx(fn, subgraph_decomp_table=None):
    """`fn`'s graph, for a rule that records: `reenter_make_fx(fn)(*args)`, with the decompositions given or those of the capture that is under way."""
    from umbra.fx.experimental.proxy_tensor import _table_in_force, make_fx

    @functools.wraps(fn)
    def capture(*args):
        return make_fx(fn, decomposition_table=subgraph_decomp_table or _table_in_force.get())(*args)
    return capture


def unique_graph_name_with_root(root, prefix):
    """The first of `prefix_0`, `prefix_1`, ... that `root` has no attribute of, with its number."""
    number = next(n for n in itertools.count() if not hasattr(root, f"{prefix}_{n}"))
    return number, f"{prefix}_{number}"


def unique_graph_id(proxy_mode, prefix):
    """That name for the graph that a mode records."""
    return unique_graph_name_with_root(proxy_mode.tracer.root, prefix)


def register_fake(hop, fn=None):
    """The rule for fake tensors: `fn(*args)`, run under their mode."""
    from umbra._subclasses.fake_tensor import FakeTensorMode
    if fn is None:
        return lambda function: register_fake(hop, function)

    @hop.py_impl(FakeTensorMode)
    def rule(mode, *args, **kwargs):
        with mode:
            return fn(*args, **kwargs)
    return fn
