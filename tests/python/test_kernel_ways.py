"""Sizes and layouts for which kernels take another way than for small ones: values against NumPy or what they are made of."""
import math

import numpy as np
import pytest
import umbra as torch
from umbra.nn import functional as F


def numbers(*shape, dtype=torch.float32, seed=0):
    generator = np.random.default_rng(seed)
    values = generator.standard_normal(shape)
    return torch.tensor(values + 1j * generator.standard_normal(shape) if dtype.is_complex else values, dtype=dtype)


@pytest.fixture(params=[1, 3], autouse=True)
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


# ---- Fourier transforms of rows: whole registers of them, and what is left ----

@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [2, 5, 16])
@pytest.mark.parametrize("rows", [16, 37])
def test_transforms_of_frames_that_overlap(rows, n, dtype):
    frames = numbers(3, 7 * rows + n, dtype=dtype).as_strided((3, rows, n), (7 * rows + n, 7, 1))
    dense = np.array(frames.tolist())
    half = torch.fft.rfft(frames)
    np.testing.assert_allclose(half.numpy(), np.fft.rfft(dense), atol=1e-4)
    np.testing.assert_allclose(torch.fft.irfft(half, n).numpy(), dense, atol=1e-5)
    np.testing.assert_allclose(torch.fft.fft(torch.complex(frames, frames)).numpy(), np.fft.fft(dense + 1j * dense), atol=1e-4)


def test_transforms_along_several_dimensions_leave_no_row_out():
    x = numbers(37, 19, 6, dtype=torch.complex128)
    np.testing.assert_allclose(torch.fft.fftn(x).numpy(), np.fft.fftn(x.numpy()), atol=1e-9)


# ---- factorisations by blocks ----

@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128])
@pytest.mark.parametrize("shape", [(300, 300), (300, 70), (70, 300), (5, 40, 33), (800, 50)])
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr_of_several_blocks(shape, dtype, mode):
    a = numbers(*shape, dtype=dtype)
    q, r = torch.linalg.qr(a, mode=mode)
    identity = torch.eye(q.shape[-1], dtype=dtype).expand(q.shape[:-2] + (-1, -1))
    assert torch.allclose(q @ r, a, atol=1e-3)
    assert torch.allclose(q.mH @ q, identity, atol=1e-4)
    assert torch.equal(r, r.triu())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
@pytest.mark.parametrize("n", [131, 300])
def test_systems_whose_columns_threads_share(n, dtype):
    a, b = numbers(n, n, dtype=dtype) + 2 * n ** 0.5 * torch.eye(n, dtype=dtype), numbers(n, n + 70, dtype=dtype, seed=1)
    assert torch.allclose(torch.linalg.inv(a) @ a, torch.eye(n, dtype=dtype), atol=1e-3)
    assert torch.allclose(a @ torch.linalg.solve(a, b), b, atol=1e-3)
    p, l, u = torch.linalg.lu(torch.cat([a, b], 1))
    assert torch.allclose(p @ l @ u, torch.cat([a, b], 1), atol=1e-3)
    b[:, -1] = math.inf
    for upper in (False, True):
        triangle = a.triu() if upper else a.tril()
        x = torch.linalg.solve_triangular(triangle, b, upper=upper)
        assert torch.allclose((triangle @ x)[:, :-1], b[:, :-1], atol=1e-3) and not x[:, -1].isfinite().any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("sizes", [(200, 190, 210), (3, 500, 1500), (130, 200, 1100), (1100, 200, 3), (640, 650, 660)])
@pytest.mark.parametrize("turned", [False, True])
def test_products_whose_rows_threads_share(sizes, dtype, turned):
    m, k, n = sizes
    a, b = numbers(m, k, dtype=dtype) / k ** 0.5, numbers(k, n, dtype=dtype, seed=1)
    wanted = a.double().numpy() @ b.double().numpy()
    a, b = (t.t().contiguous().t() if turned else t for t in (a, b))
    np.testing.assert_allclose((a @ b).double().numpy(), wanted, atol=0.03 if dtype is torch.bfloat16 else 1e-4)


@pytest.mark.parametrize("count", [0, 1, 16, 17, 40])
def test_a_product_of_fewer_reflectors_than_columns(count):
    reflectors, tau = torch.geqrf(numbers(60, 40, dtype=torch.float64))
    tau = tau[:count].contiguous()
    wanted = torch.eye(60, dtype=torch.float64)
    for k in range(count):
        v = torch.cat([torch.zeros(k, dtype=torch.float64), torch.ones(1, dtype=torch.float64), reflectors[k + 1:, k]])
        wanted = wanted @ (torch.eye(60, dtype=torch.float64) - tau[k] * torch.outer(v, v))
    assert torch.allclose(torch.linalg.householder_product(reflectors, tau), wanted[:, :40])


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9, 55, 64, 65])
@pytest.mark.parametrize("zero_diagonal", [False, True])
def test_symmetric_factors_solve_what_the_matrix_does(n, zero_diagonal):
    a = numbers(4, n, n, dtype=torch.float64)
    a = a + a.mT
    if zero_diagonal and n > 1:  # needs blocks of two
        a = a - torch.diag_embed(a.diagonal(dim1=-2, dim2=-1))
    factor, pivots, info = torch.linalg.ldl_factor_ex(a)
    assert not info.any() and torch.equal(factor, factor.tril())
    assert bool((pivots < 0).any()) or not zero_diagonal or n == 1
    b = numbers(4, n, 2, dtype=torch.float64, seed=1)
    if n > 3 or not zero_diagonal:  # of an odd size below that it may have no inverse
        assert torch.allclose(a @ torch.linalg.ldl_solve(factor, pivots, b), b, atol=1e-6)


def test_the_first_pivot_that_is_zero_is_named():
    a = torch.diag(torch.tensor([2.0, 0.0, 3.0, 0.0]))
    factor, pivots, info = torch.linalg.ldl_factor_ex(a)
    assert (info.item(), pivots.tolist()) == (2, [1, 2, 3, 4]) and torch.equal(factor.diagonal(), a.diagonal())


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("n", [1, 31, 33, 100])
@pytest.mark.parametrize("upper", [False, True])
def test_the_inverse_of_what_cholesky_factored(n, upper, dtype):
    a = numbers(2, n, n, dtype=dtype)
    a = a @ a.mH + n * torch.eye(n, dtype=dtype)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(a, upper=upper), upper=upper)
    assert torch.allclose(inverse @ a, torch.eye(n, dtype=dtype).expand(2, n, n), atol=1e-9)


# ---- rows and planes ----

@pytest.mark.parametrize("shape", [(6, 5, 7), (40, 40, 40), (3, 5, 7), (9, 4, 3, 5), (80, 3)])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_of_short_planes(shape, training):
    x, weight, bias = numbers(*shape).double(), numbers(shape[1], seed=1).double(), numbers(shape[1], seed=2).double()
    mean, variance = numbers(shape[1], seed=3).double(), numbers(shape[1], seed=4).double().abs() + 0.5
    g = numbers(*shape, seed=5).double()
    inputs = [t.requires_grad_() for t in (x, weight, bias)]
    y = F.batch_norm(x, mean.clone(), variance.clone(), weight, bias, training=training)
    others = [d for d in range(x.dim()) if d != 1]
    middle, spread = (x.mean(others, keepdim=True), x.var(others, unbiased=False, keepdim=True)) if training else (
        t.view([-1 if d == 1 else 1 for d in range(x.dim())]) for t in (mean, variance))
    by_channel = [t.view([-1 if d == 1 else 1 for d in range(x.dim())]) for t in (weight, bias)]
    wanted = (x - middle) / (spread + 1e-5).sqrt() * by_channel[0] + by_channel[1]
    assert torch.allclose(y, wanted)
    for ours, theirs in zip(torch.autograd.grad(y, inputs, g), torch.autograd.grad(wanted, inputs, g)):
        assert torch.allclose(ours, theirs)


@pytest.mark.parametrize("rows, columns", [(210, 315), (64, 3), (13, 7), (8, 1000), (2, 5)])
def test_a_row_or_column_broadcast_over_short_rows(rows, columns):
    flags, bytes_ = numbers(rows, columns) > 0, torch.arange(columns).remainder(7).to(torch.int8)
    spread = bytes_.expand(rows, columns).contiguous()
    assert torch.equal(flags << bytes_, flags.to(torch.int8) << spread)
    assert torch.equal(bytes_ | flags, spread | flags.to(torch.int8))
    x, row, column = numbers(rows, columns), numbers(columns, seed=1), numbers(rows, 1, seed=2)
    assert torch.equal(x * row, x * row.expand(rows, columns).contiguous())
    assert torch.equal(x - row.double(), x.double() - row.double().expand(rows, columns).contiguous())
    assert torch.equal(column + x.double(), column.double().expand(rows, columns).contiguous() + x.double())


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_kernel_as_large_as_the_image(batch, groups):
    x, weight, bias = numbers(batch, 40, 30), numbers(50, 40 // groups, 30, seed=1), numbers(50, seed=2)
    parts = [x[:, 40 // groups * k:40 // groups * (k + 1)].reshape(batch, -1) @ w.reshape(50 // groups, -1).T
             for k, w in enumerate(weight.chunk(groups))]
    wanted = torch.cat(parts, 1) + bias
    assert torch.allclose(F.conv1d(x, weight, bias, groups=groups)[:, :, 0], wanted, atol=1e-3)
    assert torch.allclose(F.conv2d(x[:, :, None], weight[:, :, None], bias, stride=3, groups=groups)[:, :, 0, 0], wanted, atol=1e-3)


# ---- joining ----

@pytest.mark.parametrize("lengths", [(1 << 20, 3), (5, 1 << 19, 1, 77777), (100000,)])
@pytest.mark.parametrize("rows", [1, 3])
def test_joined_tensors_of_uneven_lengths(lengths, rows):
    parts = [torch.arange(rows * n, dtype=torch.int32).reshape(rows, n) + 7 * n for n in lengths]
    np.testing.assert_array_equal(torch.cat(parts, 1).numpy(), np.concatenate([p.numpy() for p in parts], 1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_complex_numbers_of_parts_that_broadcast(dtype):
    real, imaginary = numbers(5, 1, 33, dtype=dtype), numbers(33, 4, dtype=dtype, seed=1).T
    joined = torch.complex(real, imaginary)
    assert joined.shape == (5, 4, 33)
    assert torch.equal(torch.view_as_real(joined)[..., 0], real.expand(5, 4, 33)) and torch.equal(torch.view_as_real(joined)[..., 1], imaginary.expand(5, 4, 33))


def test_a_sum_that_is_positive_or_nothing():
    inf, nan, largest = float("inf"), float("nan"), torch.finfo(torch.float32).max
    x = torch.tensor([1.0, -3.0, nan, inf, -inf, 0.0])
    assert torch.ops.aten._add_relu.Tensor(x, x).tolist() == [2.0, 0.0, 0.0, largest, 0.0, 0.0]
    whole = torch.tensor([5, -7, 100], dtype=torch.int8)
    assert torch.ops.aten._add_relu.Tensor(whole, whole, alpha=-1).tolist() == [0, 0, 0]
    assert torch.ops.aten._add_relu.Scalar(whole, 300.5).tolist() == [127.0, 127.0, 127.0]


def test_a_positive_sum_may_be_written_to_what_it_is_made_of():
    add_relu = torch.ops.aten._add_relu
    x, y = numbers(40, 30), numbers(40, 30, seed=1)
    wanted = (x + 2 * y).clamp(min=0)
    assert torch.equal(add_relu.Tensor(x, y, alpha=2), wanted)
    assert torch.equal(add_relu.Tensor(x, y[:, :1].expand(40, 30), alpha=2), (x + 2 * y[:, :1]).clamp(min=0))
    for out in (x.clone(), torch.empty(30, 40).T, torch.empty(40, 60)[:, ::2]):
        assert torch.equal(add_relu.out(x, y, alpha=2, out=out), wanted)
    changed = y.clone()
    assert torch.equal(add_relu.out(x, changed, alpha=2, out=changed), wanted) and torch.equal(changed, wanted)
    assert torch.equal(torch.ops.aten._add_relu_.Tensor(x, y, alpha=2), wanted) and torch.equal(x, wanted)


# ---- selecting ----

@pytest.mark.parametrize("wanted", [1, 10, 16, 17, 60])
@pytest.mark.parametrize("n", [96, 128, 255, 300, 700])
@pytest.mark.parametrize("kind", ["random", "ascending", "descending", "nan", "double"])
def test_the_largest_of_middle_lines(n, wanted, kind):
    x = np.random.default_rng(n + wanted).standard_normal((9, n)).astype("float64" if kind == "double" else "float32")
    if kind in ("ascending", "descending"):
        x = np.sort(x, 1) if kind == "ascending" else -np.sort(x, 1)
    if kind == "nan":  # one in each line: it comes first
        x[:, 7] = np.nan
    for largest in (True, False):
        values, places = torch.tensor(x).topk(wanted, 1, largest)
        order = np.argsort(np.nan_to_num(x, nan=np.inf) * (-1 if largest else 1), 1, kind="stable")[:, :wanted]
        assert (places.numpy() == order).all()
        assert np.array_equal(values.numpy(), np.take_along_axis(x, order, 1), equal_nan=True)


def test_of_equal_elements_as_many_as_are_wanted():
    for n in (96, 256, 640):
        x = np.random.default_rng(n).integers(0, 12, (40, n)).astype("float32")
        values, places = torch.tensor(x).topk(11, 1)
        assert (values.numpy() == -np.sort(-x, 1)[:, :11]).all()
        assert (np.take_along_axis(x, places.numpy(), 1) == values.numpy()).all()
        assert all(len(set(row)) == 11 for row in places.tolist())


# ---- what threads share ----

@pytest.mark.parametrize("shape, dim", [((300, 512), 0), ((3, 200, 130), 1), ((1, 64, 2, 128), 1)])
@pytest.mark.parametrize("alpha", [1, 2])
def test_rows_that_several_threads_add_to(shape, dim, alpha):
    r = np.random.default_rng(3)
    x, added, index = r.standard_normal(shape), r.standard_normal(shape), r.integers(0, 5, shape[dim])
    expected = np.moveaxis(x.copy(), dim, 0)
    for k, row in zip(index, np.moveaxis(added, dim, 0)):  # in this order, whoever adds
        expected[k] += alpha * row
    result = torch.tensor(x).index_add_(dim, torch.tensor(index), torch.tensor(added), alpha=alpha)
    assert np.array_equal(result.numpy(), np.moveaxis(expected, 0, dim))
    strided = torch.tensor(np.ascontiguousarray(x.swapaxes(0, -1))).transpose(0, -1)
    assert np.array_equal(strided.index_add_(dim, torch.tensor(index), torch.tensor(added), alpha=alpha).numpy(), result.numpy())


@pytest.mark.parametrize("rows", [15, 16, 32, 48, 64])
@pytest.mark.parametrize("columns, inner", [(1024, 256), (200, 300), (193, 65)])
def test_few_rows_by_a_weight(rows, columns, inner):
    r = np.random.default_rng(rows)
    x, w, b = r.standard_normal((rows, inner)), r.standard_normal((columns, inner)), r.standard_normal(columns)
    of = lambda array: torch.tensor(array.astype("float32"))
    expected = x.astype("float32").astype("float64") @ w.astype("float32").astype("float64").T
    close = lambda result, value: np.abs(result.numpy() - value).max() < 1e-4
    assert close(of(x) @ of(w).t(), expected)
    assert close(F.linear(of(x), of(w), of(b)), expected + b.astype("float32"))
    assert close(torch.addmm(of(b), of(x), of(w).t(), alpha=2), 2 * expected + b.astype("float32"))
    wide = torch.zeros(rows, columns + 5)
    torch.mm(of(x), of(w).t(), out=wide[:, 2:-3])
    assert close(wide[:, 2:-3], expected) and not wide[:, :2].any() and not wide[:, -3:].any()


@pytest.mark.parametrize("n", [3, 50, 130])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("triangle", ["L", "U"])
def test_eigenvectors_that_several_threads_turn(n, dtype, triangle):
    r = np.random.default_rng(n)
    a = r.standard_normal((n, n)) + (1j * r.standard_normal((n, n)) if dtype == "complex128" else 0)
    a = (a + a.conj().T).astype(dtype)
    for scale in (1, 0, 1e-30):
        if scale == 1e-30 and dtype == "float32":
            scale = 1e-36
        values, vectors = torch.linalg.eigh(torch.tensor(a * np.array(scale, dtype=dtype)), UPLO=triangle)
        tolerance = (1e-3 if dtype == "float32" else 1e-9) * max(scale, 1e-300)
        assert np.abs(values.numpy() - np.linalg.eigvalsh((a * scale).astype("complex128"))).max() <= tolerance
        v = vectors.numpy()
        assert np.abs(v.conj().T @ v - np.eye(n)).max() < 1e-4
        assert np.abs((a * np.array(scale, dtype=dtype)) @ v - v * values.numpy()).max() <= tolerance


# ---- gates ----

@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_the_gradient_of_a_gate(dim, dtype):
    r = np.random.default_rng(0)
    x, g = r.standard_normal((4, 6, 8)), r.standard_normal((4, 6, 8))
    g = g.take(range(g.shape[dim] // 2), dim)
    of = lambda array: torch.tensor(array).to(getattr(torch, dtype))
    first, gate = (of(x).double().numpy().take(part, dim) for part in (range(x.shape[dim] // 2), range(x.shape[dim] // 2, x.shape[dim])))
    s = 1 / (1 + np.exp(-gate))
    grad = of(g).double().numpy()
    expected = np.concatenate([grad * s, grad * first * s * (1 - s)], dim)
    turned = of(x.swapaxes(0, 2)).transpose(0, 2)  # lies otherwise
    for given in (of(x), turned):
        result = torch.ops.aten.glu_backward(of(g), given, dim)
        assert result.dtype == given.dtype and np.abs(result.double().numpy() - expected).max() < (0.05 if dtype == "bfloat16" else 1e-5)


# ---- softmax of short rows: several at once ----

@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("n", [1, 3, 8, 16, 17, 40, 64, 65])
def test_softmaxes_of_short_rows(n, dtype):
    x = (numbers(37, n + 5, dtype=dtype) * 9)[:, 2:n + 2]
    x[4, 0], x[30, n // 2], x[36] = math.nan, -math.inf, -math.inf
    wide = x.double().numpy()
    with np.errstate(all="ignore"):
        powers = np.exp(wide - wide.max(1, keepdims=True))
        wanted = powers / powers.sum(1, keepdims=True)
        logs = np.log(wanted)
    error = 1e-2 if dtype is torch.bfloat16 else 1e-5
    np.testing.assert_allclose(torch.softmax(x, 1).double().numpy(), wanted, atol=error)
    np.testing.assert_allclose(torch.log_softmax(x, 1).double().numpy(), logs, rtol=error, atol=error)
    torch.log_softmax(x, 1, out=x)
    np.testing.assert_allclose(x.double().numpy(), logs, rtol=error, atol=error)
