"""Learning rates that change from epoch to epoch.

    scheduler = CosineAnnealingLR(optimizer, T_max=100)
    for epoch in range(100):
        train(...)
        scheduler.step()
"""
import bisect
import collections
import math
import types
import warnings

from umbra.optim._scheduler import EPOCH_GIVEN, LRScheduler, check_optimizer, for_each_group, for_steps, set_value


def _saved_function(function):
    """What is saved of a function that a scheduler calls: of an object its attributes, of a plain function nothing."""
    return None if function is None or isinstance(function, types.FunctionType) else dict(function.__dict__)


_LRScheduler = LRScheduler  # its older name


class _FunctionLR(LRScheduler):
    """What goes by a function of the user's; one, or one for each group."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        self.lr_lambdas = for_each_group(optimizer, lr_lambda, "lr_lambdas")
        super().__init__(optimizer, last_epoch)

    def state_dict(self):
        state = super().state_dict()
        functions = state.pop("lr_lambdas")
        return {**state, "lr_lambdas": [_saved_function(function) for function in functions]}

    def load_state_dict(self, state_dict):
        state = dict(state_dict)
        saved = state.pop("lr_lambdas")
        super().load_state_dict(state)
        for function, attributes in zip(self.lr_lambdas, saved):
            if attributes is not None:
                function.__dict__.update(attributes)


class LambdaLR(_FunctionLR):
    """The initial rate times `lr_lambda(epoch)`; one function, or one for each group."""

    @for_steps
    def get_lr(self):
        return [base * factor(self.last_epoch) for base, factor in zip(self.base_lrs, self.lr_lambdas)]


class _FactorLR(LRScheduler):
    """The initial rate times a factor of the epoch. Each step multiplies by a change, so that several schedulers of one optimizer add up."""

    def _factor(self, epoch):
        raise NotImplementedError

    def _change(self, epoch):
        """What the rates are multiplied with when `epoch` begins; None where they stay."""
        raise NotImplementedError

    @for_steps
    def get_lr(self):
        change = self._change(self.last_epoch)
        return self._rates() if change is None else [rate * change for rate in self._rates()]

    def _get_closed_form_lr(self):
        return [base * self._factor(self.last_epoch) for base in self.base_lrs]


class StepLR(_FactorLR):
    """Times gamma every `step_size` epochs."""

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch):
        return self.gamma ** (epoch // self.step_size)

    def _change(self, epoch):
        return None if epoch == 0 or epoch % self.step_size else self.gamma


class MultiStepLR(_FactorLR):
    """Times gamma at each milestone."""

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones, self.gamma = collections.Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch):
        return self.gamma ** bisect.bisect_right(sorted(self.milestones.elements()), epoch)

    def _change(self, epoch):
        return self.gamma ** self.milestones[epoch] if epoch in self.milestones else None


class ExponentialLR(_FactorLR):
    """Times gamma every epoch."""

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch):
        return self.gamma ** epoch

    def _change(self, epoch):
        return None if epoch == 0 or self._resumes() else self.gamma


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
        if self.total_iters == 0:
            return self.start_factor
        return self.start_factor + (self.end_factor - self.start_factor) * min(epoch, self.total_iters) / self.total_iters

    def _change(self, epoch):
        if epoch == 0:
            return self.start_factor
        if self._resumes() or epoch > self.total_iters:
            return None
        slope = self.end_factor - self.start_factor
        return 1.0 + slope / (self.total_iters * self.start_factor + (epoch - 1) * slope)


class ConstantLR(_FactorLR):
    """Times `factor` during the first `total_iters` epochs."""

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if not 0.0 <= factor <= 1.0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch):
        return self.factor if epoch < self.total_iters else 1.0

    def _change(self, epoch):
        if epoch == 0:
            return self.factor
        return 1.0 / self.factor if epoch == self.total_iters else None


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial rate down to eta_min in T_max epochs, and up again."""

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, epoch):
        return 1 + math.cos(math.pi * epoch / self.T_max)

    @for_steps
    def get_lr(self):
        if self.last_epoch == 0 or self._resumes():
            return self._rates()
        if self._step_count == 1:
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # the epoch before stood at the bottom
            rise = 1 - math.cos(math.pi / self.T_max)
            return [rate + (base - self.eta_min) * rise / 2 for rate, base in zip(self._rates(), self.base_lrs)]
        change = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [change * (rate - self.eta_min) + self.eta_min for rate in self._rates()]

    def _get_closed_form_lr(self):
        return [self.eta_min + (base - self.eta_min) * self._height(self.last_epoch) / 2 for base in self.base_lrs]


class MultiplicativeLR(_FunctionLR):
    """The rate of the epoch before times `lr_lambda(epoch)`; one function, or one for each group."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        for function in lr_lambda if isinstance(lr_lambda, (list, tuple)) else [lr_lambda]:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")
        super().__init__(optimizer, lr_lambda, last_epoch)

    @for_steps
    def get_lr(self):
        if self._is_initial:
            return self._rates()
        return [rate * factor(self.last_epoch) for rate, factor in zip(self._rates(), self.lr_lambdas)]


class PolynomialLR(_FactorLR):
    """Down to 0 in `total_iters` epochs, along a power of what is left of them."""

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch):
        return (1.0 - min(epoch, self.total_iters) / self.total_iters) ** self.power if self.total_iters else 1.0

    def _change(self, epoch):
        if epoch == 0 or self._resumes() or epoch > self.total_iters:
            return None
        return ((1.0 - epoch / self.total_iters) / (1.0 - (epoch - 1) / self.total_iters)) ** self.power


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine down to eta_min in T_0 epochs, then again from the initial rate in T_mult times as many. Epochs may be fractions."""

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    @for_steps
    def get_lr(self):
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def step(self, epoch=None):
        self._update_lr(epoch)

    def _update_lr(self, epoch=None):
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._find_cycle(epoch)
        self.last_epoch = math.floor(epoch)
        self._set(self._within_step(self.get_lr))

    def _find_cycle(self, epoch):
        self.T_cur, self.T_i = epoch, self.T_0
        if epoch < self.T_0:
            return
        if self.T_mult == 1:
            self.T_cur = epoch % self.T_0
            return
        cycle = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
        self.T_cur = epoch - self.T_0 * (self.T_mult ** cycle - 1) / (self.T_mult - 1)
        self.T_i = self.T_0 * self.T_mult ** cycle


class _MomentumLR(LRScheduler):
    """What moves the momentum against the rate: that of SGD, or the first beta of Adam."""

    def _choose_momentum(self, optimizer, cycle_momentum):
        if cycle_momentum and "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = "betas" in optimizer.defaults

    def _set_momentum(self, group, value):
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_MomentumLR):
    """Up from base_lr to max_lr and down again, over and over; the height of a cycle may shrink."""

    def __init__(self, optimizer, base_lr, max_lr, step_size_up=2000, step_size_down=None, mode="triangular", gamma=1.0, scale_fn=None,
                 scale_mode="cycle", cycle_momentum=True, base_momentum=0.8, max_momentum=0.9, last_epoch=-1):
        check_optimizer(optimizer)
        if mode not in _CYCLE_SCALES and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        base_lrs = for_each_group(optimizer, base_lr, "base_lr")
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, base_lrs):
                set_value(group, "lr", rate)
        self.max_lrs = for_each_group(optimizer, max_lr, "max_lr")
        step_size_down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + step_size_down)
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self._choose_momentum(optimizer, cycle_momentum)
        if cycle_momentum:
            self.base_momentums = for_each_group(optimizer, base_momentum, "base_momentum")
            self.max_momentums = for_each_group(optimizer, max_momentum, "max_momentum")
            for group, base, most in zip(optimizer.param_groups, self.base_momentums, self.max_momentums):
                if last_epoch == -1:
                    self._set_momentum(group, most)
                group["max_momentum"], group["base_momentum"] = most, base
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x):
        return self._scale_fn_custom(x) if self._scale_fn_custom is not None else _CYCLE_SCALES[self.mode](self.gamma, x)

    @for_steps
    def get_lr(self):
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, base, most in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                self._set_momentum(group, most - (most - base) * height)
        return [base + (most - base) * height for base, most in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self):
        state = super().state_dict()
        custom = state.pop("_scale_fn_custom")
        return {**state, "_scale_fn_custom": _saved_function(custom)}

    def load_state_dict(self, state_dict):
        state = dict(state_dict)
        attributes = state.pop("_scale_fn_custom", None)
        super().load_state_dict(state)
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)


_CYCLE_SCALES = {"triangular": lambda gamma, x: 1.0, "triangular2": lambda gamma, x: 1 / 2.0 ** (x - 1), "exp_range": lambda gamma, x: gamma ** x}


def _phase(end_step, start_lr, end_lr, start_momentum, end_momentum):
    return {"end_step": end_step, "start_lr": start_lr, "end_lr": end_lr, "start_momentum": start_momentum, "end_momentum": end_momentum}


class OneCycleLR(_MomentumLR):
    """One rise to max_lr and one long fall far below the start, in `total_steps` steps."""

    def __init__(self, optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3, anneal_strategy="cos",
                 cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, div_factor=25.0, final_div_factor=1e4, three_phase=False,
                 last_epoch=-1):
        self.total_steps = self._count_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        # Where each phase ends, and between which of a group's rates and momenta it leads.
        top, end = pct_start * self.total_steps - 1, self.total_steps - 1
        rise = _phase(float(top), "initial_lr", "max_lr", "max_momentum", "base_momentum")
        if three_phase:
            fall = _phase(float(2 * pct_start * self.total_steps - 2), "max_lr", "initial_lr", "base_momentum", "max_momentum")
            self._schedule_phases = [rise, fall, _phase(end, "initial_lr", "min_lr", "max_momentum", "max_momentum")]
        else:
            self._schedule_phases = [rise, _phase(end, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        self._choose_momentum(optimizer, cycle_momentum)
        if last_epoch == -1:
            self._prepare(optimizer, max_lr, div_factor, final_div_factor, base_momentum, max_momentum)
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _count_steps(total_steps, epochs, steps_per_epoch):
        given = {"total_steps": total_steps} if total_steps is not None else {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        if any(value is None for value in given.values()):
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        for name, value in given.items():
            if value <= 0 or not isinstance(value, int):
                raise ValueError(f"Expected positive integer {name}, but got {value}")
        return math.prod(given.values())

    def _prepare(self, optimizer, max_lr, div_factor, final_div_factor, base_momentum, max_momentum):
        for group, most in zip(optimizer.param_groups, for_each_group(optimizer, max_lr, "max_lr")):
            group["initial_lr"], group["max_lr"] = most / div_factor, most
            group["min_lr"] = group["initial_lr"] / final_div_factor
        if not self.cycle_momentum:
            return
        momenta = zip(for_each_group(optimizer, base_momentum, "base_momentum"), for_each_group(optimizer, max_momentum, "max_momentum"))
        for group, (base, most) in zip(optimizer.param_groups, momenta):
            self._set_momentum(group, most)
            group["max_momentum"], group["base_momentum"] = most, base

    @staticmethod
    def _annealing_cos(start, end, pct):
        return end + (start - end) / 2.0 * (math.cos(math.pi * pct) + 1)

    @staticmethod
    def _annealing_linear(start, end, pct):
        return (end - start) * pct + start

    def _anneal_func(self, *args, **kwargs):
        return (self._annealing_linear if self._anneal_func_type == "linear" else self._annealing_cos)(*args, **kwargs)

    @for_steps
    def get_lr(self):
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        begin = 0.0
        for i, phase in enumerate(self._schedule_phases):
            end = phase["end_step"]
            if step <= end or i == len(self._schedule_phases) - 1:
                break
            begin = end
        part = (step - begin) / (end - begin)
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                self._set_momentum(group, self._anneal_func(group[phase["start_momentum"]], group[phase["end_momentum"]], part))
        return [self._anneal_func(group[phase["start_lr"]], group[phase["end_lr"]], part) for group in self.optimizer.param_groups]


def _check_members(owner, schedulers, optimizer):
    """Schedulers that are stepped as one set the rates of one optimizer, and their steps take nothing."""
    name = type(owner).__name__
    for i, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be specified when calling "
                             f"`step`, but got one at index {i} in the given schedulers sequence.")
        if scheduler.optimizer is not optimizer:
            raise ValueError(f"{name} expects all schedulers to belong to the same optimizer, but got scheduler {type(scheduler).__name__} at index "
                             f"{i} has {scheduler.optimizer}, which is different from {type(optimizer).__name__}.")


class ChainedScheduler(LRScheduler):
    """Several schedulers at once: each changes what the one before has set."""

    def __init__(self, schedulers, optimizer=None):
        if len(schedulers) < 1:
            raise ValueError("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        _check_members(self, schedulers, optimizer)
        self.optimizer, self._schedulers = optimizer, list(schedulers)
        self._last_lr = self._rates()

    def step(self):
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()

    def _update_lr(self, epoch=None):
        if epoch is not None:
            raise NotImplementedError("a ChainedScheduler cannot start at a milestone of a SequentialLR")
        for scheduler in self._schedulers:
            scheduler._update_lr()
        self._last_lr = self._rates()

    def _take_back(self):
        for scheduler in self._schedulers:
            scheduler._take_back()

    def state_dict(self):
        return {"_last_lr": self._last_lr, "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict):
        self._last_lr = state_dict["_last_lr"]
        for scheduler, own in zip(self._schedulers, state_dict["_schedulers"]):
            scheduler.load_state_dict(own)


class SequentialLR(LRScheduler):
    """One scheduler after the other: the next one starts, from its own beginning, at each milestone."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        if len(schedulers) < 1:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        _check_members(self, schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError("Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone points, but got "
                             f"number of schedulers {len(schedulers)} and the number of milestones to be equal to {len(milestones)}")
        self.optimizer, self._milestones, self.last_epoch = optimizer, list(milestones), last_epoch + 1
        self._schedulers = list(schedulers)
        # Each scheduler took its first step when it was made: the rates go back, and the first one starts alone.
        for group in optimizer.param_groups:
            set_value(group, "lr", group["initial_lr"])
        for scheduler in schedulers:
            scheduler._take_back()
        first = schedulers[bisect.bisect_right(self._milestones, 0)]
        first._is_initial = True
        first._update_lr()
        first._is_initial = False
        self._last_lr = first.get_last_lr()

    def step(self):
        self.last_epoch += 1
        i = bisect.bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        starts = i > 0 and self._milestones[i - 1] == self.last_epoch
        scheduler._update_lr(0) if starts else scheduler.step()
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


class ReduceLROnPlateau(LRScheduler):
    """Times `factor` when a metric has not improved for `patience` epochs: `scheduler.step(validation_loss)`."""

    def __init__(self, optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4, threshold_mode="rel", cooldown=0, min_lr: float = 0, eps=1e-8):
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        check_optimizer(optimizer)
        if isinstance(min_lr, (list, tuple)) and len(min_lr) != len(optimizer.param_groups):
            raise ValueError(f"expected {len(optimizer.param_groups)} min_lrs, got {len(min_lr)}")
        self.optimizer, self.factor, self.default_min_lr = optimizer, factor, None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * len(optimizer.param_groups)
        self.patience, self.cooldown, self.eps, self.last_epoch = patience, cooldown, eps, 0
        self._last_lr = self._rates()
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _init_is_better(self, mode, threshold, threshold_mode):
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode

    def _reset(self):
        """As if no metric had been seen."""
        self.best, self.cooldown_counter, self.num_bad_epochs = self.mode_worse, 0, 0

    @property
    def in_cooldown(self):
        """Whether the rate was reduced so lately that no epoch counts as bad."""
        return self.cooldown_counter > 0

    def _is_better(self, a, best):
        """Whether a metric is better than the best by more than the threshold."""
        sign = 1 if self.mode == "max" else -1  # a relative threshold moves a best value below zero towards zero, as in PyTorch
        bound = best + sign * self.threshold if self.threshold_mode == "abs" else best * (1 + sign * self.threshold)
        return sign * a > sign * bound

    def step(self, metrics, epoch=None):
        value = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_GIVEN, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(epoch)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._rates()

    def _reduce_lr(self, _):
        """Times `factor`, of every group; the epoch that it happens in is what packages pass."""
        self._match_groups()
        for group, least in zip(self.optimizer.param_groups, self.min_lrs):
            reduced = max(group["lr"] * self.factor, least)
            if group["lr"] - reduced > self.eps:
                set_value(group, "lr", reduced)

    def _match_groups(self):
        """Groups that came later have the least rate that was given for all; where each was given its own, it is missing."""
        groups = len(self.optimizer.param_groups)
        if groups == len(self.min_lrs):
            return
        if self.default_min_lr is None:
            raise RuntimeError(f"The number of param groups in the `optimizer` ({groups}) differs from when `ReduceLROnPlateau` was initialized "
                               f"({len(self.min_lrs)}), usually due to a new param group being added to the optimizer. Please modify the `min_lrs` field to "
                               "match the length of the `optimizer` param groups.")
        self.min_lrs = [self.default_min_lr] * groups
