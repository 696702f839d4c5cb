"""Products with Jacobians and Hessians of functions, by the ordinary tape; umbra.func has the transforms."""
import umbra
from umbra._C import Tensor
from umbra.autograd import enable_grad
from umbra.autograd import grad as _grad

__all__ = ["vjp", "jvp", "jacobian", "hessian", "hvp", "vhp"]


# ---- arguments and results ----

def _as_tuple(value, what, function):
    """The tensors as a tuple, and whether they came as one."""
    is_tuple = isinstance(value, tuple)
    items = value if is_tuple else (value,)
    for i, item in enumerate(items):
        if not isinstance(item, Tensor):
            where = f"The value at index {i} of the {what}" if is_tuple else f"The {what}"
            raise TypeError(f"{where} given to {function} must be either a Tensor or a tuple of Tensors but got {type(item)}.")
    return items, is_tuple


def _inputs(inputs, create_graph, function):
    items, is_tuple = _as_tuple(inputs, "inputs", function)
    if create_graph:
        return tuple(t.view_as(t) if t.requires_grad else t.detach().requires_grad_() for t in items), is_tuple
    return tuple(t.detach().requires_grad_() for t in items), is_tuple


def _shaped(items, is_tuple):
    return tuple(items) if is_tuple else items[0]


def _finished(items, create_graph):
    return tuple(t if create_graph else t.detach() for t in items)


def _vector(v, like, name, function):
    """The vector that a product is with; ones for a single number."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            source = "user-provided function returns" if function == "vjp" else "input to the user-provided function is"
            raise RuntimeError(f"The vector v can only be None if the {source} a single Tensor with a single element.")
        return tuple(umbra.ones_like(t) for t in like)
    items, _ = _as_tuple(v, name, function)
    if len(items) != len(like):
        raise RuntimeError(f"The number of tensors in {name} ({len(items)}) does not match ({len(like)})")
    for i, (item, other) in enumerate(zip(items, like)):
        if item.shape != other.shape:
            raise RuntimeError(f"Entry {i} in {name} has invalid size: should be {other.shape} but got {item.shape}.")
    return items


def _check_strict(strict, outputs, what):
    for i, t in enumerate(outputs):
        if strict and not t.requires_grad:
            raise RuntimeError(f"Output {i} of the user-provided function {what} does not require gradients. The outputs must be computed in a "
                               "differentiable manner from the input when running in strict mode.")


def _gradients(outputs, inputs, vector, create_graph, strict, retain_graph=None):
    """Gradients of the outputs that have a history; zeros for inputs that took no part, which `strict` refuses."""
    used = [(o, w) for o, w in zip(outputs, vector) if o.requires_grad]
    found = (None,) * len(inputs)
    if used:
        roots, weights = zip(*used)
        found = _grad(roots, inputs, weights, allow_unused=True, create_graph=create_graph, retain_graph=retain_graph)
    if strict and any(g is None for g in found):
        i = next(i for i, g in enumerate(found) if g is None)
        raise RuntimeError(f"The output of the user-provided function is independent of input {i}. This is not allowed in strict mode.")
    return tuple(umbra.zeros_like(t) if g is None else g for g, t in zip(found, inputs))


# ---- products ----

def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """`func(*inputs)`, and `v` times its Jacobian."""
    with enable_grad():
        given, is_tuple = _inputs(inputs, create_graph, "vjp")
        outputs, many = _as_tuple(func(*given), "outputs of the user-provided function", "vjp")
        _check_strict(strict, outputs, "vjp")
        found = _gradients(outputs, given, _vector(v, outputs, "v", "vjp"), create_graph, strict)
    return _shaped(_finished(outputs, create_graph), many), _shaped(_finished(found, create_graph), is_tuple)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """`func(*inputs)`, and its Jacobian times `v`: reverse mode, twice."""
    with enable_grad():
        given, is_tuple = _inputs(inputs, create_graph, "jvp")
        along = _vector(v, given, "v", "jvp")
        outputs, many = _as_tuple(func(*given), "outputs of the user-provided function", "jvp")
        _check_strict(strict, outputs, "jvp")
        weights = tuple(umbra.zeros_like(o).requires_grad_() for o in outputs)
        pulled = _gradients(outputs, given, weights, True, strict)
        found = _gradients(pulled, weights, along, create_graph, strict)
    return _shaped(_finished(outputs, create_graph), many), _shaped(_finished(found, create_graph), many)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """The Jacobian: a tensor of the output's sizes and then the input's, for each pair of them."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than inputs, '
                             '"forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".')
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError('torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported '
                                      "together (yet). Please either set `create_graph=False` or `strategy=\"reverse-mode\"`.")
        if strict:
            raise RuntimeError('torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported together (yet).')
        if not vectorize:
            raise NotImplementedError("Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for `vectorize=True`.")
    with enable_grad():
        given, is_tuple = _inputs(inputs, create_graph, "jacobian")
        outputs, many = _as_tuple(func(*given), "outputs of the user-provided function", "jacobian")
        _check_strict(strict, outputs, "jacobian")
        rows = [_rows(outputs, i, given, create_graph, strict) for i in range(len(outputs))]
    blocks = [tuple(_finished(row, create_graph)) for row in rows]
    return _shaped([_shaped(row, is_tuple) for row in blocks], many)


def _rows(outputs, which, inputs, create_graph, strict):
    """The Jacobian of one output with respect to each input."""
    output = outputs[which]
    parts = [[] for _ in inputs]
    for k in range(output.numel()):
        found = _gradients((output.reshape(-1)[k],), inputs, (umbra.ones((), dtype=output.dtype, device=output.device),), create_graph, strict,
                           retain_graph=True)
        for part, g in zip(parts, found):
            part.append(g)
    return [umbra.stack(part).reshape(*output.shape, *t.shape) if part else t.new_zeros(*output.shape, *t.shape) for part, t in zip(parts, inputs)]


def _check_scalar(outputs, many, function):
    if many:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The second derivatives of a function with a single element, for each pair of inputs."""
    is_tuple = isinstance(inputs, tuple)

    def scalar(*given):
        outputs, many = _as_tuple(func(*given), "outputs of the user-provided function", "hessian")
        _check_scalar(outputs, many, "hessian")
        return outputs[0].reshape(())

    def first(*given):
        tracked = tuple(t if t.requires_grad else t.detach().requires_grad_() for t in given)
        result = jacobian(scalar, tracked, create_graph=True, strict=strict)
        return tuple(result)
    second = jacobian(first, inputs, create_graph=create_graph, strict=strict, vectorize=vectorize, strategy=outer_jacobian_strategy)
    return second if is_tuple else second[0]


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """`func(*inputs)`, and `v` times its Hessian."""
    with enable_grad():
        given, is_tuple = _inputs(inputs, create_graph, "vhp")
        vector = _vector(v, given, "v", "vhp")
        outputs, many = _as_tuple(func(*given), "outputs of the user-provided function", "vhp")
        _check_scalar(outputs, many, "vhp")
        first = _gradients((outputs[0].reshape(()),), given, (umbra.ones_like(outputs[0].reshape(())),), True, strict)
        found = _gradients(first, given, vector, create_graph, strict)
    return _finished(outputs, create_graph)[0], _shaped(_finished(found, create_graph), is_tuple)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """`func(*inputs)`, and its Hessian times `v`."""
    with enable_grad():
        given, is_tuple = _inputs(inputs, create_graph, "hvp")
        vector = _vector(v, given, "v", "hvp")
        outputs, many = _as_tuple(func(*given), "outputs of the user-provided function", "hvp")
        _check_scalar(outputs, many, "hvp")
        first = _gradients((outputs[0].reshape(()),), given, (umbra.ones_like(outputs[0].reshape(())),), True, strict)
        weights = tuple(umbra.zeros_like(g).requires_grad_() for g in first)
        pulled = _gradients(first, given, weights, True, strict)
        found = _gradients(pulled, weights, vector, create_graph, strict)
    return _finished(outputs, create_graph)[0], _shaped(_finished(found, create_graph), is_tuple)
