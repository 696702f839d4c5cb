"""Adafactor: of the squares of a matrix's gradients it keeps the means of rows and columns only."""
import umbra
from umbra.optim.optimizer import Optimizer, check_rate, counter


class Adafactor(Optimizer):
    """Adaptive steps whose second moments are kept by rows and columns."""

    def __init__(self, params, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0, *, foreach=None, maximize=False):
        check_rate(lr)
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 >= beta2_decay:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not 0.0 <= eps[0]:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not 0.0 <= eps[1]:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not 1.0 <= d:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(params, {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay, "foreach": foreach,
                                  "maximize": maximize})

    def _update_one(self, parameter, group):
        if parameter.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        super()._update_one(parameter, group)

    def _first_state(self, parameter, group):
        if parameter.dim() <= 1:
            return {"step": counter(parameter, group), "variance": umbra.zeros_like(parameter)}
        return {"step": counter(parameter, group), "row_var": parameter.new_zeros((*parameter.shape[:-1], 1)),
                "col_var": parameter.new_zeros((*parameter.shape[:-2], 1, parameter.shape[-1]))}

    def _update(self, parameter, gradient, group, state):
        if group["maximize"]:
            gradient = -gradient
        state["step"] += 1
        step, (eps1, eps2) = state["step"].item(), group["eps"]
        eps1 = umbra.finfo(parameter.dtype).eps if eps1 is None else eps1
        size = max(eps2, self._root_mean_square(parameter))
        if group["weight_decay"] != 0:
            parameter.mul_(1 - group["lr"] * group["weight_decay"])
        change = self._variance(gradient, step ** group["beta2_decay"], eps1, state).clamp_(min=eps1 * eps1).rsqrt_().mul_(gradient)
        clipping = max(1.0, self._root_mean_square(change) / group["d"])
        parameter.add_(change, alpha=-size * min(group["lr"], step ** -0.5) / clipping)

    @staticmethod
    def _root_mean_square(tensor):
        return (tensor.square().sum() / tensor.numel()).sqrt().item()

    @staticmethod
    def _variance(gradient, share, eps1, state):
        """The mean of squares of each element, of which the new gradient makes up a share."""
        squares = gradient.square()
        if gradient.dim() <= 1:
            return state["variance"].lerp_(squares, share).clone()
        rows = state["row_var"].lerp_(squares.mean(-1, keepdim=True), share)
        columns = state["col_var"].lerp_(squares.mean(-2, keepdim=True), share)
        return (rows @ columns).div_(rows.mean(-2, keepdim=True).clamp_(min=eps1))
