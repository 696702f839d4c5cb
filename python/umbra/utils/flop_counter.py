"""Counts the floating-point operations of matrix products, convolutions and attention while a program runs.

    with FlopCounterMode(display=False) as counter:
        model(x).sum().backward()
    counter.get_total_flops()

A multiplication and an addition are two operations. `umbra.estimate` counts them without running anything.
"""
import collections
import functools
import math
import warnings

import umbra
from umbra import _C
from umbra._higher_order_ops.dispatch import HigherOrderOperator
from umbra._ops import OpOverloadPacket
from umbra.utils._python_dispatch import TorchDispatchMode
from umbra.utils._pytree import tree_map
from umbra.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

_aten = umbra.ops.aten
flop_registry = {}  # from an operator's packet to what counts a call of it


def _with_shapes(formula):
    """The formula called with shapes where tensors stand."""
    @functools.wraps(formula)
    def count(*args, out_val=None, **kwargs):
        args, kwargs, out_shape = tree_map(lambda value: value.shape if isinstance(value, _C.Tensor) else value, (args, kwargs, out_val))
        return formula(*args, out_shape=out_shape, **kwargs)
    return count


def register_flop_formula(targets, get_raw=False):
    """Makes a function the one that counts the calls of `targets`: it gets the call's arguments and `out_shape`, with shapes in the place of tensors
    unless `get_raw` is set (then `out_val` is the result).

        @register_flop_formula(torch.ops.mylib.product)
        def product_flops(a, b, out_shape=None, **kwargs): ...
    """
    def register(formula):
        counts = formula if get_raw else _with_shapes(formula)
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if not isinstance(target, (OpOverloadPacket, HigherOrderOperator)):
                raise ValueError(f"register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. torch.ops.mylib.foo), JitFunction, "
                                 f"or HigherOrderOperator, got {target} which is of type {type(target)}")
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = counts
        return formula
    return register


def _count(targets, count):
    """Makes `count(arguments, result)`, both with shapes in the place of tensors, the formula of operators."""
    register_flop_formula(targets)(lambda *args, out_shape=None, **kwargs: count((*args, *kwargs.values()), out_shape))


def _product_flops(a, b):
    return 2 * math.prod(a) * b[-1]


def _convolution_flops(x, weight, out, transposed):
    """Every element of the weight meets every place of the smaller image once for each batch."""
    return 2 * x[0] * math.prod((x if transposed else out)[2:]) * math.prod(weight)


def _convolution_backward_flops(arguments, out):
    gradient, x, weight, transposed, wanted = *arguments[:3], arguments[7], arguments[10]

    def swapped(shape):
        return [shape[1], shape[0], *shape[2:]]
    flops = _convolution_flops(gradient, weight, out[0], not transposed) if wanted[0] else 0
    if wanted[1]:  # a convolution of the input with the gradient, in which batch and channels have changed places
        image, kernel = (gradient, x) if transposed else (x, gradient)
        flops += _convolution_flops(swapped(image), swapped(kernel), swapped(out[1]), False)
    return flops


def _attention_flops(query, key, value, products_of_keys, products_of_values):
    pairs = math.prod(query[:-1]) * key[-2]
    return 2 * pairs * (products_of_keys * query[-1] + products_of_values * value[-1])


_count([_aten.mm, _aten.bmm], lambda arguments, out: _product_flops(*arguments[:2]))
_count([_aten.addmm, _aten.baddbmm], lambda arguments, out: _product_flops(*arguments[1:3]))
_count([_aten.convolution, _aten._convolution], lambda arguments, out: _convolution_flops(*arguments[:2], out, arguments[6]))
_count(_aten.convolution_backward, _convolution_backward_flops)
_count(_aten._scaled_dot_product_flash_attention_for_cpu, lambda arguments, out: _attention_flops(*arguments[:3], 1, 1))
# The scores are computed again; then come the gradients of the probabilities, values, queries and keys.
_count(_aten._scaled_dot_product_flash_attention_for_cpu_backward, lambda arguments, out: _attention_flops(*arguments[1:4], 3, 2))


_SUFFIXES = ("", "K", "M", "B", "T")


def _suffix(number):
    return max(0, min(len(_SUFFIXES) - 1, (len(str(number)) - 2) // 3))


def _scaled(number, suffix):
    return f"{number / 1000 ** suffix:.3f}{_SUFFIXES[suffix]}" if suffix else str(number)


def _percent(part, whole):
    return f"{part / whole:.2%}" if whole else "0%"


class FlopCounterMode:
    """Counts while it is entered, by module and operator; `display` prints the table at the end, of modules `depth` deep."""

    def __init__(self, mods=None, depth=2, display=True, custom_mapping=None):
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.depth, self.display, self.mod_tracker = depth, display, ModuleTracker()
        self.flop_counts = collections.defaultdict(lambda: collections.defaultdict(int))
        custom = {target: formula if getattr(formula, "_get_raw", False) else _with_shapes(formula)
                  for target, formula in (custom_mapping or {}).items()}
        self.flop_registry = {**flop_registry, **custom}

    def get_total_flops(self):
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self):
        """From a module's name to the operations of each operator in it; "Global" has all of them."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth=None):
        """The counts as text, a line for a module and one for each of its operators."""
        depth, total = self.depth if depth is None else depth, self.get_total_flops()
        suffix, rows, covered = _suffix(total), [], False

        def lines(name):
            counts = self.flop_counts[name]
            own = sum(counts.values())
            return [(name, _scaled(own, suffix), _percent(own, total)),
                    *((f"- {operator}", _scaled(count, suffix), _percent(count, total)) for operator, count in counts.items())]
        for name in sorted(self.flop_counts):
            if name != "Global" and name.count(".") < depth:
                rows += lines(name)
                covered |= sum(self.flop_counts[name].values()) >= total
        if self.flop_counts["Global"] and not covered:
            rows = lines("Global") + rows
        rows = [("Module", "FLOP", "% Total"), *(rows or [("Global", "0", "0%")])]
        widths = [max(len(title) + 2, *map(len, column)) for title, *column in zip(*rows)]
        rows.insert(1, tuple("-" * width for width in widths))
        return "\n".join("  ".join((a.ljust(widths[0]), b.rjust(widths[1]), c.rjust(widths[2]))) for a, b, c in rows)

    def __enter__(self):
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self.mode = _Counting(self)
        self.mode.__enter__()
        return self

    def __exit__(self, *exception):
        self.mode.__exit__(*exception)
        self.mod_tracker.__exit__(*exception)
        if self.display:
            print(self.get_table())

    def _count(self, operator, result, args, kwargs):
        formula = self.flop_registry.get(operator)
        if formula is not None:
            flops = formula(*args, **kwargs, out_val=result)
            for name in self.mod_tracker.parents:
                self.flop_counts[name][operator] += flops


class _Counting(TorchDispatchMode):
    def __init__(self, counter):
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if isinstance(func, HigherOrderOperator):
            raise NotImplementedError(f"FlopCounterMode does not count what {func} calls")
        result = func(*args, **kwargs)
        self.counter._count(func._overloadpacket, result, args, kwargs)
        return result
