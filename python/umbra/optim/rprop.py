"""Descent by the signs of gradients."""
import umbra
from umbra.optim._as_function import as_function
from umbra.optim.optimizer import Optimizer, check_options, counter


class Rprop(Optimizer):
    """Steps by the signs of gradients alone, longer where these stay and shorter where they turn."""

    def __init__(self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False, foreach=None, maximize=False,
                 differentiable=False):
        check_options(lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
                                  "differentiable": differentiable, "capturable": capturable})

    def _first_state(self, parameter, group):
        return {"step": counter(parameter, group), "prev": umbra.zeros_like(parameter), "step_size": umbra.full_like(parameter, group["lr"])}

    def _update(self, parameter, gradient, group, state):
        if group["maximize"]:
            gradient = -gradient
        state["step"] += 1
        (smaller, larger), (least, most) = group["etas"], group["step_sizes"]
        agreement = gradient * state["prev"]
        factor = umbra.ones_like(gradient).masked_fill(agreement > 0, larger).masked_fill(agreement < 0, smaller)
        state["step_size"].mul_(factor).clamp_(least, most)
        gradient = gradient.masked_fill(agreement < 0, 0)  # after a turn, wait one step
        parameter.addcmul_(gradient.sign(), state["step_size"], value=-1)
        state["prev"].copy_(gradient)


rprop = as_function(Rprop, "rprop", {"prevs": "prev", "step_sizes": "step_size", "state_steps": "step"},
                    "foreach capturable maximize differentiable has_complex",
                    "step_size_min step_size_max etaminus etaplus")
