"""Adam by the largest gradients instead of their squares."""
import umbra
from umbra.optim._as_function import as_function
from umbra.optim.optimizer import Optimizer, add_quotient, check_betas, check_options, count_of, counter, decayed, keep_largest


class Adamax(Optimizer):
    """Adam with the largest of past gradients in the place of the root mean square."""

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay: float = 0, foreach=None, *, maximize=False, differentiable=False,
                 capturable=False):
        check_options(lr=lr, eps=eps, weight_decay=weight_decay)
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
                                  "differentiable": differentiable, "capturable": capturable})

    def _first_state(self, parameter, group):
        return {"step": counter(parameter, group), "exp_avg": umbra.zeros_like(parameter), "exp_inf": umbra.zeros_like(parameter)}

    def _update(self, parameter, gradient, group, state):
        gradient = decayed(parameter, gradient, group)
        state["step"] += 1
        beta1, beta2 = group["betas"]
        state["exp_avg"].lerp_(gradient, 1 - beta1)
        largest = state["exp_inf"]
        keep_largest(largest.mul_(beta2), gradient.abs().add(group["eps"]), group)
        add_quotient(parameter, state["exp_avg"], largest, -group["lr"] / (1 - beta1 ** count_of(state["step"], group)), group)


adamax = as_function(Adamax, "adamax", {"exp_avgs": "exp_avg", "exp_infs": "exp_inf", "state_steps": "step"},
                     "foreach maximize differentiable capturable has_complex",
                     "eps beta1 beta2 lr weight_decay")
