"""Ready parametrisations: weights as a direction and a length, orthogonal ones, ones of a largest singular value 1."""
import enum

import umbra
from umbra.nn import functional as F
from umbra.nn.modules.module import Module
from umbra.nn.utils import parametrize


class _WeightNorm(Module):
    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return umbra._weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        if self.dim == -1:
            return umbra.linalg.vector_norm(weight), weight
        dims = [d for d in range(weight.dim()) if d != self.dim % weight.dim()]
        return umbra.linalg.vector_norm(weight, 2, dims, keepdim=True), weight


def weight_norm(module, name="weight", dim=0):
    """`module.name` becomes `original0 * original1 / |original1|`, with one length for each slice along `dim`."""
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module._register_load_state_dict_pre_hook(_ReadsOlderWeightNorm(name))
    return module


class _ReadsOlderWeightNorm:
    """State of the time when weight_norm was a hook: `name_g` and `name_v`."""

    def __init__(self, name):
        self.name = name

    def __call__(self, state_dict, prefix, *_):
        old = [f"{prefix}{self.name}_{part}" for part in "gv"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{self.name}.original{i}"] = state_dict.pop(key)


# ---- orthogonal weights ----

class _OrthMaps(enum.Enum):
    """How any matrix becomes an orthogonal one."""
    matrix_exp, cayley, householder = range(3)


def _is_orthogonal(Q, eps=None):
    n, k = Q.size(-2), Q.size(-1)
    eye = umbra.eye(k, dtype=Q.dtype, device=Q.device)
    eps = 10.0 * n * umbra.finfo(Q.dtype).eps if eps is None else eps
    return umbra.allclose(Q.mH @ Q, eye, atol=eps)


def _make_orthogonal(A):
    """The orthogonal factor of A whose triangular one has a positive diagonal."""
    X, tau = umbra.geqrf(A)
    Q = umbra.linalg.householder_product(X, tau)
    return Q * X.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    def __init__(self, weight, orthogonal_map, *, use_trivialization=True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def _from_skew(self, X, n, k):
        """By a skew matrix: its exponential or its Cayley transform."""
        X = X.tril()
        if n != k:
            X = umbra.cat([X, X.new_zeros(n, n - k).expand(*X.shape[:-2], -1, -1)], dim=-1)
        A = X - X.mH
        if self.orthogonal_map == _OrthMaps.matrix_exp:
            Q = umbra.matrix_exp(A)
        else:
            eye = umbra.eye(n, dtype=A.dtype, device=A.device)
            Q = umbra.linalg.solve(umbra.add(eye, A, alpha=-0.5), umbra.add(eye, A, alpha=0.5))
        return Q[..., :k] if n != k else Q

    def forward(self, X):
        wide = X.size(-2) < X.size(-1)
        X = X.mT if wide else X
        n, k = X.size(-2), X.size(-1)
        if self.orthogonal_map == _OrthMaps.householder:
            A = X.tril(diagonal=-1)
            tau = 2.0 / (1.0 + (A * A).sum(dim=-2))
            Q = umbra.linalg.householder_product(A, tau) * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            Q = self._from_skew(X, n, k)
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if wide else Q

    @umbra.no_grad()
    def right_inverse(self, Q):
        if Q.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}.")
        given = Q
        wide = Q.size(-2) < Q.size(-1)
        Q = Q.mT if wide else Q
        n, k = Q.size(-2), Q.size(-1)
        if not hasattr(self, "base"):
            if self.orthogonal_map != _OrthMaps.householder:
                raise NotImplementedError("It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                                          "use_trivialization=False.")
            A, tau = umbra.geqrf(Q)
            A.diagonal(dim1=-2, dim2=-1).sign_()
            A.diagonal(dim1=-2, dim2=-1)[tau == 0.0] *= -1
            return A.mT if wide else A
        if n == k:
            Q = Q.clone() if _is_orthogonal(Q) else _make_orthogonal(Q)
        else:
            rest = umbra.randn(*Q.size()[:-2], n, n - k, dtype=Q.dtype, device=Q.device)
            Q = _make_orthogonal(umbra.cat([Q, rest], dim=-1))
        self.base = Q
        start = umbra.zeros_like(given)  # by which `forward` gives the base
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """`module.name` becomes an orthogonal (unitary) matrix, or has orthonormal rows or columns."""
    weight = getattr(module, name, None)
    if not isinstance(weight, umbra.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.size(-2) == weight.size(-1) or weight.is_complex() else "householder"
    kind = getattr(_OrthMaps, orthogonal_map, None)
    if kind is None:
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}')
    return parametrize.register_parametrization(module, name, _Orthogonal(weight, kind, use_trivialization=use_trivialization), unsafe=True)


# ---- spectral norm ----

class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        rank = weight.ndim
        if not -rank <= dim < rank:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{rank}, {rank - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.dim, self.eps = dim % rank, eps
        if rank > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            u = matrix.new_empty(matrix.size(0)).normal_(0, 1)
            v = matrix.new_empty(matrix.size(1)).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight):
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    @umbra.no_grad()
    def _power_method(self, weight_mat, n_power_iterations):
        """Turns the buffers towards the first singular vectors, in place."""
        for _ in range(n_power_iterations):
            self._u.copy_(F.normalize(umbra.mv(weight_mat, self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(umbra.mv(weight_mat.H, self._u), dim=0, eps=self.eps))

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        u, v = (vector.clone(memory_format=umbra.contiguous_format) for vector in (self._u, self._v))  # a second forward before the backward changes the buffers
        return weight / umbra.vdot(u, umbra.mv(matrix, v))

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """`module.name` is divided by its largest singular value, which is estimated anew at each call while training."""
    weight = getattr(module, name, None)
    if not isinstance(weight, umbra.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if isinstance(module, (umbra.nn.ConvTranspose1d, umbra.nn.ConvTranspose2d, umbra.nn.ConvTranspose3d)) else 0
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
