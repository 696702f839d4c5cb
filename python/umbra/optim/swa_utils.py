"""Averages of a model over the steps of its training.

    average = AveragedModel(model)
    for ...:
        optimizer.step()
        average.update_parameters(model)
    update_bn(loader, average)
"""
import copy
import itertools
import math

import umbra
from umbra import nn
from umbra.optim.lr_scheduler import LRScheduler, _for_each_group, _for_steps
from umbra.utils._foreach_utils import _group_tensors_by_device_and_dtype


def get_ema_multi_avg_fn(decay=0.999):
    """The exponential average of lists of tensors."""
    _check_decay(decay)

    @umbra.no_grad()
    def update(averages, currents, _):
        for average, current in zip(averages, currents):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(current, 1 - decay)
            else:
                average.copy_(average * decay + current * (1 - decay))
    return update


def get_swa_multi_avg_fn():
    """The mean of lists of tensors over all updates."""
    @umbra.no_grad()
    def update(averages, currents, count):
        for average, current in zip(averages, currents):
            average.copy_(average + (current - average) / (count + 1))
    return update


def get_ema_avg_fn(decay=0.999):
    """The exponential average of a tensor."""
    _check_decay(decay)

    @umbra.no_grad()
    def update(average, current, _):
        return decay * average + (1 - decay) * current
    return update


def get_swa_avg_fn():
    """The mean of a tensor over all updates."""
    @umbra.no_grad()
    def update(average, current, count):
        return average + (current - average) / (count + 1)
    return update


def _check_decay(decay):
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


class AveragedModel(nn.Module):
    """A copy of a model whose parameters are averages: their mean, or what `avg_fn` or `multi_avg_fn` make of them.

    With `use_buffers` the buffers are averaged too; else they are those of the last update.
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", umbra.tensor(0, dtype=umbra.long, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def _averaged(self, model):
        return list(itertools.chain(model.parameters(), model.buffers())) if self.use_buffers else list(model.parameters())

    def update_parameters(self, model):
        """Takes the model's present parameters into the average."""
        averages = [tensor.detach() for tensor in self._averaged(self.module)]
        currents = [current.detach().to(average.device) for current, average in zip(self._averaged(model), averages)]
        if self.n_averaged == 0:
            for average, current in zip(averages, currents):
                average.copy_(current)
        elif self.multi_avg_fn is not None:
            for (device, _), ((own, others), _) in _group_tensors_by_device_and_dtype([averages, currents]).items():
                self.multi_avg_fn(own, others, self.n_averaged.to(device))
        else:
            mean = self.avg_fn or get_swa_avg_fn()
            for average, current in zip(averages, currents):
                average.copy_(mean(average, current, self.n_averaged.to(average.device)))
        if not self.use_buffers:
            for own, current in zip(self.module.buffers(), model.buffers()):
                own.detach().copy_(current.detach().to(own.device))
        self.n_averaged += 1


@umbra.no_grad()
def update_bn(loader, model, device=None):
    """Makes the running means and variances of the model's batch norms anew, from the inputs that `loader` gives."""
    norms = {module: module.momentum for module in model.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)}
    if not norms:
        return
    for module in norms:
        module.reset_running_stats()
        module.momentum = None
    was_training = model.training
    model.train()
    for inputs in loader:
        inputs = inputs[0] if isinstance(inputs, (list, tuple)) else inputs
        model(inputs if device is None else inputs.to(device))
    for module, momentum in norms.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the present rate to `swa_lr` in `anneal_epochs` epochs, along half a cosine or a line; then constant."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        for group, rate in zip(optimizer.param_groups, _for_each_group(optimizer, swa_lr, "swa_lr")):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _part(self, step):
        """How much of the way is done."""
        part = min(1, step / self.anneal_epochs) if self.anneal_epochs else 1
        return part if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * part)) / 2

    @_for_steps
    def get_lr(self):
        # The way begins where this schedule does, whatever `last_epoch` says. Each step starts from the rate that is set, which may be another
        # than the one of the step before.
        step = self._step_count - 1
        before, now = self._part(step - 1) if step > 0 else 0, self._part(step)
        rates = []
        for group in self.optimizer.param_groups:
            start = group["lr"] if before == 1 else (group["lr"] - before * group["swa_lr"]) / (1 - before)
            rates.append(group["swa_lr"] if before == 1 else group["swa_lr"] * now + start * (1 - now))
        return rates
