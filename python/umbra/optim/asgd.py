"""Averaged gradient descent."""
import umbra
from umbra.optim._as_function import as_function
from umbra.optim.optimizer import Optimizer, add_scaled, check_options, count_of, counter, decayed


class ASGD(Optimizer):
    """Gradient descent that keeps the average of the parameters."""

    def __init__(self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay: float = 0, foreach=None, maximize=False, differentiable=False,
                 capturable=False):
        check_options(lr=lr, lambd=lambd, alpha=alpha, weight_decay=weight_decay)
        super().__init__(params, {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "foreach": foreach,
                                  "maximize": maximize, "differentiable": differentiable, "capturable": capturable})

    _on_devices = "params, mus, etas, and state_steps"

    _listed_state = ("mu", "ax", "eta", "step")

    def _first_state(self, parameter, group):
        return {"step": counter(parameter, group), "eta": counter(parameter, group, group["lr"]), "mu": counter(parameter, group, 1.0),
                "ax": umbra.zeros_like(parameter)}

    def _update(self, parameter, gradient, group, state):
        gradient = decayed(parameter, gradient, group)
        state["step"] += 1
        step, eta, weight = (count_of(state[name], group) for name in ("step", "eta", "mu"))
        parameter.mul_(1 - group["lambd"] * eta)
        add_scaled(parameter, gradient, -eta, group)
        if not group["capturable"] and weight == 1:
            state["ax"].copy_(parameter)
        else:
            state["ax"].add_(parameter.sub(state["ax"]).mul_(weight))
        state["eta"].copy_(umbra.as_tensor(group["lr"] / (1 + group["lambd"] * group["lr"] * step) ** group["alpha"]))
        later = (step - group["t0"]).clamp(min=1.0) if group["capturable"] else max(1.0, step - group["t0"])
        state["mu"].copy_(umbra.as_tensor(1 / later))


asgd = as_function(ASGD, "asgd", {"axs": "ax", "mus": "mu", "etas": "eta", "state_steps": "step"},
                   "foreach maximize differentiable capturable has_complex",
                   "lambd lr t0 alpha weight_decay")
