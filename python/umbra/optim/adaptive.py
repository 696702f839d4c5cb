"""Rates for each element, from the squares of its gradients: RMSprop, Adagrad, Adadelta, Adamax."""
import umbra
from umbra.optim.optimizer import Optimizer, check_betas, check_implementation, check_options, decayed


class RMSprop(Optimizer):
    def __init__(self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False, capturable=False, foreach=None,
                 maximize=False, differentiable=False):
        check_options(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(params, {"lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered, "weight_decay": weight_decay,
                                  "capturable": capturable, "foreach": foreach, "maximize": maximize, "differentiable": differentiable})

    def _update(self, parameter, gradient, group, state):
        if not state:
            state["step"] = umbra.tensor(0.0)
            state["square_avg"] = umbra.zeros_like(parameter)
            if group["momentum"] > 0:
                state["momentum_buffer"] = umbra.zeros_like(parameter)
            if group["centered"]:
                state["grad_avg"] = umbra.zeros_like(parameter)
        gradient = decayed(parameter, gradient, group)
        state["step"] += 1
        squares, alpha = state["square_avg"], group["alpha"]
        squares.mul_(alpha).addcmul_(gradient, gradient, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"].lerp_(gradient, 1 - alpha)
            squares = squares.addcmul(mean, mean, value=-1)
        size = squares.sqrt().add_(group["eps"])
        if group["momentum"] > 0:
            buffer = state["momentum_buffer"].mul_(group["momentum"]).addcdiv_(gradient, size)
            parameter.add_(buffer, alpha=-group["lr"])
        else:
            parameter.addcdiv_(gradient, size, value=-group["lr"])


class Adagrad(Optimizer):
    def __init__(self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, foreach=None, *, maximize=False,
                 differentiable=False, fused=None):
        check_options(lr=lr, lr_decay=lr_decay, weight_decay=weight_decay, initial_accumulator_value=initial_accumulator_value, eps=eps)
        check_implementation(foreach, fused, differentiable)
        super().__init__(params, {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
                                  "initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize,
                                  "differentiable": differentiable, "fused": fused})
        for group in self.param_groups:
            for parameter in group["params"]:
                start = group["initial_accumulator_value"]
                start = complex(start, start) if parameter.is_complex() else start
                self.state[parameter] = {"step": umbra.tensor(0.0), "sum": umbra.full_like(parameter, start)}

    def _update(self, parameter, gradient, group, state):
        if group["fused"]:
            state["step"] += 1
            umbra._fused_adagrad_([parameter], [gradient], [state["sum"]], [state["step"]], lr=group["lr"], lr_decay=group["lr_decay"],
                                  weight_decay=group["weight_decay"], eps=group["eps"], maximize=group["maximize"])
            return
        gradient = decayed(parameter, gradient, group)
        state["step"] += 1
        rate = group["lr"] / (1 + (state["step"].item() - 1) * group["lr_decay"])
        state["sum"].addcmul_(gradient, gradient, value=1)
        parameter.addcdiv_(gradient, state["sum"].sqrt().add_(group["eps"]), value=-rate)


class Adadelta(Optimizer):
    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, capturable=False, maximize=False,
                 differentiable=False):
        check_options(lr=lr, eps=eps, weight_decay=weight_decay)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize, "capturable": capturable,
                                  "foreach": foreach, "differentiable": differentiable})

    def _update(self, parameter, gradient, group, state):
        if not state:
            state["step"] = umbra.tensor(0.0)
            state["square_avg"] = umbra.zeros_like(parameter)
            state["acc_delta"] = umbra.zeros_like(parameter)
        gradient = decayed(parameter, gradient, group)
        state["step"] += 1
        rho, eps = group["rho"], group["eps"]
        squares, changes = state["square_avg"], state["acc_delta"]
        squares.mul_(rho).addcmul_(gradient, gradient, value=1 - rho)
        change = changes.add(eps).sqrt_().div_(squares.add(eps).sqrt_()).mul_(gradient)
        changes.mul_(rho).addcmul_(change, change, value=1 - rho)
        parameter.add_(change, alpha=-group["lr"])


class Adamax(Optimizer):
    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None, *, maximize=False, differentiable=False,
                 capturable=False):
        check_options(lr=lr, eps=eps, weight_decay=weight_decay)
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
                                  "differentiable": differentiable, "capturable": capturable})

    def _update(self, parameter, gradient, group, state):
        if not state:
            state["step"] = umbra.tensor(0.0)
            state["exp_avg"] = umbra.zeros_like(parameter)
            state["exp_inf"] = umbra.zeros_like(parameter)
        gradient = decayed(parameter, gradient, group)
        state["step"] += 1
        beta1, beta2 = group["betas"]
        state["exp_avg"].lerp_(gradient, 1 - beta1)
        largest = state["exp_inf"]
        largest.copy_(umbra.maximum(largest.mul_(beta2), gradient.abs().add_(group["eps"])))
        parameter.addcdiv_(state["exp_avg"], largest, value=-group["lr"] / (1 - beta1 ** state["step"].item()))
