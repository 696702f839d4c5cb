"""Steps divided by the root of the mean square of the gradients."""
import umbra
from umbra.optim._as_function import as_function
from umbra.optim.optimizer import Optimizer, add_quotient, add_scaled, check_options, counter, decayed


class RMSprop(Optimizer):
    """Steps divided by the root of the mean square of the gradients."""

    def __init__(self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay: float = 0, momentum: float = 0, centered=False, capturable=False, foreach=None,
                 maximize=False, differentiable=False):
        check_options(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(params, {"lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered, "weight_decay": weight_decay,
                                  "capturable": capturable, "foreach": foreach, "maximize": maximize, "differentiable": differentiable})

    _listed_state = ("square_avg", "momentum_buffer", "grad_avg", "step")

    def _first_state(self, parameter, group):
        kept = ["square_avg", *(["momentum_buffer"] if group["momentum"] > 0 else []), *(["grad_avg"] if group["centered"] else [])]
        return {"step": counter(parameter, group), **{name: umbra.zeros_like(parameter) for name in kept}}

    def _update(self, parameter, gradient, group, state):
        gradient = decayed(parameter, gradient, group)
        state["step"] += 1
        squares, alpha = state["square_avg"], group["alpha"]
        squares.mul_(alpha).addcmul_(gradient, gradient, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"].lerp_(gradient, 1 - alpha)
            squares = squares.addcmul(mean, mean, value=-1)
        size = squares.sqrt().add(group["eps"])
        if group["momentum"] > 0:
            buffer = state["momentum_buffer"].mul_(group["momentum"]).addcdiv_(gradient, size)
            add_scaled(parameter, buffer, -group["lr"], group)
        else:
            add_quotient(parameter, gradient, size, -group["lr"], group)


rmsprop = as_function(RMSprop, "rmsprop", {"square_avgs": "square_avg", "grad_avgs": "grad_avg", "momentum_buffer_list": "momentum_buffer", "state_steps": "step"},
                      "foreach maximize differentiable capturable has_complex",
                      "lr alpha eps weight_decay momentum centered")
