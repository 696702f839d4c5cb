"""grad, vjp, jvp, Jacobians and Hessians."""
from collections.abc import Callable
from typing import Any

import umbra
from umbra import _C
from umbra._C import Tensor
from umbra.autograd import forward_ad
from umbra.autograd.graph import disable_saved_tensors_hooks
from umbra.func.vmapping import vmap
from umbra.func.wrappers import map_tensors, same_name
from umbra.utils import _pytree as pytree
from umbra.utils._contextlib import uninterrupted


# ---- arguments ----

def _checked_position(position, count):
    if not isinstance(position, int):
        raise RuntimeError(f"argnum must be int, got: {type(position)}")
    if not -count <= position < count:
        raise RuntimeError(f"Got argnum={position}, but only {count} positional inputs")
    return position + count if position < 0 else position


def _checked_positions(argnums, count):
    """`argnums` as numbers that count from the front: one, or a tuple of them."""
    if isinstance(argnums, int):
        return _checked_position(argnums, count)
    if isinstance(argnums, tuple):
        positions = tuple(_checked_position(p, count) for p in argnums)
        if len(positions) != len(set(positions)):
            raise RuntimeError(f"argnums elements must be unique, got {positions}")
        if not positions:
            raise RuntimeError("argnums must be non-empty")
        return positions
    raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")


def _selected(args, positions):
    return args[positions] if isinstance(positions, int) else tuple(args[p] for p in positions)


def _replaced(args, positions, values):
    args = list(args)
    for p, value in zip((positions,), (values,)) if isinstance(positions, int) else zip(positions, values):
        args[p] = value
    return tuple(args)


def _differentiable(level, tree):
    """The tree with every leaf a tensor that requires gradients at the level."""
    def one(leaf):
        if not isinstance(leaf, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(leaf)}")
        return level.differentiable(leaf)
    return pytree.tree_map(one, tree)


def _check_tensors(transform, leaves):
    if not leaves or (len(leaves) == 1 and leaves[0] is None):
        raise RuntimeError(f"{transform}: Expected f to be a function that has non-empty output (got output = {leaves})")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{transform}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}")


def _check_real(leaves):
    for leaf in leaves:
        if not (leaf.is_floating_point() or leaf.is_complex()):
            raise RuntimeError(f"vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype {leaf.dtype}")


def _split_aux(what, result, has_aux):
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"{what}: output of function f should be a tuple: (output, aux) if has_aux is True")
    for leaf in pytree.tree_leaves(result[1]):
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")
    return result


@uninterrupted
def _grad_level():
    """A level of reverse mode. Hooks on what is saved would see its wrappers."""
    with disable_saved_tensors_hooks(_NO_HOOKS), _C._grad_level() as level:
        yield level


_NO_HOOKS = ("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.")


# ---- reverse mode ----

def grad_and_value(func, argnums: Any = 0, has_aux=False) -> Callable[..., Any]:
    """The gradient of a function with a scalar result, and the result: `(gradient, value)`, or `(gradient, (value, aux))`.

        >>> torch.func.grad_and_value(lambda x: x ** 2)(torch.tensor(3.0))
        (tensor(6.), tensor(9.))
    """
    @same_name(func)
    def call(*args, **kwargs):
        positions = _checked_positions(argnums, len(args))
        with _grad_level() as level:
            wanted = _differentiable(level, _selected(args, positions))
            given, named = map_tensors(level.wrap, (args, kwargs))
            result = func(*_replaced(given, positions, wanted), **named)
            output, aux = _split_aux("grad_and_value(f)(*args)", result, has_aux)
            if not isinstance(output, Tensor):
                raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}")
            if output.dim() != 0:
                raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with {output.dim()} dims. "
                                   "Maybe you wanted to use the vjp or jacrev APIs instead?")
        leaves, spec = pytree.tree_flatten(wanted)
        gradients = spec.unflatten(level.pull([output], leaves, [], False, umbra.is_grad_enabled()))
        output = level.unwrap(output)
        return (gradients, (output, map_tensors(level.unwrap, aux))) if has_aux else (gradients, output)
    return call


def grad(func, argnums: Any = 0, has_aux=False) -> Callable[..., Any]:
    """The gradient of a function with a scalar result, with respect to the arguments at `argnums`.

        >>> torch.func.grad(lambda x: x.sin())(torch.tensor(0.0))
        tensor(1.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @same_name(func)
    def call(*args, **kwargs):
        gradients, value = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients
    return call


def vjp(func, *primals, has_aux=False):
    """`func(*primals)`, and the function from cotangents of the result to those of the primals; with `has_aux`, also what else it returns.

        >>> value, pull_back = torch.func.vjp(lambda x: x * x, torch.tensor(3.0))
        >>> pull_back(torch.tensor(1.0))
        (tensor(6.),)
    """
    return _vjp(func, primals, tuple(range(len(primals))), has_aux)


def _vjp(func, args, positions, has_aux):
    with _grad_level() as level:
        wanted = _differentiable(level, _selected(args, positions))
        result = func(*_replaced(map_tensors(level.wrap, args), positions, wanted))
        output, aux = _split_aux("vjp(f, *primals)", result, has_aux)
        outputs, output_spec = pytree.tree_flatten(output)
        _check_tensors("vjp(f, *primals)", outputs)
        _check_real(outputs)
    leaves, spec = pytree.tree_flatten(wanted)

    def pull_back(cotangents, retain_graph=True, create_graph=None):
        if create_graph is None:
            create_graph = umbra.is_grad_enabled()
        weights, given_spec = pytree.tree_flatten(cotangents)
        if given_spec != output_spec:
            raise RuntimeError("Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                               f"cotangents: {_sketch(given_spec)}, primal output: {_sketch(output_spec)}")
        for weight in weights:
            if weight is not None and not isinstance(weight, Tensor):
                raise TypeError(f"gradients can be either Tensors or None, but got {type(weight).__name__}")
        return spec.unflatten(level.pull(outputs, leaves, weights, retain_graph, create_graph))
    plain = output_spec.unflatten([level.unwrap(t) for t in outputs])
    return (plain, pull_back, map_tensors(level.unwrap, aux)) if has_aux else (plain, pull_back)


def _sketch(spec):
    return str(pytree.tree_unflatten(["*"] * spec.num_leaves, spec)).replace("'*'", "*")


# ---- forward mode ----

def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """`func(*primals)` and its derivative along `tangents`; with `has_aux`, also what else it returns.

        >>> torch.func.jvp(lambda x: x * x, (torch.tensor(3.0),), (torch.tensor(1.0),))
        (tensor(9.), tensor(6.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError("jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    return _jvp(func, primals, primals, tuple(range(len(primals))), tangents, strict, has_aux)


def _jvp(func, args, primals, positions, tangents, strict, has_aux):
    leaves, spec = pytree.tree_flatten(primals)
    along, tangent_spec = pytree.tree_flatten(tangents)
    if spec != tangent_spec:
        raise RuntimeError("jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For example, if primals is "
                           f"a tuple of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents with structure "
                           f"{tangent_spec}")
    for name, values in ("primals", leaves), ("tangents", along):
        if not values:
            raise RuntimeError(f"jvp(f, primals, tangents): Expected {name} to contain at least one Tensor.")
        for value in values:
            if not isinstance(value, Tensor):
                raise RuntimeError(f"jvp(f, primals, tangents): Expected {name} to only contain Tensors, got {type(value)}")
    forward_ad.refuse_nesting()
    leaves = [umbra.ops.aten.alias.default(leaf) for leaf in leaves]  # views: what the function writes is seen outside, what it changes of sizes is not
    with _C._jvp_level() as level:
        duals = spec.unflatten([level.dual(p, t) for p, t in zip(leaves, along)])
        result = func(*_replaced(map_tensors(level.wrap, args), positions, duals))
        output, aux = _split_aux("jvp(f, primals, tangents)", result, has_aux)
        outputs, output_spec = pytree.tree_flatten(output)
        _check_tensors("jvp(f, primals, tangents)", outputs)
        found = [level.tangent(t) for t in outputs]
    if strict and any(t is None for t in found):
        raise RuntimeError("jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed with strict=True.")
    plain = [level.unwrap(t) for t in outputs]
    found = [umbra.zeros_like(p) if t is None else t for p, t in zip(plain, found)]
    results = output_spec.unflatten(plain), output_spec.unflatten(found)
    return (*results, map_tensors(level.unwrap, aux)) if has_aux else results


def linearize(func, *primals):
    """`func(*primals)`, and its derivative there as a function of tangents, captured once as a graph.

        >>> value, along = torch.func.linearize(lambda x: x * x, torch.tensor(3.0))
        >>> along(torch.tensor(2.0))
        tensor(12.)
    """
    from umbra.fx.experimental.proxy_tensor import make_fx
    leaves, spec = pytree.tree_flatten(primals)
    output = func(*primals)

    def along(*tangents):
        return jvp(func, primals, tangents)[1]
    graph = make_fx(along)(*pytree.tree_map(umbra.zeros_like, primals))

    def push_forward(*tangents):
        given, given_spec = pytree.tree_flatten(tangents)
        if given_spec != spec:
            raise RuntimeError(f"Expected the tangents {given_spec} to have the same argspec as the primals {spec}")
        for i, (tangent, primal) in enumerate(zip(given, leaves)):
            for what in "shape", "device", "dtype":
                if getattr(tangent, what) != getattr(primal, what):
                    raise RuntimeError(f"tangent:{i} with {what} {getattr(tangent, what)} in flattened pytree doesn't match the {what} "
                                       f"{getattr(primal, what)} of the corresponding primal.")
        return graph(*tangents)
    return output, push_forward


# ---- Jacobians ----

def _basis(leaves):
    """For all elements of all leaves, one after the other, the unit vector of that element: a tensor for each leaf."""
    counts = [leaf.numel() for leaf in leaves]
    total, start, basis = sum(counts), 0, []
    for leaf, count in zip(leaves, counts):
        units = leaf.new_zeros(total, count)
        units.diagonal(-start).fill_(1)
        basis.append(units.view(total, *leaf.shape))
        start += count
    return basis, counts


def _check_not_complex(transform, what, leaves):
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor) and leaf.is_complex():
            raise RuntimeError(f"{transform}: Expected all {what} to be real but received complex tensor at flattened input idx: {i}")


def _pulled_rows(pull_back, basis, spec, count, chunk_size, in_place):
    """`pull_back` of each unit vector, stacked."""
    if chunk_size is None or count == 0:
        return vmap(pull_back)(spec.unflatten(basis))
    if chunk_size == 1:  # one by one: a backward that vmap has no rule for will do
        chunks = (pytree.tree_map(lambda part: part.unsqueeze(0), pull_back(spec.unflatten([units[i] for units in basis]))) for i in range(count))
    else:
        chunks = (vmap(pull_back)(spec.unflatten([units[i:i + chunk_size] for units in basis])) for i in range(0, count, chunk_size))
    if not in_place:
        return pytree.tree_map(lambda *parts: umbra.cat(parts), *chunks)
    rows, start = None, 0
    for chunk in chunks:
        if rows is None:
            rows = pytree.tree_map(lambda part: part.new_zeros((count, *part.shape[1:])), chunk)
        length = pytree.tree_leaves(chunk)[0].shape[0]
        pytree.tree_map(lambda whole, part: whole[start:start + length].copy_(part), rows, chunk)
        start += length
    return rows


def jacrev(func, argnums: Any = 0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False) -> Callable[..., Any]:
    """The Jacobian by reverse mode: all elements of the result at once, or `chunk_size` of them at a time. With `_preallocate_and_copy` the rows of a chunk go
    into the place that they have in the end, so that chunks are not kept besides."""
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @same_name(func)
    def call(*args):
        positions = _checked_positions(argnums, len(args))
        _check_not_complex("jacrev", "inputs", pytree.tree_leaves(_selected(args, positions)))
        output, pull_back, *aux = _vjp(func, args, positions, has_aux)
        outputs, output_spec = pytree.tree_flatten(output)
        _check_not_complex("jacrev", "outputs", outputs)
        basis, counts = _basis(outputs)
        rows = _pulled_rows(pull_back, basis, output_spec, sum(counts), chunk_size, _preallocate_and_copy)
        inputs, input_spec = pytree.tree_flatten(_selected(args, positions))
        parts = [leaf.split(counts, 0) for leaf in pytree.tree_leaves(rows)]
        jacobian = output_spec.unflatten([
            input_spec.unflatten([parts[i][o].view((*out.shape, *inp.shape)) for i, inp in enumerate(inputs)])
            for o, out in enumerate(outputs)])
        return (jacobian, *aux) if has_aux else jacobian
    return call


def jacfwd(func, argnums: Any = 0, has_aux=False, *, randomness="error") -> Callable[..., Any]:
    """The Jacobian by forward mode: all elements of the arguments at once.

        >>> torch.func.jacfwd(lambda x: x * x)(torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    @same_name(func)
    def call(*args):
        positions = _checked_positions(argnums, len(args))
        primals = _selected(args, positions)
        inputs, input_spec = pytree.tree_flatten(primals)
        for leaf in inputs:
            if not isinstance(leaf, Tensor):
                raise RuntimeError(f"jacfwd: Expected all inputs to be Tensors, got unsupported type {type(leaf)}")
        _check_not_complex("jacfwd", "inputs", inputs)
        basis, counts = _basis(inputs)

        def push(*tangents):
            result = _jvp(func, args, primals, positions, input_spec.unflatten(list(tangents)), False, has_aux)
            _check_not_complex("jacfwd", "outputs", pytree.tree_leaves(result[0]))
            return (result[1], result[2]) if has_aux else result[1]
        columns = vmap(push, randomness=randomness, out_dims=(-1, None) if has_aux else -1)(*basis)
        columns, aux = columns if has_aux else (columns, None)
        outputs, output_spec = pytree.tree_flatten(columns)
        jacobian = output_spec.unflatten([
            input_spec.unflatten([part.reshape((*out.shape[:-1], *inp.shape)) for part, inp in zip(out.split(counts, -1), inputs)])
            for out in outputs])
        return (jacobian, aux) if has_aux else jacobian
    return call


def hessian(func, argnums: Any = 0) -> Callable[..., Any]:
    """Second derivatives: forward over reverse mode.

        >>> torch.func.hessian(lambda x: x[0] * x[1] ** 2)(torch.tensor([1.0, 2.0]))
        tensor([[0., 4.],
                [4., 2.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
