"""Adam with Nesterov's momentum."""
import umbra
from umbra.optim._as_function import as_function
from umbra.optim.optimizer import add_quotient, check_betas, check_options, count_of, counter
from umbra.optim.radam import _Moments


class NAdam(_Moments):
    """Adam with Nesterov's momentum."""

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay: float = 0, momentum_decay=4e-3, decoupled_weight_decay=False, *,
                 foreach=None, maximize=False, capturable=False, differentiable=False):
        check_options(lr=lr, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
                                  "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach,
                                  "capturable": capturable, "differentiable": differentiable})

    _on_devices = "params, mu_products and state_steps"

    def _first_state(self, parameter, group):
        return {"step": counter(parameter, group), "mu_product": counter(parameter, group, 1.0),
                "exp_avg": umbra.zeros_like(parameter), "exp_avg_sq": umbra.zeros_like(parameter)}

    def _update(self, parameter, gradient, group, state):
        gradient = self._moments(parameter, gradient, group, state)
        beta1, beta2 = group["betas"]
        step = count_of(state["step"], group)
        momentum, following = (beta1 * (1.0 - 0.5 * 0.96 ** (t * group["momentum_decay"])) for t in (step, step + 1))
        state["mu_product"] *= momentum
        product = state["mu_product"] if group["differentiable"] else count_of(state["mu_product"], group)
        size = state["exp_avg_sq"].div(1 - beta2 ** step).sqrt().add(group["eps"])
        of_gradient = -group["lr"] * (1.0 - momentum) / (1.0 - product)
        of_average = -group["lr"] * following / (1.0 - product * following)
        if group["differentiable"]:
            parameter.add_(gradient * of_gradient / size).add_(state["exp_avg"] * of_average / size)
        else:
            add_quotient(parameter, gradient, size, of_gradient, group)
            add_quotient(parameter, state["exp_avg"], size, of_average, group)


nadam = as_function(NAdam, "nadam", {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq", "mu_products": "mu_product", "state_steps": "step"},
                    "decoupled_weight_decay foreach capturable differentiable has_complex maximize",
                    "beta1 beta2 lr weight_decay momentum_decay eps")
