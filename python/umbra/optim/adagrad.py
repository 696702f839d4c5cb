"""Steps divided by the root of the sum of squares of the gradients."""
import umbra
from umbra.optim._as_function import as_function
from umbra.optim.optimizer import Optimizer, check_implementation, check_options, counter, decayed
from umbra.sparse import with_values


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of squares of the gradients."""
    _sparse_refusal = None

    def __init__(self, params, lr=1e-2, lr_decay: float = 0, weight_decay: float = 0, initial_accumulator_value: float = 0, eps=1e-10, foreach=None, *, maximize=False,
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
                self.state[parameter] = {"step": counter(parameter, group), "sum": umbra.full_like(parameter, start)}

    def _init_group(self, group, *lists):
        sparse = any(parameter.grad is not None and parameter.grad.is_sparse for parameter in group["params"])
        return sparse, super()._init_group(group, *lists)

    def _update(self, parameter, gradient, group, state):
        if gradient.is_sparse:
            return self._update_rows(parameter, gradient, group, state)
        if group["fused"]:
            state["step"] += 1
            umbra._fused_adagrad_([parameter], [gradient], [state["sum"]], [state["step"]], lr=group["lr"], lr_decay=group["lr_decay"],
                                  weight_decay=group["weight_decay"], eps=group["eps"], maximize=group["maximize"])
            return
        gradient = decayed(parameter, gradient, group)
        state["step"] += 1
        rate = self._rate(group, state)
        state["sum"].addcmul_(gradient, gradient, value=1)
        parameter.addcdiv_(gradient, state["sum"].sqrt().add(group["eps"]), value=-rate)

    @staticmethod
    def _rate(group, state):
        return group["lr"] / (1 + (state["step"].item() - 1) * group["lr_decay"])

    def _update_rows(self, parameter, gradient, group, state):
        """A step at the places that a sparse gradient has."""
        if group["fused"]:
            raise RuntimeError("`fused` does not support sparse grad or complex param")
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        gradient = (-gradient if group["maximize"] else gradient).coalesce()
        state["step"] += 1
        rate = self._rate(group, state)
        values = gradient._values()
        state["sum"].add_(with_values(gradient, values.square()))
        spread = state["sum"].sparse_mask(gradient)._values().sqrt_().add_(group["eps"])
        parameter.add_(with_values(gradient, values / spread), alpha=-rate)


adagrad = as_function(Adagrad, "adagrad", {"state_sums": "sum", "state_steps": "step"},
                      "fused grad_scale found_inf has_sparse_grad foreach differentiable has_complex",
                      "lr weight_decay lr_decay eps maximize")
