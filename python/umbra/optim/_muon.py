"""Muon: steps that are orthogonal matrices."""
import math

import umbra
from umbra.optim.optimizer import Optimizer, check_rate


def _orthogonalised(gradient, coefficients, steps, eps):
    """Close to the orthogonal factor of a matrix, by Newton and Schulz's iteration in bfloat16."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if gradient.dim() != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = gradient.size(0) > gradient.size(1)
    x = gradient.to(dtype=umbra.bfloat16, copy=True)
    x = x.T if tall else x
    x.div_(x.norm().clamp(min=eps))
    for _ in range(steps):
        gram = x @ x.T
        x = umbra.addmm(x, umbra.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


_RATES = {None: lambda rows, columns: math.sqrt(max(1, rows / columns)), "original": lambda rows, columns: math.sqrt(max(1, rows / columns)),
          "match_rms_adamw": lambda rows, columns: 0.2 * math.sqrt(max(rows, columns)),
          "spectral_unclamped": lambda rows, columns: math.sqrt(rows / columns)}


class Muon(Optimizer):
    """Momentum whose steps are made orthogonal. For matrices alone."""

    def __init__(self, params, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True, ns_coefficients=(3.4445, -4.775, 2.0315), eps=1e-7, ns_steps=5,
                 adjust_lr_fn=None):
        check_rate(lr)
        for name, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if not value >= 0.0:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in _RATES:
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
                                  "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn})
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.ndim != 2:
                    raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {parameter.size()}")

    def _update_one(self, parameter, group):
        if parameter.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        super()._update_one(parameter, group)

    def _update(self, parameter, gradient, group, state):
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = umbra.zeros_like(gradient)
        buffer = state["momentum_buffer"].lerp_(gradient, 1 - group["momentum"])
        update = gradient.lerp(buffer, group["momentum"]) if group["nesterov"] else buffer
        update = _orthogonalised(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        parameter.add_(update, alpha=-group["lr"] * _RATES[group["adjust_lr_fn"]](*parameter.shape[:2]))
