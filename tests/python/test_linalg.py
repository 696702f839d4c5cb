"""Linear algebra: values against NumPy, layouts as LAPACK leaves them, derivatives against differences, errors by their class."""
import math

import numpy as np
import pytest
import umbra as torch
from umbra._subclasses.fake_tensor import FakeTensorMode

L = torch.linalg


def randn(*shape, dtype=torch.float64, seed=0):
    generator = np.random.default_rng(seed)
    values = generator.standard_normal(shape)
    if dtype.is_complex:
        values = values + 1j * generator.standard_normal(shape)
    return torch.tensor(values, dtype=dtype)


def positive(*batch, n, dtype=torch.float64):
    a = randn(*batch, n, n, dtype=dtype)
    return a @ a.mH + n * torch.eye(n, dtype=dtype)


DTYPES = [torch.float64, torch.complex128]


def close(a, b, tolerance=1e-9):
    return torch.allclose(a, b, rtol=tolerance, atol=tolerance)


# ---- values ----

@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (3,), (2, 0), (2, 3)])
def test_factors_give_the_matrix_back(dtype, batch):
    a = randn(*batch, 4, 4, dtype=dtype)
    q, r = L.qr(a)
    assert close(q @ r, a)
    p, l, u = L.lu(a)
    assert close(p @ l @ u, a)
    u, s, vh = L.svd(a)
    assert close((u * s.unsqueeze(-2)) @ vh, a)
    values, v = L.eig(a)
    assert close(v @ (values.unsqueeze(-1) * L.inv(v)), a.to(values.dtype), 1e-7)
    h = positive(*batch, n=4, dtype=dtype)
    l = L.cholesky(h)
    assert close(l @ l.mH, h)
    values, v = L.eigh(h)
    assert close((v * values.unsqueeze(-2)) @ v.mH, h)
    u, h = L.polar(a)
    assert close(u @ h, a)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [True, False])
def test_solutions_solve(dtype, left):
    a, b = randn(3, 4, 4, dtype=dtype), randn(4, 4, dtype=dtype, seed=1)
    check = (lambda x, m=a: m @ x) if left else (lambda x, m=a: x @ m)
    assert close(check(L.solve(a, b, left=left)), b.expand(3, 4, 4))
    lu, pivots = L.lu_factor(a)
    assert close(check(L.lu_solve(lu, pivots, b, left=left)), b.expand(3, 4, 4))
    assert close(check(L.lu_solve(lu, pivots, b, left=left, adjoint=True), a.mH), b.expand(3, 4, 4))
    triangle = a.triu()
    assert close(check(L.solve_triangular(triangle, b, upper=True, left=left), triangle), b.expand(3, 4, 4))


def test_a_vector_is_told_from_a_matrix_by_the_batch():
    a = randn(2, 3, 3)
    assert L.solve(a, randn(2, 3)).shape == (2, 3)
    assert L.solve(a, randn(3, 2)).shape == (2, 3, 2)
    assert L.solve(a[0], randn(3)).shape == (3,)


@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf])
def test_matrix_norms_are_numpys(order):
    a = randn(2, 4, 3)
    expected = np.linalg.norm(a.numpy(), order, axis=(1, 2))
    np.testing.assert_allclose(L.matrix_norm(a, order).numpy(), expected, rtol=1e-10)
    assert L.matrix_norm(a, order, keepdim=True).shape == (2, 1, 1)
    assert L.matrix_norm(a, order, dim=(2, 0)).shape == (4,)


def test_exponentials_of_large_matrices():
    a = randn(3, 3) * 20
    values, v = np.linalg.eig(a.numpy())
    expected = (v * np.exp(values)) @ np.linalg.inv(v)
    np.testing.assert_allclose(L.matrix_exp(a).numpy(), expected.real, rtol=1e-8, atol=1e-8 * abs(expected).max())
    assert L.matrix_exp(torch.tensor([[float("nan")]])).isnan().all()


def test_pseudo_inverse_and_rank():
    a = randn(5, 2) @ randn(2, 4, seed=1)
    np.testing.assert_allclose(L.pinv(a).numpy(), np.linalg.pinv(a.numpy()), atol=1e-10)
    assert L.matrix_rank(a).item() == 2
    assert L.matrix_rank(a, atol=1e6).item() == 0


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_least_squares(driver):
    a, b = randn(2, 5, 3), randn(2, 5, 2, seed=1)
    result = L.lstsq(a, b, driver=driver)
    for i in range(2):
        np.testing.assert_allclose(result.solution[i].numpy(), np.linalg.lstsq(a[i].numpy(), b[i].numpy(), rcond=None)[0], atol=1e-10)
    assert result.residuals.shape == ((0,) if driver == "gelsy" else (2, 2))
    assert result.rank.shape == ((0,) if driver == "gels" else (2,))
    assert result.singular_values.shape == ((2, 3) if driver in ("gelsd", "gelss") else (0,))


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, math.inf])
def test_distances(p):
    x, y = randn(2, 30, 3), randn(5, 3, seed=1)
    difference = (x.unsqueeze(-2) - y).abs()
    expected = L.vector_norm(difference, p, dim=-1)
    assert close(torch.cdist(x, y, p), expected)
    assert close(torch.cdist(x, y, p, compute_mode="donot_use_mm_for_euclid_dist"), expected)
    rows, columns = torch.triu_indices(30, 30, 1)
    assert close(torch.pdist(x[0], p), torch.cdist(x[0], x[0], p, compute_mode="donot_use_mm_for_euclid_dist")[rows, columns])


# ---- layouts ----

def layouts(a, b):
    return {
        "inv": L.inv(a), "solve": L.solve(a, b), "solve_left": L.solve(a, b.mT, left=False), "cholesky": L.cholesky(a @ a.mH + 9 * torch.eye(3)),
        "lu_factor": L.lu_factor(a)[0], "lu": L.lu(a)[1], "q": L.qr(a)[0], "r": L.qr(b)[1], "eigh": L.eigh(a)[1], "svd": L.svd(b)[0],
        "vh": L.svd(b)[2], "triangular": L.solve_triangular(a, b, upper=True), "exp": L.matrix_exp(a), "pinv": L.pinv(b),
    }


def test_results_lie_as_lapack_leaves_them_with_data_and_without():
    a, b = randn(2, 3, 3, dtype=torch.float32), randn(2, 3, 4, dtype=torch.float32)
    real = layouts(a, b)
    by_columns = {"inv", "solve", "cholesky", "lu_factor", "q", "r", "eigh", "svd", "vh", "triangular"}
    for name, t in real.items():
        assert t.mT.is_contiguous() == (name in by_columns), name
    with FakeTensorMode() as mode:
        fake = layouts(mode.from_tensor(a), mode.from_tensor(b))
    for name, t in real.items():
        assert fake[name].stride() == t.stride() and fake[name].shape == t.shape, name


# ---- derivatives ----

def invariant(*tensors):
    """What does not change with the phases of vectors."""
    return sum((t.abs() ** 2 * torch.arange(1, t.numel() + 1, dtype=torch.float64).reshape(t.shape)).sum() for t in tensors)


FUNCTIONS = {
    "inv": lambda a: L.inv(a),
    "solve": lambda a: L.solve(a, a.mT @ a),
    "solve_right": lambda a: L.solve(a, a + 1, left=False),
    "det": lambda a: L.det(a),
    "slogdet": lambda a: L.slogdet(a).logabsdet,
    "cholesky": lambda a: L.cholesky(a @ a.mH + 3 * torch.eye(3, dtype=a.dtype)),
    "lu": lambda a: L.lu(a)[1] + L.lu(a)[2],
    "lu_wide": lambda a: L.lu(a[:2])[2],
    "lu_tall": lambda a: L.lu(a[:, :2])[1],
    "lu_solve": lambda a: L.lu_solve(*L.lu_factor(a), a + 2),
    "qr": lambda a: L.qr(a)[0] + L.qr(a)[1],
    "qr_wide": lambda a: L.qr(a[:2])[1],
    "qr_tall": lambda a: L.qr(a[:, :2])[0],
    "eigh": lambda a: L.eigh(a + a.mH)[0],
    "eigh_vectors": lambda a: invariant(L.eigh(a + a.mH)[1]),
    "eigvals": lambda a: L.eigvals(a).abs().sum(),
    "eig": lambda a: invariant(*L.eig(a)),
    "svdvals": lambda a: L.svdvals(a[:2]),
    "svd": lambda a: invariant(*L.svd(a[:2], full_matrices=False)),
    "svd_tall": lambda a: invariant(*L.svd(a[:, :2], full_matrices=False)),
    "pinv": lambda a: L.pinv(a[:2]),
    "matrix_exp": lambda a: L.matrix_exp(a),
    "triangular": lambda a: L.solve_triangular(a + 3 * torch.eye(3, dtype=a.dtype), a, upper=False),
    "householder": lambda a: L.householder_product(a, a[0] * 0.3),
    "ormqr": lambda a: torch.ormqr(a, a[0] * 0.3, a + 1),
    "cholesky_solve": lambda a: torch.cholesky_solve(a, L.cholesky(a @ a.mH + 3 * torch.eye(3, dtype=a.dtype))),
    "cholesky_inverse": lambda a: torch.cholesky_inverse(L.cholesky(a @ a.mH + 3 * torch.eye(3, dtype=a.dtype))),
    "polar": lambda a: L.polar(a[:, :2])[0].sum() + L.polar(a)[1].sum(),
    "sqrth": lambda a: L.matrix_sqrth(a @ a.mH + 3 * torch.eye(3, dtype=a.dtype)),
    "lstsq": lambda a: L.lstsq(a[:, :2], a[:, 2:]).solution,
    "nuclear": lambda a: L.matrix_norm(a, "nuc"),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name, dtype):
    """Both modes against differences along one direction."""
    def function(a):
        out = FUNCTIONS[name](a)
        out = torch.view_as_real(out.resolve_conj()) if out.is_complex() else out
        return (out * torch.arange(1, out.numel() + 1, dtype=torch.float64).reshape(out.shape).sin()).sum()

    a, along = randn(3, 3, dtype=dtype), randn(3, 3, dtype=dtype, seed=5)
    step = 1e-6
    difference = (function(a + step * along) - function(a - step * along)).item() / (2 * step)
    x = a.clone().requires_grad_()
    gradient, = torch.autograd.grad(function(x), x)
    assert math.isclose((gradient.conj() * along).sum().real.item(), difference, rel_tol=1e-5, abs_tol=1e-6)
    tangent = torch.func.jvp(function, (a,), (along,))[1]
    assert math.isclose(tangent.item(), difference, rel_tol=1e-5, abs_tol=1e-6)


@pytest.mark.parametrize("name", ["inv", "solve", "det", "cholesky", "qr", "eigh", "svdvals", "matrix_exp", "pinv"])
def test_second_derivatives(name):
    def slope(a):
        x = a if a.requires_grad else a.clone().requires_grad_()
        return torch.autograd.grad(FUNCTIONS[name](x).sum(), x, create_graph=True)[0]

    a, along = randn(3, 3), randn(3, 3, seed=5)
    step = 1e-5
    difference = ((slope(a + step * along) - slope(a - step * along)) / (2 * step)).sum().item()
    x = a.clone().requires_grad_()
    second, = torch.autograd.grad(slope(x).sum(), x)
    assert math.isclose((second * along).sum().item(), difference, rel_tol=1e-4, abs_tol=1e-5)


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("lstsq",)])
def test_vmap_is_a_loop(name):
    if name.endswith("vectors") or name in ("eig", "svd", "svd_tall", "polar", "eigvals"):
        pytest.skip("one number for all")
    a = randn(4, 3, 3)
    stacked = torch.stack([FUNCTIONS[name](m) for m in a])
    assert close(torch.func.vmap(FUNCTIONS[name])(a), stacked)


def test_a_determinant_of_rank_one_less_has_a_gradient():
    a = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=torch.float64, requires_grad=True)
    gradient, = torch.autograd.grad(L.det(a), a, create_graph=True)
    assert close(gradient, torch.tensor([[4.0, -2.0], [-2.0, 1.0]], dtype=torch.float64))


def test_a_loss_that_depends_on_a_phase_is_refused():
    a = positive(n=3, dtype=torch.complex128).requires_grad_()
    with pytest.raises(RuntimeError, match="specified up to multiplication by e"):
        L.eigh(a)[1].imag.sum().backward()


# ---- errors ----

@pytest.mark.parametrize("call, text", [
    (lambda: L.inv(torch.zeros(2, 2)), "linalg.inv: The diagonal element 1 is zero"),
    (lambda: L.inv(torch.zeros(3, 2, 2)), r"\(Batch element 0\)"),
    (lambda: L.solve(torch.zeros(2, 2), torch.ones(2)), "torch.linalg.solve: The solver failed because the input matrix is singular"),
    (lambda: L.cholesky(-torch.eye(2)), "leading minor of order 1 is not positive-definite"),
    (lambda: L.svd(torch.full((2, 2), float("nan"))), "contained non-finite values"),
])
def test_matrices_that_cannot_be_gone_on_with(call, text):
    with pytest.raises(L.LinAlgError, match=text):
        call()


@pytest.mark.parametrize("call, error", [
    (lambda: L.inv(torch.ones(2, 3)), RuntimeError),
    (lambda: L.inv(torch.ones(2, 2, dtype=torch.int64)), NotImplementedError),
    (lambda: L.inv(torch.ones(2, 2, dtype=torch.float16)), NotImplementedError),
    (lambda: L.solve(torch.eye(3), torch.ones(4)), RuntimeError),
    (lambda: L.eigh(torch.eye(3), UPLO="X"), RuntimeError),
    (lambda: L.qr(torch.eye(3), mode="some"), RuntimeError),
    (lambda: L.cond(torch.eye(3), p=3), ValueError),
    (lambda: L.lu_factor(torch.eye(3), pivot=False), RuntimeError),
    (lambda: L.lstsq(torch.ones(3, 2), torch.ones(3), driver="best"), RuntimeError),
    (lambda: torch.cdist(torch.ones(2, 2), torch.ones(2, 2), compute_mode="fast"), ValueError),
    (lambda: L.eig(torch.full((2, 2), float("inf"))), RuntimeError),
    (lambda: L.lu_solve(torch.eye(2), torch.tensor([1, 7], dtype=torch.int32), torch.eye(2)), RuntimeError),
])
def test_what_is_refused(call, error):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("equation, strides", [
    ("abc->ba", (2, 1)), ("abc->acb", (12, 1, 4)), ("abc,dc->adb", (15, 1, 5)), ("bc,dc->db", (2, 1)), ("abc,abc->ca", (2, 1)),
])
def test_einsum_lays_results_out_by_the_output(equation, strides):
    """Products in the order of the output where one matrix product gives it, views of a product otherwise."""
    shapes = {"abc": (2, 3, 4), "dc": (5, 4), "bc": (2, 4)}
    inputs = [randn(*shapes[labels]) for labels in equation.split("->")[0].split(",")]
    result = torch.einsum(equation, *inputs)
    assert result.stride() == strides
    np.testing.assert_allclose(result.numpy(), np.einsum(equation, *(t.numpy() for t in inputs)), atol=1e-12)
    with FakeTensorMode() as mode:
        assert torch.einsum(equation, *map(mode.from_tensor, inputs)).stride() == strides


@pytest.mark.parametrize("rows, columns", [(3, 4), (4, 3), (0, 2), (1, 1)])
@pytest.mark.parametrize("offset", [-5, -1, 0, 1, 5])
def test_places_of_triangles(rows, columns, offset):
    np.testing.assert_array_equal(torch.tril_indices(rows, columns, offset).numpy(), np.tril_indices(rows, offset, columns))
    np.testing.assert_array_equal(torch.triu_indices(rows, columns, offset).numpy(), np.triu_indices(rows, offset, columns))


def test_a_triangle_too_large_for_memory_is_refused():
    with pytest.raises(RuntimeError):
        torch.triu_indices(2**40, 2**40)


@pytest.mark.parametrize("order", [1e300, -1e300, 1e-300, 100.0, -2, math.inf])
def test_a_norm_of_one_element_is_its_size(order):
    assert L.vector_norm(torch.tensor([[-0.25], [0.5]]), order, dim=1).tolist() == [0.25, 0.5]


@pytest.mark.parametrize("order", [1, -1, math.inf, "fro", "nuc", 2])
def test_condition_numbers_have_gradients(order):
    x = torch.tensor([[2.0, 1.0], [0.5, 3.0]], dtype=torch.float64, requires_grad=True)
    gradient, = torch.autograd.grad(torch.linalg.cond(x, order), x)
    for i in range(2):
        for j in range(2):
            step = torch.zeros(2, 2, dtype=torch.float64)
            step[i, j] = 1e-6
            slope = (torch.linalg.cond(x.detach() + step, order) - torch.linalg.cond(x.detach() - step, order)) / 2e-6
            assert math.isclose(gradient[i, j].item(), slope.item(), abs_tol=1e-5)


def test_a_determinant_is_differentiated_twice_where_singular_values_are_equal():
    matrices = torch.stack([torch.eye(3) * 2, torch.diag(torch.tensor([1.0, 2.0, 0.0]))]).double().requires_grad_()
    det = torch.linalg.det(matrices)
    grad, = torch.autograd.grad((det ** 2 + det).sum(), matrices, create_graph=True)
    second, = torch.autograd.grad((grad * torch.arange(18.0).reshape(2, 3, 3)).sum(), matrices)
    assert grad.isfinite().all() and second.isfinite().all()
    torch.testing.assert_close(second[0], torch.tensor([[792.0, -102, -204], [-34, 656, -238], [-68, -170, 520]]).double())


def test_what_is_not_a_number_stays_so():
    matrix = torch.tensor([[float("nan"), 1.0], [1.0, 1.0]])
    assert torch.isnan(torch.linalg.solve(matrix, torch.ones(2, 1))).all()
    factors = torch.linalg.lu(matrix)
    assert torch.isnan(factors.L[1, 0]) and torch.isnan(factors.U[1, 1])
    assert torch.isnan(torch.linalg.inv(matrix)).all()
    with pytest.raises(torch.linalg.LinAlgError, match="leading minor of order 1 is not positive-definite"):
        torch.linalg.cholesky(matrix)
    both = torch.stack([torch.eye(2), matrix])
    assert torch.linalg.cholesky_ex(both).info.tolist() == [0, 1]


def test_a_bool_factor_is_for_bools():
    row = torch.ones(2)
    for factor in ("beta", "alpha"):
        with pytest.raises(RuntimeError, match=f"Boolean {factor} only supported for Boolean results"):
            torch.addr(torch.ones(2, 2), row, row, **{factor: True})
    assert torch.addr(torch.ones(2, 2).bool(), row.bool(), row.bool(), beta=True).all()


def test_einsum_says_what_it_lacks():
    with pytest.raises(ValueError, match="at least one operand"):
        torch.einsum("a")
    with pytest.raises(TypeError, match="expected Tensor as element 0 in argument 1, but got int"):
        torch.einsum("a", 3)


@pytest.mark.parametrize("call, text", [
    (lambda x, w, b: torch.nn.functional.linear(x, w.t(), b), "mat1 and mat2 must have the same dtype, but got Long and Float"),
    (lambda x, w, b: torch.addmm(b, x[:, :1], w), "mat1 and mat2 must have the same dtype, but got Long and Float"),
    (lambda x, w, b: torch.addmm(b.double(), x, w), "self and mat2 must have the same dtype, but got Double and Float"),
    (lambda x, w, b: torch.mm(x, w), "expected m1 and m2 to have the same dtype, but got: long int != float"),
    (lambda x, w, b: torch.mm(x[:, :1], w), "mm: mat1 and mat2 shapes cannot be multiplied (1x1 and 2x3)"),
    (lambda x, w, b: torch.baddbmm(b, x[None], w[None]), "Input dtypes must be the same, got: input float, batch1: long int, batch2: float"),
    (lambda x, w, b: torch.baddbmm(b.double(), w[None, :, :2], w[None]), "Input dtypes must be the same, got: input double, batch1: float, batch2: float"),
])
def test_products_of_several_types_are_refused_by_their_names(call, text):
    with pytest.raises(RuntimeError) as error:
        call(torch.ones(1, 2, dtype=torch.int64), torch.ones(2, 3), torch.ones(3))
    assert str(error.value) == text


def test_lobpcg_finds_some_eigenvalues_and_their_gradients():
    torch.manual_seed(0)
    m = torch.randn(20, 20, dtype=torch.float64)
    a, b = m @ m.mT, torch.eye(20, dtype=torch.float64) * 2 + 0.1
    values, vectors = torch.linalg.eigh(a)
    for options, wanted in (({"k": 2}, values[[19, 18]]), ({"k": 2, "largest": False, "iK": torch.linalg.inv(a)}, values[:2]), ({"X": m[:, :3]}, values[[19, 18, 17]])):
        found, directions = torch.lobpcg(a, **options)
        torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(a @ directions, directions * found, rtol=1e-4, atol=1e-4)
    found, directions = torch.lobpcg(torch.stack([a, 2 * a]), k=1, B=torch.stack([b, b]))
    torch.testing.assert_close(a @ directions[0], b @ directions[0] * found[0], rtol=1e-4, atol=1e-4)
    assert found[1].item() == pytest.approx(2 * found[0].item())
    leaf = a.clone().requires_grad_()
    found, directions = torch.lobpcg(leaf, k=2, tol=1e-12)
    (found.sum() + (directions ** 4).sum()).backward()
    same = a.clone().requires_grad_()
    values, vectors = torch.linalg.eigh(same)
    (values[-2:].sum() + (vectors[:, -2:] ** 4).sum()).backward()
    torch.testing.assert_close(leaf.grad, (same.grad + same.grad.mT) / 2, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="smaller than 3 x the number of requested eigenpairs"):
        torch.lobpcg(a, k=7)


def test_matmul_out_takes_no_history():
    a = torch.rand(1, 8, 5, requires_grad=True)
    b = torch.rand(3, 4, 5).transpose(-1, -2)
    out = torch.empty(8, 3, 4).movedim(1, 0)  # laid out as the folded product
    with pytest.raises(RuntimeError, match=r"matmul\(\): functions with out=... arguments don't support automatic differentiation"):
        torch.matmul(a, b, out=out)
    assert not out.requires_grad
    with torch.no_grad():
        torch.testing.assert_close(torch.matmul(a, b, out=out), a @ b)


@pytest.mark.parametrize("arguments", [("", []), ("i", ()), ([], [])])
def test_einsum_of_an_empty_list(arguments):
    with pytest.raises(ValueError, match="at least one operand"):
        torch.einsum(*arguments)


def test_orders_of_norms_are_not_complex():
    a = torch.ones(2, 2)
    for call, error, name in ((lambda: torch.linalg.matrix_norm(a, ord=1 + 0j), RuntimeError, "matrix_norm"),
                              (lambda: torch.linalg.norm(a, ord=1j), RuntimeError, "matrix_norm"),
                              (lambda: torch.linalg.vector_norm(a, ord=1 + 0j), RuntimeError, "vector_norm"),
                              (lambda: torch.linalg.cond(a, p=1 + 0j), ValueError, "cond")):
        with pytest.raises(error, match=f"linalg.{name}: Expected a non-complex scalar as the order of norm."):
            call()


@pytest.mark.parametrize("equation,text", [
    ("a...b.c", "for operand 0 for which an ellipsis was already found"), ("a.b", "for operand 0 that is not part of any ellipsis"),
    ("a->.a", r"for output that is not part of any ellipsis \(...\)"), ("a...->a....", r"for output but an ellipsis \(...\) was already found")])
def test_dots_of_einsum_that_are_no_ellipsis(equation, text):
    with pytest.raises(RuntimeError, match=rf"einsum\(\): found '.' {text}"):
        torch.einsum(equation, torch.ones(2, 2) if "b" in equation else torch.ones(2))


def test_pivots_that_name_no_row():
    for pivots, text in (([0, 1], "greater or equal to 1"), ([3, 1], r"smaller or equal to LU.size\(-2\)")):
        with pytest.raises(RuntimeError, match=f"Pivots given to lu_solve must all be {text}. Did you properly pass the result of lu_factor"):
            torch.linalg.lu_solve(torch.eye(2), torch.tensor(pivots, dtype=torch.int32), torch.ones(2, 1))


def test_principal_components_of_sparse_matrices():
    a = torch.eye(4, dtype=torch.float64) * torch.arange(4)
    for options in ({"q": 3}, {"q": 2, "center": False}):
        torch.manual_seed(0)
        of_sparse = torch.pca_lowrank(a.to_sparse(), **options)
        torch.manual_seed(0)
        torch.testing.assert_close(of_sparse, torch.pca_lowrank(a, **options))
    with pytest.raises(ValueError, match="pca_lowrank input is expected to be 2-dimensional tensor"):
        torch.pca_lowrank(torch.ones(2, 3, 3).to_sparse(), q=2)


def test_triangular_systems_are_solved_in_the_type_of_the_matrix():
    a = torch.tensor([[2.0, 0], [1, 4]], requires_grad=True)
    b = torch.tensor([[1.0], [3.3]], dtype=torch.float64, requires_grad=True)
    x = L.solve_triangular(a, b, upper=False)
    assert x.dtype == torch.float32
    of_a, of_b = torch.autograd.grad(x.sum(), (a, b))
    assert of_a.dtype == torch.float32 and of_b.dtype == torch.float64
    torch.testing.assert_close(of_b, torch.tensor([[0.375], [0.25]], dtype=torch.float64))
    assert L.solve_triangular(a.detach().double(), torch.tensor([[1], [3]]), upper=False).dtype == torch.float64
    with pytest.raises(RuntimeError, match="same dtype"):
        L.solve_triangular(a, b.to(torch.complex64), upper=False)
    normal = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
    assert normal.log_prob(torch.zeros(2, dtype=torch.float64)).item() == pytest.approx(-math.log(2 * math.pi))
