"""Decompositions of matrices of low rank, by random projections (Halko, Martinsson and Tropp, 2009)."""
import umbra
from umbra.overrides import overridable


def get_approximate_basis(A, q, niter=2, M=None):
    """`q` orthonormal columns Q with Q Qᴴ (A - M) close to A - M."""
    dtype = A.dtype if A.is_floating_point() or A.is_complex() else umbra.get_default_dtype()
    if M is not None:
        A = A - M
    start = umbra.randn(A.shape[-1], q, dtype=dtype, device=A.device)
    basis = umbra.linalg.qr(A.matmul(start)).Q
    for _ in range(2 if niter is None else niter):
        across = umbra.linalg.qr(A.mH.matmul(basis)).Q
        basis = umbra.linalg.qr(A.matmul(across)).Q
    return basis


@overridable
def svd_lowrank(A, q=6, niter=2, M=None):
    """U, S and V of the best approximation of A - M by `q` dimensions."""
    tall = A.shape[-2] >= A.shape[-1]
    if M is not None:
        M = M.broadcast_to(A.size())
    A, M = (A, M) if tall else (A.mH, None if M is None else M.mH)
    basis = get_approximate_basis(A, 6 if q is None else q, niter, M)
    inside = basis.mH.matmul(A) if M is None else basis.mH.matmul(A) - basis.mH.matmul(M)
    U, S, Vh = umbra.linalg.svd(inside, full_matrices=False)
    U, V = basis.matmul(U), Vh.mH
    return (U, S, V) if tall else (V, S, U)


@overridable
def pca_lowrank(A, q=None, center=True, niter=2):
    """The principal components of the rows of A: U, S and V."""
    least = min(A.shape[-2:])
    q = min(6, least) if q is None else q
    if not 0 <= q <= least:
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={least}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not center:
        return svd_lowrank(A, q, niter)
    if A.layout != umbra.strided:
        if A.dim() != 2:
            raise ValueError("pca_lowrank input is expected to be 2-dimensional tensor")
        A = A.to_dense()  # what it is without its mean has elements everywhere
    return svd_lowrank(A - A.mean(dim=-2, keepdim=True), q, niter)
