"""Custom functions inside transforms: each level does its part, and hands the call on to the next one out."""
import types
from typing import NamedTuple

from umbra import _C
from umbra._C import Tensor
from umbra.utils import _pytree as pytree

_NOTES = "https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """What a function's own `vmap` is told about the batch."""
    batch_size: int
    randomness: str


def apply(cls, args):
    """`cls.apply(*args)` at the innermost level."""
    from umbra.autograd.function import Function
    if cls.setup_context is Function.setup_context:
        raise RuntimeError("In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the "
                           f"setup_context staticmethod. For more details, please see {_NOTES}")
    level = _C._innermost_level()
    if level.kind == "functionalize":
        raise RuntimeError("NYI: Functionalize rule for custom_function_call")
    return _batched(cls, args, level) if level.kind == "vmap" else _tracked(cls, args, level)


# ---- grad, vjp, jvp ----

def _tracked(cls, args, level):
    from umbra.autograd.function import _Call
    outside = level.outside()
    args = tuple(level.wrap(a) if isinstance(a, Tensor) and not level.owns(a) else a for a in args)
    values = tuple(level.unwrap(a) if isinstance(a, Tensor) else a for a in args)

    def forward(*given):
        assert len(given) == len(values)
        result = outside.call(lambda: cls.apply(*values))
        many = isinstance(result, (tuple, list))
        wrapped = [_rewrap(level, item, args, values) for item in (result if many else (result,))]
        return tuple(wrapped) if many else wrapped[0]
    # At this level the function is what it is outside, with a tape of its own.
    here = types.new_class(cls.__name__, (cls,), {}, lambda body: body.update(forward=staticmethod(forward)))
    return _Call(here, args, {}, knows_levels=True).run()


def _rewrap(level, item, args, values):
    if not isinstance(item, Tensor):
        return item
    for wrapper, value in zip(args, values):
        if item is value:
            return wrapper
    return level.wrap(item)


# ---- vmap ----

def _batched(cls, args, level):
    from umbra.autograd.function import Function
    dims = tuple(_on_tensors(level.batch_dim, a, lambda other: None) for a in args)
    values = tuple(_on_tensors(level.unwrap, a, lambda other: other) for a in args)
    own = "vmap" in vars(cls) or any("vmap" in vars(base) for base in cls.__mro__ if base is not Function and base is not object)
    if cls.generate_vmap_rule and own:
        raise RuntimeError(f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap staticmethod. "
                           "Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity. For more details, "
                           f"please see {_NOTES}")
    if not cls.generate_vmap_rule and not own:
        raise RuntimeError(f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement the vmap "
                           f"staticmethod or set generate_vmap_rule=True. For more details, please see {_NOTES}")
    if all(dim is None for dim in pytree.tree_leaves(dims)):
        return level.call_outside(lambda: cls.apply(*values))
    if own:
        result, out_dims = _two_returns(level.call_outside(lambda: cls.vmap(VmapInfo(level.size, level.randomness), dims, *values)))
    else:
        mapped, out_dims = _mapped(cls, dims, level.size, level.randomness)
        result = level.call_outside(lambda: mapped.apply(*values))
    many = isinstance(result, (tuple, list))
    results = tuple(result) if many else (result,)
    out_dims = _dims_of_results(result, out_dims) if own else out_dims
    out_dims = out_dims if isinstance(out_dims, (tuple, list)) else (out_dims,) * len(results)
    same = {id(value): given for value, given in zip(values, args) if isinstance(value, Tensor)}  # what is given back as it is stays what it was

    def wrap(item, dim):
        if id(item) in same:
            return same[id(item)]
        return level.batch(item, dim) if isinstance(item, Tensor) and dim is not None else item
    wrapped = tuple(wrap(item, dim) for item, dim in zip(results, out_dims))
    return wrapped if many else wrapped[0]


def _on_tensors(function, argument, otherwise):
    """An argument, or what lies in its lists and dicts: `function` of tensors, `otherwise` of all else."""
    return pytree.tree_map(lambda leaf: function(leaf) if isinstance(leaf, Tensor) else otherwise(leaf), argument)


def _two_returns(returned):
    if isinstance(returned, tuple) and len(returned) == 2:
        return returned
    got = f"{len(returned)} returns" if isinstance(returned, tuple) else f"a {type(returned)}"
    raise RuntimeError("Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible with the "
                       f"output. Got {got} instead")


def _dims_of_results(result, out_dims):
    """The batch dimension of each tensor in the result; one that stands for a part of it stands for all tensors there."""
    structure = pytree.tree_structure(result)
    dims = pytree._broadcast_to_and_flatten(out_dims, structure)
    if dims is None:
        raise RuntimeError("The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
                           f"out_dims={out_dims} to be compatible with the structure of `output`. out_dims has structure "
                           f"{pytree.tree_structure(out_dims)} but output has structure {structure}. For more details, please see {_NOTES}")
    return dims


class _SavingContext:
    """Stands for the context while setup_context sees batched tensors: what is saved is told apart from its batch dimension."""

    def __init__(self, level):
        self._level, self.saved, self.dims = level, (), ()
        self.forward_saved, self.forward_dims = None, None  # for jvp, where it was given its own

    def _told_apart(self, tensors):
        dims = tuple(self._level.batch_dim(t) if isinstance(t, Tensor) else None for t in tensors)
        return tuple(self._level.unwrap(t) if isinstance(t, Tensor) else t for t in tensors), dims

    def save_for_backward(self, *tensors):
        self.saved, self.dims = self._told_apart(tensors)

    def save_for_forward(self, *tensors):
        self.forward_saved, self.forward_dims = self._told_apart(tensors)

    def mark_dirty(self, *tensors):
        raise RuntimeError("NYI: generate_vmap_rule=True with ctx.mark_dirty")

    def mark_non_differentiable(self, *tensors):
        self.non_differentiable = tuple(self._level.unwrap(t) for t in tensors)

    def set_materialize_grads(self, value):
        self.materialize = value


def _hide_dim(level, value, dim):
    """The value as vmap shows it: a tensor without the dimension that is its batch."""
    return level.batch(value, dim) if isinstance(value, Tensor) and dim is not None else value


def _hide_dims(level, values, dims):
    return tuple(_hide_dim(level, value, dim) for value, dim in zip(values, dims))


def _inner_context(ctx, saved):
    """What the function's own backward or jvp sees as its context, under vmap."""
    seen = types.SimpleNamespace(**{k: v for k, v in vars(ctx._inner).items() if k not in ("_level", "saved", "dims", "forward_saved", "forward_dims")})
    seen.saved_tensors, seen.needs_input_grad = saved, ctx.needs_input_grad
    return seen


def _mapped(cls, dims, size, randomness):
    """A function on whole batches whose forward, setup_context and backward are those of `cls` under vmap; and where its results have theirs."""
    from umbra.autograd.function import Function
    from umbra.func.vmapping import vmap

    def forward(*values):
        return vmap(cls.forward, in_dims=dims, randomness=randomness)(*values)

    def setup_context(ctx, inputs, output):
        outputs = output if isinstance(output, tuple) else (output,)
        with _C._vmap_level(size, randomness) as level:
            inner = _SavingContext(level)
            seen = tuple(_hide_dim(level, t, 0) for t in outputs)
            cls.setup_context(inner, _hide_dims(level, inputs, dims), seen if isinstance(output, tuple) else seen[0])
        ctx.save_for_backward(*inner.saved)
        if inner.forward_saved is not None:
            ctx.save_for_forward(*inner.forward_saved)
        ctx._inner = inner
        if hasattr(inner, "non_differentiable"):
            ctx.mark_non_differentiable(*inner.non_differentiable)
        if hasattr(inner, "materialize"):
            ctx.set_materialize_grads(inner.materialize)

    def backward(ctx, *grads):
        grad_dims = tuple(None if g is None else 0 for g in grads)
        with _C._vmap_level(size, randomness) as level:
            one = cls.backward if cls.backward is not Function.backward else cls.vjp
            found = one(_inner_context(ctx, _hide_dims(level, ctx.saved_tensors, ctx._inner.dims)), *_hide_dims(level, grads, grad_dims))
        found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        return tuple(None if g is None else _fit(level, g, dim) for g, dim in zip(found, dims))

    def jvp(ctx, *tangents):
        with _C._vmap_level(size, randomness) as level:
            saved_dims = ctx._inner.dims if ctx._inner.forward_dims is None else ctx._inner.forward_dims
            found = cls.jvp(_inner_context(ctx, _hide_dims(level, ctx.saved_tensors, saved_dims)), *_hide_dims(level, tangents, dims))
        many = isinstance(found, (tuple, list))
        results = tuple(level.result(t, 0) if isinstance(t, Tensor) else t for t in (found if many else (found,)))
        return results if many else results[0]
    members = {"forward": staticmethod(forward), "setup_context": staticmethod(setup_context), "backward": staticmethod(backward),
               "generate_vmap_rule": True}
    if cls.jvp is not Function.jvp:
        members["jvp"] = staticmethod(jvp)
    return types.new_class(cls.__name__, (Function,), {}, lambda body: body.update(members)), 0


def _fit(level, gradient, dim):
    """A gradient where its input has the batch; summed over the batch where the input has none."""
    if dim is not None:
        return level.result(gradient, dim)
    whole = level.result(gradient, 0) if level.is_batched(gradient) else gradient
    return whole.sum(0) if level.is_batched(gradient) else whole
