"""Adam for sparse gradients."""
from umbra.optim.optimizer import Optimizer, check_betas, check_options, check_rate


class SparseAdam(Optimizer):
    """Updates the moments of those rows alone that a sparse gradient has. Dense gradients are refused, as in PyTorch; sparse ones are not
    in Umbra yet."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        check_rate(lr)
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        check_options(eps=eps)
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def _update(self, parameter, gradient, group, state):
        if not gradient.is_sparse:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        raise NotImplementedError("torch.optim.SparseAdam is not in Umbra yet")
