"""Some of the largest or smallest eigenvalues of a symmetric matrix, by conjugate gradients over a block of vectors (LOBPCG)."""
import umbra
from umbra._options import not_built
from umbra.autograd import Function


def _orthonormal(span, apply_b):
    """A basis of the span of columns that is orthonormal with respect to B, without directions that rounding alone tells apart."""
    for _ in range(2):  # once more for what the first time has lost
        gram = span.mT @ apply_b(span)
        scale = gram.diagonal().clamp(min=0).sqrt()
        span, scale = span[:, scale > 0], scale[scale > 0]
        gram = gram[gram.diagonal() > 0][:, gram.diagonal() > 0] / scale / scale[:, None]
        values, vectors = umbra.linalg.eigh(gram)
        kept = values > values.max() * umbra.finfo(span.dtype).eps * span.shape[-1]
        span = (span / scale) @ (vectors[:, kept] / values[kept].sqrt())
    return span


class _Search:
    """The block of vectors `X` and their values `E`, which each step brings nearer to what is looked for."""

    def __init__(self, A, B, X, iK, largest):
        self.A, self.B, self.iK, self.largest, self.n = A, B, iK, largest, X.shape[-1]
        self.direction = None
        self.size = umbra.linalg.vector_norm(X)
        self.a_norm = umbra.linalg.vector_norm(A @ X) / self.size
        self.b_norm = umbra.linalg.vector_norm(self._b(X)) / self.size
        self._take(_orthonormal(X, self._b))

    def _b(self, x):
        return x if self.B is None else self.B @ x

    def _take(self, basis):
        """The best vectors of a space."""
        values, vectors = umbra.linalg.eigh(basis.mT @ (self.A @ basis))
        order = values.argsort(descending=self.largest)[:self.n]
        self.E, self.X = values[order], basis @ vectors[:, order]
        self.residual = self.A @ self.X - self._b(self.X) * self.E

    def step(self):
        before = self.X
        towards = self.residual if self.iK is None else self.iK @ self.residual
        known = [before, towards] if self.direction is None else [before, towards, self.direction]
        self._take(_orthonormal(umbra.cat(known, 1), self._b))
        self.direction = self.X - before @ (before.mT @ self._b(self.X))

    def converged(self, tol):
        """How many of the first vectors are found."""
        error = umbra.linalg.vector_norm(self.residual, dim=0)
        error = error / (umbra.linalg.vector_norm(self.X, dim=0) * (self.a_norm + self.E.abs() * self.b_norm))
        return int((error < tol).long().cumprod(0).sum())


def _search(A, k, B, X, iK, niter, tol, largest):
    search = _Search(A, B, X, iK, largest)
    while niter != 0 and search.converged(tol) < k:
        search.step()
        niter -= 1
    return search.E[:k], search.X[:, :k]


class _Eigenpairs(Function):
    """The search for a matrix that requires a gradient, which is that of the eigenvalues and vectors themselves."""

    @staticmethod
    def forward(ctx, A, search):
        E, X = search(A)
        ctx.save_for_backward(A, E, X)
        return E, X

    @staticmethod
    def backward(ctx, E_grad, X_grad):
        A, E, X = ctx.saved_tensors
        between = 1 / (E[..., None, :] - E[..., :, None])
        between.diagonal(dim1=-2, dim2=-1).fill_(0)
        grad = X @ (umbra.diag_embed(E_grad) + (X.mT @ X_grad) * between) @ X.mT
        others = umbra.linalg.qr(X, mode="complete").Q[..., X.shape[-1]:]  # what is orthogonal to the vectors that were found
        values, vectors = umbra.linalg.eigh(others.mT @ A @ others)
        others = others @ vectors
        return grad + others @ ((others.mT @ X_grad) / (E[..., None, :] - values[..., :, None])) @ X.mT, None


def lobpcg(A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None, tracker=None, ortho_iparams=None,
           ortho_fparams=None, ortho_bparams=None):
    """The k largest (or smallest) eigenvalues of A X = B X E and their vectors; of each matrix of a batch.

    X is where the search begins; iK approximates the inverse of A. Gradients are those of A, where B is not given.
    """
    not_built("torch.lobpcg", tracker=(tracker, None), ortho_iparams=(ortho_iparams, None), ortho_fparams=(ortho_fparams, None),
              ortho_bparams=(ortho_bparams, None))
    if method not in (None, "ortho", "basic"):
        raise ValueError(f"torch.lobpcg: there is no method {method!r}; there are 'ortho' and 'basic'")
    if A.shape[-2] != A.shape[-1]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    if B is not None and A.shape != B.shape:
        raise AssertionError(f"A and B must have same shape, got {A.shape} vs {B.shape}")
    dtype = A.dtype if A.is_floating_point() else umbra.float32
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = X.shape[-1] if X is not None else k if n is None else n
    if m < 3 * n:
        raise ValueError(f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of requested "
                         f"eigenpairs (={n})")
    tol = {umbra.float32: 1.2e-07, umbra.float64: 2.23e-16}[dtype] ** 0.5 if tol is None else tol
    needs_gradient = umbra.is_grad_enabled() and (A.requires_grad or (B is not None and B.requires_grad))
    if needs_gradient and (B is not None or A.is_sparse):
        raise ValueError("lobpcg.backward does not support sparse input yet." if A.is_sparse else
                         "lobpcg.backward does not support backward with B != I yet.")

    def one(A, B, X):
        X = umbra.randn(m, n, dtype=dtype, device=A.device) if X is None else X
        if X.shape != (m, n):
            raise AssertionError(f"X shape mismatch: got {X.shape}, expected {(m, n)}")
        return _search(A, k, B, X, iK, 1000 if niter is None else niter, tol, largest is None or largest)

    def search(A):
        if A.dim() == 2:
            return one(A, B, X)
        count = A.shape[:-2].numel()
        flat = [[None] * count if t is None else t.reshape(count, *t.shape[-2:]) for t in (A, B, X)]
        values, vectors = zip(*(one(*parts) for parts in zip(*flat)))
        return umbra.stack(values).reshape(*A.shape[:-2], k), umbra.stack(vectors).reshape(*A.shape[:-2], m, k)

    if needs_gradient:
        return _Eigenpairs.apply((A + A.mT) / 2, search)
    with umbra.no_grad():
        return search(A)
