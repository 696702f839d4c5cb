"""What all schedules of learning rates share."""
import functools
import warnings

from umbra._C import Tensor
from umbra.optim.optimizer import Optimizer

_STEPS_FIRST = ("Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call them in the "
                "opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping the first "
                "value of the learning rate schedule. See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate")
_STEP_REPLACED = ("Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, make sure to call "
                  "`optimizer.step()` before `lr_scheduler.step()`. See more details at "
                  "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate")
EPOCH_GIVEN = ("The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
                "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed form is used instead of "
                "the new chainable form, where available. Please open an issue if you are unable to replicate your use case: "
                "https://github.com/pytorch/pytorch/issues/new/choose.")
_RATES_ASKED = "To get the last learning rate computed by the scheduler, please use `get_last_lr()`."


def copied(value):
    """A rate that stays what it is: one that is a tensor may be written to by its owner."""
    return value.clone() if isinstance(value, Tensor) else value


def set_value(group, key, value):
    """Sets a group's rate or momentum; where that is a tensor, it is written to."""
    if isinstance(group[key], Tensor):
        group[key].fill_(float(value))
    else:
        group[key] = value


def _plain_step(optimizer):
    """The function behind `optimizer.step`, to see whether it is replaced."""
    return getattr(optimizer.step, "__func__", optimizer.step)


def for_steps(get_lr):
    """`get_lr` is what a step asks for the next rates. Who calls it between steps is told that these are not the present ones."""
    @functools.wraps(get_lr)
    def rates(self):
        if not self._get_lr_called_within_step:
            warnings.warn(_RATES_ASKED, UserWarning, stacklevel=2)
        return get_lr(self)
    return rates


def check_optimizer(optimizer):
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


class LRScheduler:
    """Sets the rate of each group of an optimizer, at once and at every step()."""
    __module__ = "umbra.optim.lr_scheduler"

    def __init__(self, optimizer, last_epoch=-1):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch >= 0.\n"
                               "Load the state of the optimizer before the scheduler is made, or give last_epoch=-1 to start anew.")
        self.base_lrs = [copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._optimizer_step = _plain_step(optimizer)
        self._initial_step()

    def _initial_step(self):
        """The step that gives the first rates. Packages call it again."""
        self._step_count, self._is_initial, self._get_lr_called_within_step = 0, True, False
        self.step()
        self._is_initial = False

    def get_lr(self):
        """The rates for `last_epoch`, from those of the epoch before."""
        raise NotImplementedError

    def _get_closed_form_lr(self):
        """The rates for `last_epoch`, from the initial ones."""
        return self.get_lr()

    def get_last_lr(self):
        return self._last_lr

    def step(self, epoch=None):
        if self._step_count == 1 and _plain_step(self.optimizer) is not self._optimizer_step:
            warnings.warn(_STEP_REPLACED, UserWarning, stacklevel=2)
        elif self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(_STEPS_FIRST, UserWarning, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_GIVEN, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch=None):
        """To the next epoch, or to the one given."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set(self._within_step(self.get_lr if epoch is None else self._get_closed_form_lr))

    def _within_step(self, get_lr):
        """The rates that `get_lr` gives while it can see that a step asks."""
        self._get_lr_called_within_step = True
        try:
            return get_lr()
        finally:
            self._get_lr_called_within_step = False

    def _take_back(self):
        """The step that was taken when the scheduler was made."""
        self.last_epoch -= 1

    def _set(self, rates):
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):  # a group that came later may have no rate
            set_value(group, "lr", rate)
        self._last_lr = self._rates()

    def _rates(self):
        return [copied(group["lr"]) for group in self.optimizer.param_groups]

    def _resumes(self):
        """Whether the schedule is made for an optimizer that has come some way: the rates that it has are those of the first epoch then."""
        return self._is_initial and self.last_epoch > 0

    def state_dict(self):
        return {name: value for name, value in self.__dict__.items() if name not in ("optimizer", "_optimizer_step")}

    def load_state_dict(self, state_dict):
        self.__dict__.update(state_dict)


def for_each_group(optimizer, value, name):
    """A list with an entry for each group: the one given, or the value for all of them."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [copied(value)] * groups
    if len(value) != groups:
        raise ValueError(f"Expected {groups} lr_lambdas, but got {len(value)}" if name == "lr_lambdas" else
                         f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
                         f"param_groups has {groups}.")
    return [copied(entry) for entry in value]
