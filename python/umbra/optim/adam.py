"""Adam."""
import umbra
from umbra.optim._as_function import as_function
from umbra.optim.optimizer import (Optimizer, add_quotient, add_square, check_betas, check_implementation, check_options, count_of, counter,
                                   keep_largest)


class Adam(Optimizer):
    """Steps along the mean gradient over the root of its mean square; weight decay is added to the gradient."""
    _decoupled = False
    _sparse_refusal = "Adam does not support sparse gradients, please consider SparseAdam instead"

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay: float = 0, amsgrad=False, *, foreach=None, maximize=False,
                 capturable=False, differentiable=False, fused=None, decoupled_weight_decay=False):
        check_options(lr=lr)
        if isinstance(lr, umbra.Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        check_options(eps=eps)
        check_betas(betas, foreach, capturable)
        check_options(weight_decay=weight_decay)
        check_implementation(foreach, fused, differentiable)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize,
                                  "foreach": foreach, "capturable": capturable, "differentiable": differentiable, "fused": fused,
                                  "decoupled_weight_decay": decoupled_weight_decay or self._decoupled})

    def _first_state(self, parameter, group):
        averages = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")
        return {"step": counter(parameter, group), **{name: umbra.zeros_like(parameter) for name in averages}}

    def _update(self, parameter, gradient, group, state):
        beta1, beta2 = group["betas"]
        lr, decay = group["lr"], group["weight_decay"]
        if group["fused"]:
            state["step"] += 1
            step = umbra._fused_adamw_ if group["decoupled_weight_decay"] else umbra._fused_adam_
            largest = [state["max_exp_avg_sq"]] if group["amsgrad"] else []
            step([parameter], [gradient], [state["exp_avg"]], [state["exp_avg_sq"]], largest, [state["step"]], lr=lr, beta1=beta1, beta2=beta2,
                 weight_decay=decay, eps=group["eps"], amsgrad=group["amsgrad"], maximize=group["maximize"])
            return
        if group["maximize"]:
            gradient = -gradient
        if decay != 0 and group["decoupled_weight_decay"]:
            parameter.mul_(1 - lr * decay)
        elif decay != 0:
            gradient = gradient.add(parameter, alpha=decay)
        state["step"] += 1
        step = count_of(state["step"], group)
        state["exp_avg"].lerp_(gradient, 1 - beta1)
        add_square(state["exp_avg_sq"].mul_(beta2), gradient, 1 - beta2, group)
        squares = state["exp_avg_sq"]
        if group["amsgrad"]:
            squares = keep_largest(state["max_exp_avg_sq"], squares, group)
        denominator = (squares.sqrt() / (1 - beta2 ** step) ** 0.5).add_(group["eps"])
        add_quotient(parameter, state["exp_avg"], denominator, -lr / (1 - beta1 ** step), group)


adam = as_function(Adam, "adam", {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq", "max_exp_avg_sqs": "max_exp_avg_sq", "state_steps": "step"},
                   "foreach capturable differentiable fused grad_scale found_inf has_complex decoupled_weight_decay",
                   "amsgrad beta1 beta2 lr weight_decay eps maximize")
