"""Gradient descent, with momentum."""
import umbra
from umbra._C import Tensor
from umbra.optim._as_function import as_function
from umbra.optim.optimizer import Optimizer, add_scaled, check_implementation, check_options, decayed


class SGD(Optimizer):
    """Gradient descent, with momentum."""
    _sparse_refusal = None

    def __init__(self, params, lr=1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0, nesterov=False, *, maximize=False, foreach=None,
                 differentiable=False, fused=None):
        check_options(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_implementation(foreach, fused, differentiable)
        super().__init__(params, {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
                                  "maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused})

    _needs_state = staticmethod(lambda group: group["momentum"] != 0)

    def _init_group(self, group, params, grads, momentum_buffer_list):
        """Appends the parameters with gradients, these and their momenta, None where there are none yet; whether a gradient is sparse."""
        super()._init_group(group, params, grads)
        if group["momentum"] != 0:
            momentum_buffer_list += [self.state[parameter].get("momentum_buffer") for parameter in params[len(momentum_buffer_list):]]
        return any(parameter.grad is not None and parameter.grad.is_sparse for parameter in group["params"])

    def _update_fused(self, parameter, gradient, group, state):
        if gradient.is_sparse:
            raise RuntimeError("`_fused_sgd` does not support sparse gradients")
        first = group["momentum"] != 0 and state.get("momentum_buffer") is None
        if first:
            state["momentum_buffer"] = umbra.empty_like(parameter)
        buffers = [state["momentum_buffer"]] if group["momentum"] != 0 else []
        umbra._fused_sgd_([parameter], [gradient], buffers, weight_decay=group["weight_decay"], momentum=group["momentum"], lr=group["lr"],
                          dampening=group["dampening"], nesterov=group["nesterov"], maximize=group["maximize"], is_first_step=first)

    def _update(self, parameter, gradient, group, state):
        if group["fused"]:
            return self._update_fused(parameter, gradient, group, state)
        gradient = decayed(parameter, gradient, group)
        if group["momentum"] != 0:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = gradient.detach().clone()
            else:
                buffer.mul_(group["momentum"]).add_(gradient, alpha=1 - group["dampening"])
            gradient = gradient.add(buffer, alpha=group["momentum"]) if group["nesterov"] else buffer
        rate = group["lr"]
        if isinstance(rate, Tensor):
            add_scaled(parameter, gradient, -rate, group)
        else:
            parameter.add_(gradient, alpha=-rate)


sgd = as_function(SGD, "sgd", {"momentum_buffer_list": "momentum_buffer"},
                  "has_sparse_grad foreach fused grad_scale found_inf",
                  "weight_decay momentum lr dampening nesterov maximize", gradients="d_p_list")
