"""gradcheck and gradgradcheck: derivatives held against finite differences."""
import functools
import warnings

import umbra
from umbra._C import Tensor
from umbra.autograd import _gradcheck_sparse, forward_ad, grad
from umbra.autograd.function import Function


class GradcheckError(RuntimeError):
    """A derivative that is wrong, or not there."""


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0, check_undefined_grad=True,
              check_grad_dtypes=False, check_batched_grad=False, check_batched_forward_grad=False, check_forward_ad=False, check_backward_ad=True,
              fast_mode=False, masked=None):
    """True where the derivatives of `func` at the inputs that require gradients agree with finite differences; else an error, or False without
    `raise_exception`. `fast_mode` compares one random projection of each Jacobian instead of all of it. With `masked`, elements that a sparse
    input does not have have no gradient; else they are zeros like others."""
    if not check_forward_ad and not check_backward_ad:
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    check = functools.partial(_check, func, inputs, eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes, check_batched_grad,
                              check_batched_forward_grad, check_forward_ad, check_backward_ad, fast_mode, bool(masked))
    if raise_exception:
        check()
        return True
    try:
        check()
    except GradcheckError:
        return False
    return True


def gradgradcheck(func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3, gen_non_contig_grad_outputs=False, raise_exception=True,
                  nondet_tol=0.0, check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False, check_fwd_over_rev=False,
                  check_rev_over_rev=True, fast_mode=False, masked=False):
    """The same for the gradients of `func`, as functions of its inputs and of `grad_outputs`."""
    if not check_fwd_over_rev and not check_rev_over_rev:
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    if grad_outputs is None:
        outputs = _differentiable_outputs(func(*inputs))
        weights = tuple(umbra.randn_like(o, memory_format=umbra.contiguous_format) for o in outputs)
        if gen_non_contig_grad_outputs:
            weights = tuple(umbra.stack([w, w], -1).select(-1, 0) for w in weights)
        weights = tuple(w.detach().requires_grad_() for w in weights)
    else:
        weights = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)
    count, wanted_by = len(weights), set(_wanted(inputs))

    def gradients(*args):
        # Dual numbers come without the inputs' requires_grad.
        given = tuple(a.requires_grad_() if i in wanted_by else a for i, a in enumerate(args[:-count]))
        outputs = _differentiable_outputs(func(*given))
        wanted = tuple(a for a in given if isinstance(a, Tensor) and a.requires_grad)
        return tuple(g for g in grad(outputs, wanted, args[-count:], create_graph=True, allow_unused=True) if g is not None)
    return gradcheck(gradients, inputs + weights, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
                     check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
                     check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev, fast_mode=fast_mode, masked=masked)


def _check(func, inputs, eps, atol, rtol, nondet_tol, undefined, dtypes, batched, batched_forward, forward_mode, backward_mode, fast, masked):
    _check_inputs(inputs)
    outputs = _differentiable_outputs(func(*inputs))
    if any(_gradcheck_sparse.is_sparse(output) for output in outputs):
        raise ValueError("Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output of fn for gradcheck.")
    if not outputs:
        return _check_no_gradients(func, inputs, eps, atol, rtol)
    compared = inputs if masked else tuple(_gradcheck_sparse.with_all_elements(v) if _gradcheck_sparse.is_sparse(v) else v for v in inputs)
    numerical = _numerical_jacobians(func, compared, eps)
    close = functools.partial(umbra.allclose, rtol=rtol, atol=atol)
    for mode in ["backward"] * backward_mode + ["forward"] * forward_mode:
        jacobians = _analytical_jacobians(func, inputs, mode, dtypes)
        if mode == "backward" and nondet_tol is not None:
            _check_repeatable(jacobians, _analytical_jacobians(func, inputs, mode, False), nondet_tol)
        for j, by_input in enumerate(numerical):
            for i, expected in enumerate(by_input):
                _compare(jacobians[j][i], expected, i, j, mode, close, fast)
    if batched_forward:
        _check_batched_forward(func, inputs, close)
    if batched:
        _check_batched(func, inputs, close)
    if backward_mode:
        _check_zeros(func, inputs, masked)
    if undefined and backward_mode:
        _check_undefined(func, inputs)


def _wanted(inputs):
    return [i for i, value in enumerate(inputs) if isinstance(value, Tensor) and value.requires_grad]


def _check_inputs(inputs):
    if not _wanted(inputs):
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True.")
    for i in _wanted(inputs):
        value = inputs[i]
        if value.dtype not in (umbra.float64, umbra.complex128):
            warnings.warn(f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will likely fail if all the "
                          "inputs are not of double precision floating point or complex. ", stacklevel=5)
        memory = _gradcheck_sparse.elements(value) if _gradcheck_sparse.is_sparse(value) else value
        if any(stride == 0 and size > 1 for stride, size in zip(memory.stride(), memory.shape)):
            raise RuntimeError(f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able to "
                               "compute the numerical gradients correctly. You should call .contiguous on the input before passing it to gradcheck.")


def _as_tuple(result):
    return (result,) if isinstance(result, Tensor) else tuple(result) if isinstance(result, (tuple, list)) else (result,)


def _differentiable_outputs(result):
    return tuple(o for o in _as_tuple(result) if o.requires_grad)


def _check_no_gradients(func, inputs, eps, atol, rtol):
    """Results that require no gradients must not change with the inputs."""
    for j, by_input in enumerate(_numerical_jacobians(func, inputs, eps, all_outputs=True)):
        for jacobian in by_input:
            if not umbra.allclose(jacobian, umbra.zeros_like(jacobian), rtol=rtol, atol=atol):
                raise GradcheckError(f"Numerical gradient for function expected to be zero: output {j}")


def _values(func, inputs, all_outputs):
    outputs = _as_tuple(func(*inputs))
    chosen = [o for o in outputs if isinstance(o, Tensor) and (all_outputs or o.requires_grad)]
    return [o.detach().clone().reshape(-1) for o in chosen]


def _numerical_jacobians(func, inputs, eps, all_outputs=False):
    """By output and input: a matrix of (elements of the input, elements of the output)."""
    with umbra.enable_grad():
        base = _values(func, inputs, all_outputs)
    jacobians = [[] for _ in base]
    for i in _wanted(inputs):
        rows = [[] for _ in base]
        for row in _rows(func, inputs, i, eps, all_outputs):
            for j, part in enumerate(row):
                rows[j].append(part)
        for j, out in enumerate(base):
            jacobians[j].append(umbra.stack(rows[j]) if rows[j] else umbra.zeros(0, out.numel(), dtype=out.dtype))
    return jacobians


def _rows(func, inputs, i, eps, all_outputs):
    """For each element of an input: how the outputs change with it. Elements that a sparse input does not have change nothing."""
    if not _gradcheck_sparse.is_sparse(inputs[i]):
        return [_difference(func, inputs, i, k, eps, all_outputs) for k in range(inputs[i].numel())]
    found = {_gradcheck_sparse.place(inputs[i], k): _difference(func, inputs, i, k, eps, all_outputs)
             for k in range(_gradcheck_sparse.elements(inputs[i]).numel())}
    zeros = [umbra.zeros_like(part) for part in next(iter(found.values()))] if found else [
        umbra.zeros_like(umbra.stack([part, part]) if inputs[i].is_complex() else part) for part in _values(func, inputs, all_outputs)]
    return [found.get(k, zeros) for k in range(inputs[i].numel())]


def _difference(func, inputs, i, k, eps, all_outputs):
    """The change of every output with one element. Of a complex element what reverse mode gives: the conjugate derivative's half."""
    def step(delta):
        def moved(amount):
            if _gradcheck_sparse.is_sparse(inputs[i]):
                return _values(func, inputs[:i] + (_gradcheck_sparse.moved(inputs[i], k, amount),) + inputs[i + 1:], all_outputs)
            # Moved where it lies: the function may read it from elsewhere too.
            place = tuple(int(c) for c in umbra.unravel_index(umbra.tensor(k), tuple(inputs[i].shape)))
            data = inputs[i].data
            before = data[place].clone()
            data[place] += amount
            try:
                return _values(func, inputs, all_outputs)
            finally:
                data[place] = before
        above, below = moved(delta), moved(-delta)
        for name, kinds in (("shape", [(a.shape, b.shape) for a, b in zip(above, below)]), ("dtype", [(a.dtype, b.dtype) for a, b in zip(above, below)])):
            for one, other in kinds:
                if one != other:
                    raise AssertionError(f"Expected `func` to return outputs with the same {name} when inputs are perturbed on index {k} by {eps}, but got: "
                                         f"{name}s {one} and {other}.")
        return [(a - b) / (2 * eps) for a, b in zip(above, below)]
    if not inputs[i].is_complex():
        return step(eps)
    real, imaginary = step(eps), step(eps * 1j)
    return [umbra.stack([umbra.as_tensor(a), umbra.as_tensor(b)]) for a, b in zip(real, imaginary)]


def _analytical_jacobians(func, inputs, mode, check_dtypes):
    wanted = _wanted(inputs)
    outputs = _differentiable_outputs(func(*inputs))
    if mode == "forward" and all(inputs[i].numel() == 0 for i in wanted):
        return [[umbra.zeros(0, o.numel(), dtype=o.dtype) for _ in wanted] for o in outputs]
    if mode == "forward":
        return _forward_jacobians(func, inputs, wanted)
    jacobians = []
    for output in outputs:
        columns = [[] for _ in wanted]
        for weight in _unit_weights(output):
            found = grad(output, [inputs[i] for i in wanted], weight, retain_graph=True, allow_unused=True)
            for n, (i, gradient) in enumerate(zip(wanted, found)):
                columns[n].append(_gradient_column(inputs[i], gradient, check_dtypes))
        jacobians.append([_assemble(column, inputs[i], output) for i, column in zip(wanted, columns)])
    return jacobians


def _unit_weights(output):
    """One weight for each element; of a complex output one for each part."""
    for k in range(output.numel()):
        for unit in (1, 1j) if output.is_complex() else (1,):
            weight = umbra.zeros_like(output, memory_format=umbra.contiguous_format)
            weight.view(-1)[k] = unit
            yield weight


def _gradient_column(value, gradient, check_dtypes):
    if gradient is None:
        return umbra.zeros(value.numel(), dtype=value.dtype)
    if _gradcheck_sparse.is_sparse(gradient):
        _check_kind(gradient, value)
    if gradient.shape != value.shape:
        raise GradcheckError("grad is dense tensor, but has incorrect size")
    if check_dtypes and gradient.dtype != value.dtype:
        raise GradcheckError("Backward is not reentrant or gradient has another dtype: "
                             f"expected {value.dtype} but got {gradient.dtype}")
    return _strided(gradient).detach().reshape(-1)


def _strided(gradient):
    return gradient.to_dense() if _gradcheck_sparse.is_sparse(gradient) else gradient


def _assemble(column, value, output):
    """The matrix that finite differences would give, out of gradients for unit weights."""
    if not column:
        shape = (value.numel(), 2, 0) if value.is_complex() else (value.numel(), 0)
        return umbra.zeros(shape, dtype=output.dtype)
    table = umbra.stack(column, 1)  # (elements of the input, weights)
    if output.is_complex():
        # d Re(w* f): weight 1 gives the change of the real part, weight 1j that of the imaginary part.
        real, imaginary = table[:, 0::2], table[:, 1::2]
        if value.is_complex():
            return umbra.stack([umbra.complex(real.real, imaginary.real), umbra.complex(real.imag, imaginary.imag)], 1)
        return umbra.complex(real, imaginary)
    return umbra.stack([table.real, table.imag], 1) if value.is_complex() else table


def _forward_jacobians(func, inputs, wanted):
    """By forward mode: a tangent for each element of each input."""
    jacobians = None
    for n, i in enumerate(wanted):
        rows = []
        for tangent in _unit_weights(inputs[i]):
            with forward_ad.dual_level():
                args = [forward_ad.make_dual(v.detach(), tangent) if j == i else v.detach().requires_grad_(v.requires_grad) if isinstance(v, Tensor) else v
                        for j, v in enumerate(inputs)]
                outputs = _as_tuple(func(*args))
                duals = [forward_ad.unpack_dual(o) for o in outputs if o.is_floating_point() or o.is_complex()]
                rows.append([(umbra.zeros_like(d.primal) if d.tangent is None else d.tangent).detach().reshape(-1) for d in duals])
        if jacobians is None:
            jacobians = [[] for _ in rows[0]]
        for j, by_output in enumerate(jacobians):
            matrix = umbra.stack([row[j] for row in rows])
            by_output.append(matrix.reshape(-1, 2, matrix.shape[-1]) if inputs[i].is_complex() else matrix)
    return jacobians


def _compare(analytical, numerical, i, j, mode, close, fast):
    if numerical.numel() == 0:
        return
    analytical = analytical.to(numerical.dtype)
    kind = " computed with forward mode" if mode == "forward" else ""
    text = f"Jacobian{kind} mismatch for output {j} with respect to input {i},"
    if not numerical.is_complex():
        return _compare_part(analytical, numerical, text, close, fast)
    for part, name in (("imag", "imaginary"), ("real", "real")):
        prefix = f"While considering the {name} part of complex outputs only, "
        _compare_part(getattr(analytical, part), getattr(numerical, part), prefix + text, close, fast)


def _compare_part(analytical, numerical, text, close, fast):
    if fast and numerical.numel():
        weights = umbra.randn(numerical.shape, dtype=umbra.float64).to(numerical.dtype)
        weights = weights / weights.norm()
        analytical, numerical = (analytical * weights).sum(), (numerical * weights).sum()
    if not close(analytical, numerical):
        raise GradcheckError(f"{text}\nnumerical:{numerical}\nanalytical:{analytical}\n")


def _check_repeatable(first, second, tolerance):
    for a, b in zip(first, second):
        for x, y in zip(a, b):
            if x.numel() and (x - y).abs().max() > tolerance:
                raise GradcheckError("Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different "
                                     "values, although analytical gradient matches numerical gradient.The tolerance for nondeterminism was "
                                     f"{tolerance}.\n")


def _check_zeros(func, inputs, masked):
    """Gradients of nothing are nothing, of the inputs' kind."""
    outputs = _differentiable_outputs(func(*inputs))
    wanted = [inputs[i] for i in _wanted(inputs)]
    zeros = [umbra.zeros_like(o, memory_format=umbra.contiguous_format) for o in outputs]
    for gradient, value in zip(grad(outputs, wanted, zeros, allow_unused=True), wanted):
        if gradient is None:
            continue
        if _gradcheck_sparse.is_sparse(gradient):
            _check_kind(gradient, value)
            gradient, value = gradient.to_dense(), value.to_dense()
        is_nothing = umbra.allclose(gradient, umbra.zeros_like(gradient)) if masked else bool(gradient.eq(0).all())
        if not is_nothing:
            raise GradcheckError("backward not multiplied by grad_output")
        for name, same in (("type", gradient.dtype == value.dtype), ("device", gradient.device == value.device), ("size", gradient.shape == value.shape)):
            if not same:
                raise GradcheckError(f"grad is incorrect {name}")


def _check_kind(gradient, value):
    """A sparse gradient has its input's layout and dimensions."""
    if gradient.layout != value.layout:
        raise GradcheckError(f"grad is incorrect layout ({gradient.layout} is not {value.layout})")
    for name in ("sparse_dim", "dense_dim"):
        found, expected = getattr(gradient, name)(), getattr(value, name)()
        if found != expected:
            kind = str(gradient.layout).replace("torch.", "").replace("_coo", "")
            raise GradcheckError(f"grad is {kind} tensor, but has incorrect {name} {found}, expected {expected}")


class _Undefined(Function):
    """Hands no gradient on."""

    @staticmethod
    def forward(_, *values):
        return tuple(value.view_as(value) for value in values)

    @staticmethod
    def backward(_, *gradients):
        return (None,) * len(gradients)


def _check_undefined(func, inputs):
    """Where no gradient comes, none goes on."""
    outputs = _differentiable_outputs(func(*inputs))
    passed = _Undefined.apply(*outputs)
    try:
        found = grad(passed, [inputs[i] for i in _wanted(inputs)], [umbra.ones_like(o) for o in passed], allow_unused=True)
        handled = not any(gradient is not None and bool((_strided(gradient) != 0).any()) for gradient in found)
    except RuntimeError:
        handled = False
    if not handled:
        warnings.warn("Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break existing callers "
                      "of this function. If this is true for you, you can call this function with \"check_undefined_grad=False\" to disable the feature",
                      stacklevel=5)
        raise GradcheckError("Expected backward function to handle undefined output grads. Please look at \"Notes about undefined output gradients\" in "
                             "\"tools/autograd/derivatives.yaml\"")


_BATCHED = "gradcheck or gradgradcheck failed while testing batched gradient computation."


def _check_batched(func, inputs, close):
    wanted = [inputs[i] for i in _wanted(inputs)]
    for output in _differentiable_outputs(func(*inputs)):
        weights = umbra.stack([umbra.randn_like(output) for _ in range(2)])
        try:
            together = grad(output, wanted, weights, retain_graph=True, allow_unused=True, is_grads_batched=True)
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{_BATCHED}") from error
        apart = [grad(output, wanted, w, retain_graph=True, allow_unused=True) for w in weights]
        for n, gradient in enumerate(together):
            if gradient is not None and not close(gradient, umbra.stack([one[n] for one in apart])):
                raise GradcheckError(f"Batched gradients of input {n} differ from those computed one by one\n\n{_BATCHED}")


def _check_batched_forward(func, inputs, close):
    from umbra.func import jvp, vmap
    wanted = _wanted(inputs)

    def part(*values):
        args = list(inputs)
        for i, value in zip(wanted, values):
            args[i] = value
        return _as_tuple(func(*args))
    primals = tuple(inputs[i].detach() for i in wanted)
    tangents = tuple(umbra.stack([umbra.randn_like(p) for _ in range(2)]) for p in primals)
    together = vmap(lambda *t: jvp(part, primals, t)[1])(*tangents)
    for k in range(2):
        for a, b in zip(together, jvp(part, primals, tuple(t[k] for t in tangents))[1]):
            if not close(a[k], b):
                raise GradcheckError("Batched forward gradients differ from those computed one by one")
