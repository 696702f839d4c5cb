"""Steps as large as the last ones were, against the size of the gradients."""
import umbra
from umbra.optim._as_function import as_function
from umbra.optim.optimizer import Optimizer, add_scaled, check_options, counter, decayed


class Adadelta(Optimizer):
    """Steps scaled by the root mean square of past steps over that of past gradients."""

    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay: float = 0, foreach=None, *, capturable=False, maximize=False,
                 differentiable=False):
        check_options(lr=lr, eps=eps, weight_decay=weight_decay)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize, "capturable": capturable,
                                  "foreach": foreach, "differentiable": differentiable})

    _captures_on_xla = False

    def _first_state(self, parameter, group):
        return {"step": counter(parameter, group), "square_avg": umbra.zeros_like(parameter), "acc_delta": umbra.zeros_like(parameter)}

    def _update(self, parameter, gradient, group, state):
        gradient = decayed(parameter, gradient, group)
        state["step"] += 1
        rho, eps = group["rho"], group["eps"]
        squares, changes = state["square_avg"], state["acc_delta"]
        squares.mul_(rho).addcmul_(gradient, gradient, value=1 - rho)
        change = changes.add(eps).sqrt_()
        if group["differentiable"]:
            change = change.clone()  # the root is kept for its gradient
        change.div_(squares.add(eps).sqrt_()).mul_(gradient)
        changes.mul_(rho).addcmul_(change, change, value=1 - rho)
        add_scaled(parameter, change, -group["lr"], group)


adadelta = as_function(Adadelta, "adadelta", {"square_avgs": "square_avg", "acc_deltas": "acc_delta", "state_steps": "step"},
                       "capturable foreach differentiable has_complex",
                       "lr rho eps weight_decay maximize")
