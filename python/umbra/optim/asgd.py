"""Averaged gradient descent."""
import umbra
from umbra.optim.optimizer import Optimizer, check_options, decayed


class ASGD(Optimizer):
    """Gradient descent that keeps the average of the parameters."""

    def __init__(self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, foreach=None, maximize=False, differentiable=False,
                 capturable=False):
        check_options(lr=lr, lambd=lambd, alpha=alpha, weight_decay=weight_decay)
        super().__init__(params, {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "foreach": foreach,
                                  "maximize": maximize, "differentiable": differentiable, "capturable": capturable})

    def _update(self, parameter, gradient, group, state):
        if not state:
            state["step"] = umbra.tensor(0.0)
            state["eta"] = umbra.tensor(float(group["lr"]))
            state["mu"] = umbra.tensor(1.0)
            state["ax"] = umbra.zeros_like(parameter)
        gradient = decayed(parameter, gradient, group)
        state["step"] += 1
        step, eta, weight = state["step"].item(), state["eta"].item(), state["mu"].item()
        parameter.mul_(1 - group["lambd"] * eta)
        parameter.add_(gradient, alpha=-eta)
        if weight == 1:
            state["ax"].copy_(parameter)
        else:
            state["ax"].add_(parameter.sub(state["ax"]).mul_(weight))
        state["eta"].copy_(umbra.tensor(group["lr"] / (1 + group["lambd"] * group["lr"] * step) ** group["alpha"]))
        state["mu"].copy_(umbra.tensor(1 / max(1.0, step - group["t0"])))
