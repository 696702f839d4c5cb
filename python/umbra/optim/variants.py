"""Adam with Nesterov's momentum or with a corrected start (NAdam, RAdam), descent by signs (Rprop), averaged descent (ASGD)."""
import math

import umbra
from umbra.optim.optimizer import Optimizer, check_betas, check_options, decayed


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


class NAdam(_Moments):
    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3, decoupled_weight_decay=False, *,
                 foreach=None, maximize=False, capturable=False, differentiable=False):
        check_options(lr=lr, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
                                  "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach,
                                  "capturable": capturable, "differentiable": differentiable})

    def _update(self, parameter, gradient, group, state):
        if not state:
            state["step"] = umbra.tensor(0.0)
            state["mu_product"] = umbra.tensor(1.0)
            state["exp_avg"] = umbra.zeros_like(parameter)
            state["exp_avg_sq"] = umbra.zeros_like(parameter)
        gradient = self._moments(parameter, gradient, group, state)
        beta1, beta2 = group["betas"]
        step = state["step"].item()
        momentum, following = (beta1 * (1.0 - 0.5 * 0.96 ** (t * group["momentum_decay"])) for t in (step, step + 1))
        state["mu_product"] *= momentum
        product = state["mu_product"].item()
        size = state["exp_avg_sq"].div(1 - beta2 ** step).sqrt().add_(group["eps"])
        parameter.addcdiv_(gradient, size, value=-group["lr"] * (1.0 - momentum) / (1.0 - product))
        parameter.addcdiv_(state["exp_avg"], size, value=-group["lr"] * following / (1.0 - product * following))


class RAdam(_Moments):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False, *, foreach=None,
                 maximize=False, capturable=False, differentiable=False):
        check_options(lr=lr, eps=eps, weight_decay=weight_decay)
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize, "foreach": foreach,
                                  "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay, "differentiable": differentiable})

    def _update(self, parameter, gradient, group, state):
        if not state:
            state["step"] = umbra.tensor(0.0)
            state["exp_avg"] = umbra.zeros_like(parameter)
            state["exp_avg_sq"] = umbra.zeros_like(parameter)
        self._moments(parameter, gradient, group, state)
        beta1, beta2 = group["betas"]
        step = state["step"].item()
        mean = state["exp_avg"] / (1 - beta1 ** step)
        # How long the running mean of squares is; while it is short its variance is too large to divide by it.
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2 ** step / (1 - beta2 ** step)
        if length > 5.0:
            correction = math.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
            size = state["exp_avg_sq"].sqrt().add_(group["eps"])
            mean = mean * (correction * math.sqrt(1 - beta2 ** step)) / size
        parameter.add_(mean, alpha=-group["lr"])


class Rprop(Optimizer):
    def __init__(self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False, foreach=None, maximize=False,
                 differentiable=False):
        check_options(lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
                                  "differentiable": differentiable, "capturable": capturable})

    def _update(self, parameter, gradient, group, state):
        if not state:
            state["step"] = umbra.tensor(0.0)
            state["prev"] = umbra.zeros_like(parameter)
            state["step_size"] = umbra.full_like(gradient, group["lr"])
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


class ASGD(Optimizer):
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
        state["eta"] = umbra.tensor(group["lr"] / (1 + group["lambd"] * group["lr"] * step) ** group["alpha"])
        state["mu"] = umbra.tensor(1 / max(1.0, step - group["t0"]))
