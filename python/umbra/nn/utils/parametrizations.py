"""Ready parametrisations: weights as a direction and a length."""
import umbra
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
    return parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
