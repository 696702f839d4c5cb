"""Adam for sparse gradients."""
import umbra
from umbra.optim.optimizer import Optimizer, check_betas, check_rate
from umbra.sparse import with_values


class SparseAdam(Optimizer):
    """Updates those elements alone, and the moments of those, that a sparse gradient has. Dense gradients are refused."""

    _sparse_refusal = None
    _counts = ()  # the number of steps is a number

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        check_rate(lr)
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        sparse = [[g, p] for g, group in enumerate(self.param_groups) for p, parameter in enumerate(group["params"]) if parameter.is_sparse]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        complex_ones = [[g, p] for g, group in enumerate(self.param_groups) for p, parameter in enumerate(group["params"]) if parameter.is_complex()]
        if complex_ones:
            raise ValueError(f"Complex params at indices {complex_ones}: SparseAdam does not support complex parameters")

    def _update(self, parameter, gradient, group, state):
        if not gradient.is_sparse:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        if not state:
            state["step"] = 0
            state["exp_avg"] = umbra.zeros_like(parameter)
            state["exp_avg_sq"] = umbra.zeros_like(parameter)
        state["step"] += 1
        gradient = (-gradient if group["maximize"] else gradient).coalesce()
        values = gradient._values()
        if values.numel() == 0:
            return
        beta1, beta2 = group["betas"]
        mean = self._moved(state["exp_avg"], gradient, values, beta1)
        square = self._moved(state["exp_avg_sq"], gradient, values.square(), beta2)
        correction = (1 - beta2 ** state["step"]) ** 0.5 / (1 - beta1 ** state["step"])
        step = mean / square.sqrt().add_(group["eps"]) * (-group["lr"] * correction)
        parameter.add_(with_values(gradient, step))

    @staticmethod
    def _moved(average, gradient, values, beta):
        """Moves a running average at the gradient's places towards the values; what it is there afterwards."""
        before = average.sparse_mask(gradient)._values()
        change = (values - before) * (1 - beta)
        average.add_(with_values(gradient, change))
        return before + change
