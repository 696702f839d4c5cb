"""L-BFGS: steps along directions that the last gradients and steps tell of the curvature."""
import umbra
from umbra.optim._line_search import StrongWolfeSearch
from umbra.optim.optimizer import Optimizer, _get_value, check_options


class LBFGS(Optimizer):
    """`step(closure)` calls the closure again and again, up to `max_iter` steps, each of the length `lr`; with
    `line_search_fn="strong_wolfe"`, of a length that a search along the direction finds."""

    def __init__(self, params, lr: float = 1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9, history_size=100,
                 line_search_fn=None, *, maximize=False):
        check_options(lr=lr)
        super().__init__(params, {"lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                                  "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
                                  "line_search_fn": line_search_fn, "maximize": maximize})
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def __setstate__(self, state):
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]

    def _complete(self):
        for group in self.param_groups:
            group.setdefault("maximize", False)

    def _gather_flat_grad(self):
        """The gradients of all parameters as one vector of real numbers, of what is to become smaller."""
        parts = [umbra.zeros_like(p) if p.grad is None else p.grad.to_dense() if p.grad.is_sparse else p.grad for p in self._params]
        gradient = umbra.cat([(umbra.view_as_real(g) if g.is_complex() else g).reshape(-1) for g in parts])
        return -gradient if self.param_groups[0]["maximize"] else gradient

    def _add_grad(self, step_size, update):
        start = 0
        for parameter in self._params:
            parameter = umbra.view_as_real(parameter) if parameter.is_complex() else parameter
            end = start + parameter.numel()
            parameter.add_(update[start:end].view_as(parameter), alpha=step_size)
            start = end

    def _clone_param(self):
        return [parameter.clone(memory_format=umbra.contiguous_format) for parameter in self._params]

    def _set_param(self, params_data):
        for parameter, value in zip(self._params, params_data, strict=True):
            parameter.copy_(value)

    @umbra.no_grad()
    def step(self, closure):
        """`closure()` evaluates the model anew, makes the gradients and gives the loss. Returns the first loss."""
        group, state = self.param_groups[0], self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        run = umbra.enable_grad()(closure)

        def evaluate():
            return -float(run()) if group["maximize"] else float(run())

        first = run()
        loss, gradient, evaluations = -float(first) if group["maximize"] else float(first), self._gather_flat_grad(), 1
        state["func_evals"] += 1
        if gradient.abs().max() <= group["tolerance_grad"]:
            return first
        for count in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(gradient, group, state)
            before, state["prev_flat_grad"], state["prev_loss"] = loss, gradient.clone(), loss
            rate = group["lr"]
            state["d"], state["t"] = direction, min(1.0, 1.0 / gradient.abs().sum()) * rate if state["n_iter"] == 1 else rate
            length = _get_value(state["t"])
            slope = gradient.dot(direction)
            if slope > -group["tolerance_change"]:
                break
            calls = 0
            if group["line_search_fn"] is not None:
                loss, gradient, calls = self._search(evaluate, loss, gradient, slope, group["max_eval"] - evaluations)
            else:
                self._add_grad(length, direction)
                if count < group["max_iter"]:
                    loss, gradient, calls = evaluate(), self._gather_flat_grad(), 1
            evaluations += calls
            state["func_evals"] += calls
            if (evaluations >= group["max_eval"] or gradient.abs().max() <= group["tolerance_grad"]
                    or (direction * state["t"]).abs().max() <= group["tolerance_change"] or abs(loss - before) < group["tolerance_change"]):
                break
        return first

    def _search(self, evaluate, loss, gradient, slope, tries):
        """Moves the parameters as far along the direction as the search says: the loss and the gradient there, and how often it looked."""
        group, state = self.param_groups[0], self.state[self._params[0]]
        if group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        direction, start = state["d"], self._clone_param()

        def look(length):
            self._add_grad(_get_value(length), direction)
            found = evaluate(), self._gather_flat_grad()
            self._set_param(start)
            return found

        search = StrongWolfeSearch(look, direction, loss, gradient, slope, group["tolerance_change"], tries)
        point = search.run(state["t"])  # a tensor stays one, and divides by zero without an error
        self._add_grad(_get_value(point.length), direction)
        state["t"] = point.length
        return point.loss, point.gradient, search.evaluations

    @staticmethod
    def _direction(gradient, group, state):
        """Minus the gradient, times what is known of the inverse of the second derivatives."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return -gradient
        changes, steps, weights = state["old_dirs"], state["old_stps"], state["ro"]
        change, step = gradient - state["prev_flat_grad"], state["d"] * state["t"]
        curvature = change.dot(step)
        if curvature > 1e-10:
            if len(changes) == group["history_size"]:
                for past in (changes, steps, weights):
                    past.pop(0)
            changes.append(change)
            steps.append(step)
            weights.append(1.0 / curvature)
            state["H_diag"] = curvature / change.dot(change)
        direction, shares = -gradient, []
        kept = state.setdefault("al", [None] * group["history_size"])  # PyTorch has the shares in its state
        for change, step, weight in zip(reversed(changes), reversed(steps), reversed(weights)):
            shares.append(step.dot(direction) * weight)
            direction = direction - change * shares[-1]
        kept[:len(shares)] = reversed(shares)
        direction = direction * state["H_diag"]
        for change, step, weight, share in zip(changes, steps, weights, reversed(shares)):
            direction = direction + step * (share - change.dot(direction) * weight)
        return direction
