"""Learning rates that change from epoch to epoch.

    scheduler = CosineAnnealingLR(optimizer, T_max=100)
    for epoch in range(100):
        train(...)
        scheduler.step()
"""
import bisect
import math

from umbra.optim.optimizer import Optimizer


class LRScheduler:
    """Sets the rate of each group of an optimizer, at once and at every step()."""

    def __init__(self, optimizer, last_epoch=-1):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an optimizer")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def get_lr(self):
        """The rates for `last_epoch`, from those of the epoch before."""
        raise NotImplementedError

    def _get_closed_form_lr(self):
        """The rates for `last_epoch`, from the initial ones."""
        return self.get_lr()

    def get_last_lr(self):
        return self._last_lr

    def step(self, epoch=None):
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set(self.get_lr() if epoch is None else self._get_closed_form_lr())

    def _set(self, rates):
        for group, rate in zip(self.optimizer.param_groups, rates):
            group["lr"] = rate
        self._last_lr = list(rates)

    def _rates(self):
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self):
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict):
        self.__dict__.update(state_dict)


class LambdaLR(LRScheduler):
    """The initial rate times `lr_lambda(epoch)`; one function, or one for each group."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        groups = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [base * factor(self.last_epoch) for base, factor in zip(self.base_lrs, self.lr_lambdas)]

    def state_dict(self):
        return {name: value for name, value in super().state_dict().items() if name != "lr_lambdas"}


class _FactorLR(LRScheduler):
    """The initial rate times a factor of the epoch. Each step multiplies, so that several schedulers of one optimizer add up."""

    def _factor(self, epoch):
        raise NotImplementedError

    def get_lr(self):
        before = self._factor(self.last_epoch - 1) if self.last_epoch > 0 else 1.0
        change = self._factor(self.last_epoch) / before if before else 0.0
        return [rate * change for rate in self._rates()]

    def _get_closed_form_lr(self):
        return [base * self._factor(self.last_epoch) for base in self.base_lrs]


class StepLR(_FactorLR):
    """Times gamma every `step_size` epochs."""

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch):
        return self.gamma ** (epoch // self.step_size)


class MultiStepLR(_FactorLR):
    """Times gamma at each milestone."""

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch):
        return self.gamma ** bisect.bisect_right(self.milestones, epoch)


class ExponentialLR(_FactorLR):
    """Times gamma every epoch."""

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch):
        return self.gamma ** epoch


class LinearLR(_FactorLR):
    """From start_factor to end_factor in `total_iters` epochs, then constant."""

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if not 0.0 < start_factor <= 1.0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0.0 <= end_factor <= 1.0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch):
        return self.start_factor + (self.end_factor - self.start_factor) * min(epoch, self.total_iters) / self.total_iters


class ConstantLR(_FactorLR):
    """Times `factor` during the first `total_iters` epochs."""

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if not 0.0 <= factor <= 1.0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch):
        return self.factor if epoch < self.total_iters else 1.0


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial rate down to eta_min in T_max epochs, and up again."""

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, epoch):
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def get_lr(self):
        if self.last_epoch == 0:
            return self._rates()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # the epoch before stood at the bottom
            return self._get_closed_form_lr()
        change = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [self.eta_min + (rate - self.eta_min) * change for rate in self._rates()]

    def _get_closed_form_lr(self):
        return [self.eta_min + (base - self.eta_min) * self._height(self.last_epoch) / 2 for base in self.base_lrs]


class SequentialLR(LRScheduler):
    """One scheduler after the other: the next one starts, from its own beginning, at each milestone."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        if len(schedulers) < 1:
            raise ValueError("SequentialLR expects at least one scheduler to be chained, but got no scheduler.")
        if any(scheduler.optimizer is not optimizer for scheduler in schedulers):
            raise ValueError("SequentialLR expects all schedulers to belong to the same optimizer as the one given")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError("SequentialLR expects number of schedulers provided to be one more than the number of milestone points, but got "
                             f"number of schedulers {len(schedulers)} and the number of milestones to be equal to {len(milestones)}")
        self.optimizer, self.milestones, self.last_epoch = optimizer, list(milestones), last_epoch + 1
        self._schedulers = list(schedulers)
        # Each scheduler took its first step when it was made: the rates go back, and the first one starts alone.
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for scheduler in schedulers:
            scheduler.last_epoch -= 1
        schedulers[0].step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self):
        self.last_epoch += 1
        i = bisect.bisect_right(self.milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        starts = i > 0 and self.milestones[i - 1] == self.last_epoch
        scheduler.step(0) if starts else scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self):
        state = {name: value for name, value in super().state_dict().items() if name != "_schedulers"}
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict):
        state = dict(state_dict)
        for scheduler, own in zip(self._schedulers, state.pop("_schedulers")):
            scheduler.load_state_dict(own)
        self.__dict__.update(state)


class ReduceLROnPlateau:
    """Times `factor` when a metric has not improved for `patience` epochs: `scheduler.step(validation_loss)`."""

    def __init__(self, optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4, threshold_mode="rel", cooldown=0, min_lr=0, eps=1e-8):
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        self.min_lrs = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * len(optimizer.param_groups)
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0
        self._last_lr = [group["lr"] for group in optimizer.param_groups]

    def get_last_lr(self):
        return self._last_lr

    def _improves(self, value):
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "abs":
            margin = self.threshold
        else:
            margin = abs(self.best) * self.threshold if math.isfinite(self.best) else 0.0
        return sign * (value - self.best) > margin

    def step(self, metrics, epoch=None):
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._improves(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, least in zip(self.optimizer.param_groups, self.min_lrs):
                reduced = max(group["lr"] * self.factor, least)
                if group["lr"] - reduced > self.eps:
                    group["lr"] = reduced
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    state_dict = LRScheduler.state_dict
    load_state_dict = LRScheduler.load_state_dict
