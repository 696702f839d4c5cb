"""Adam with a corrected start."""
import umbra
from umbra.optim._as_function import as_function
from umbra.optim.optimizer import Optimizer, add_scaled, check_betas, check_options, count_of, counter


class _Moments(Optimizer):
    """What keeps running means of the gradient and of its square."""

    def _moments(self, parameter, gradient, group, state):
        beta1, beta2 = group["betas"]
        if group["maximize"]:
            gradient = -gradient
        if group["weight_decay"] != 0 and group["decoupled_weight_decay"]:
            parameter.mul_(1 - group["lr"] * group["weight_decay"])
        elif group["weight_decay"] != 0:
            gradient = gradient.add(parameter, alpha=group["weight_decay"])
        state["step"] += 1
        state["exp_avg"].lerp_(gradient, 1 - beta1)
        state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        return gradient


class RAdam(_Moments):
    """Adam that begins without the division, until the mean square can be trusted."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay: float = 0, decoupled_weight_decay=False, *, foreach=None,
                 maximize=False, capturable=False, differentiable=False):
        check_options(lr=lr, eps=eps, weight_decay=weight_decay)
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize, "foreach": foreach,
                                  "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay, "differentiable": differentiable})

    def _first_state(self, parameter, group):
        return {"step": counter(parameter, group), "exp_avg": umbra.zeros_like(parameter), "exp_avg_sq": umbra.zeros_like(parameter)}

    def _update(self, parameter, gradient, group, state):
        self._moments(parameter, gradient, group, state)
        beta1, beta2 = group["betas"]
        step = count_of(state["step"], group)
        mean = state["exp_avg"] / (1 - beta1 ** step)
        # How long the running mean of squares is; while it is short its variance is too large to divide by it.
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2 ** step / (1 - beta2 ** step)
        if group["capturable"] or length > 5.0:
            correction = ((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) ** 0.5
            size = state["exp_avg_sq"].sqrt().add(group["eps"])
            divided = mean * (correction * (1 - beta2 ** step) ** 0.5) / size
            mean = umbra.where(length > 5.0, divided, mean) if group["capturable"] else divided
        add_scaled(parameter, mean, -group["lr"], group)


radam = as_function(RAdam, "radam", {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq", "state_steps": "step"},
                    "decoupled_weight_decay foreach differentiable capturable has_complex maximize",
                    "beta1 beta2 lr weight_decay eps")
