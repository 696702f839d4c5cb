"""What a model costs before it is run: memory, over time and by kind, and floating-point operations, by module.

    cost = umbra.estimate(model, (x,), training=True, optimizer=umbra.optim.AdamW)
    print(cost)                        # parameters, gradients, optimizer state, saved activations, the peak and where it is
    cost.save_plot("cost.html")        # memory over time
    cost.largest_batch("80GiB")        # how large a batch fits

The model runs once on fake tensors: it may be larger than any machine, if it was built inside a `FakeTensorMode`.
"""
import copy
import dataclasses
import re

import umbra
from umbra import _C
from umbra._subclasses.fake_tensor import FakeCopyMode, FakeTensor, FakeTensorMode
from umbra.nn import Module
from umbra.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from umbra.utils import _pytree as pytree
from umbra.utils._contextlib import uninterrupted

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


def _bytes(amount):
    """A number of bytes: an int, or text such as "80GiB"."""
    if isinstance(amount, (int, float)):
        return int(amount)
    match = re.fullmatch(r"\s*([\d.]+)\s*([KMGT]?I?)B?\s*", amount.upper())
    if match is None:
        raise ValueError(f"a number of bytes is written as 80GiB, 512MB or 1000000, not {amount!r}")
    return int(float(match[1]) * _UNITS[match[2]])


def _text(amount, units=("B", "kB", "MB", "GB", "TB", "PB")):
    unit = 0
    while amount >= 1000 and unit + 1 < len(units):
        amount, unit = amount / 1000, unit + 1
    return f"{amount:.4g} {units[unit]}"


@dataclasses.dataclass
class Estimate:
    """What a run costs. All amounts of memory are bytes."""
    parameters: int
    buffers: int
    inputs: int
    gradients: int
    optimizer_state: int
    saved_activations: int  # what the forward pass keeps for the backward pass, besides parameters and inputs
    peak: int
    peak_operator: str
    peak_module: str
    peak_phase: str
    flops: int
    flops_by_module: dict  # those of modules inside included; "" is the model
    flops_by_operator: dict
    operators: int  # that ran
    _trace: object = dataclasses.field(repr=False)
    _again: object = dataclasses.field(repr=False)  # the peak for arguments with another batch size

    def timeline(self):
        """Memory in use after every change of it, from the beginning of the step to its end."""
        return self._trace.report(True)["timeline"]

    def _rows(self):
        return [("Parameters", _text(self.parameters)), ("Buffers", _text(self.buffers)), ("Inputs", _text(self.inputs)),
                ("Gradients", _text(self.gradients)), ("Optimizer state", _text(self.optimizer_state)),
                ("Saved activations", _text(self.saved_activations))]

    def __str__(self):
        rows = [*self._rows(), ("Peak", _text(self.peak)),
                ("At the peak", f"{self.peak_operator} in {self.peak_module or 'the model'} ({self.peak_phase})"),
                ("Operations", _text(self.flops, ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP")))]
        return "\n".join(f"{name:<18} {value}" for name, value in rows)

    def save_plot(self, path, title="What the model costs"):
        """Writes a page with a plot of memory over time, and tables of operations by module and operator."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._trace.page(title, self._rows()))

    def largest_batch(self, memory):
        """The largest size of the batch (the first dimension of the arguments) whose peak is at most `memory`: bytes, or text such as "80GiB".
        0 where even one sample does not fit."""
        limit, low = _bytes(memory), 0
        size = 1
        while size < 2**40 and self._again(size) <= limit:
            low, size = size, size * 2
        high = size
        while high - low > 1:
            middle = (low + high) // 2
            if self._again(middle) <= limit:
                low = middle
            else:
                high = middle
        return low


def _own_tensors(modules):
    """The parameters and the buffers of modules, each once."""
    parameters, buffers = ({id(t): t for module in modules for t in getattr(module, name).values() if t is not None} for name in ("_parameters", "_buffers"))
    return list(parameters.values()), list(buffers.values())


def _tensors(tree):
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, umbra.Tensor)]


def _make_optimizer(optimizer, parameters):
    if optimizer is None:
        return None
    if isinstance(optimizer, str):
        names = {name.lower(): name for name in dir(umbra.optim) if isinstance(getattr(umbra.optim, name), type)}
        if optimizer.lower() not in names:
            raise ValueError(f"there is no optimizer {optimizer!r} in umbra.optim")
        optimizer = getattr(umbra.optim, names[optimizer.lower()])
    return optimizer(parameters, lr=1e-3) if isinstance(optimizer, type) else optimizer(parameters)


def _default_loss(outputs):
    """The loss that a model gives itself, or the sum of everything that it gives."""
    loss = getattr(outputs, "loss", None)
    if isinstance(loss, umbra.Tensor):
        return loss
    parts = [t.sum() for t in _tensors(outputs) if t.requires_grad]
    if not parts:
        raise ValueError("estimate(training=True): no output of the model requires gradients; give a loss function of its outputs")
    return sum(parts[1:], parts[0])


@uninterrupted
def _scopes(trace, names):
    """Tells the trace which module runs."""
    if not names:
        yield
        return
    hooks = [register_module_forward_pre_hook(lambda module, args: trace.enter_scope(names.get(id(module), type(module).__name__))),
             register_module_forward_hook(lambda module, args, output: trace.leave_scope())]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


class _Step:
    """One step of training, or one call, that can be run under a trace."""

    def __init__(self, model, training, optimizer, loss):
        self.model, self.training, self.loss = model, training, loss or _default_loss
        modules = list(model.named_modules()) if isinstance(model, Module) else []  # going through them takes time: once
        self.names = {id(module): name for name, module in modules}
        self.parameters, self.buffers = _own_tensors([module for _, module in modules])
        self.without_gradient = []
        self.optimizer = _make_optimizer(optimizer, self.parameters) if training else None

    def state(self):
        kept = [value for s in self.optimizer.state.values() for value in s.values()] if self.optimizer else []
        return [t for t in kept if isinstance(t, umbra.Tensor)] + _tensors([value for value in kept if isinstance(value, (list, tuple, dict))])

    def make_state(self):
        """The optimizer's state, as the first step leaves it behind."""
        if not self.optimizer:
            return
        for p in self.parameters:
            p.grad = umbra.empty_like(p) if p.requires_grad else None
        self.optimizer.step()
        for p in self.parameters:
            p.grad = None

    def forget_unused(self):
        """Parameters that got no gradient have no state. Whether one of them had."""
        return any([self.optimizer.state.pop(p, None) is not None for p in self.without_gradient]) if self.optimizer else False

    def run(self, args, kwargs, begin=lambda phase: None):
        """The bytes of the loss, and those of gradients."""
        begin("forward")
        if not self.training:
            with umbra.no_grad():
                self.model(*args, **kwargs)
            return 0, 0
        loss = self.loss(self.model(*args, **kwargs))
        kept = _C._storage_bytes([loss])
        begin("backward")
        loss.backward()
        del loss
        self.without_gradient = [p for p in self.parameters if p.grad is None]
        gradients = _C._storage_bytes([p.grad for p in self.parameters if p.grad is not None])
        if self.optimizer:
            begin("optimizer")
            self.optimizer.step()
        for p in self.parameters:
            p.grad = None
        return kept, gradients


@uninterrupted
def _gradients_aside(parameters):
    """Parameters without gradients, until they get theirs back."""
    before = [p.grad for p in parameters]
    for p in parameters:
        p.grad = None
    try:
        yield
    finally:
        for p, grad in zip(parameters, before):
            p.grad = grad


@uninterrupted
def _values_kept(tensors):
    """Tensors get the values back that they had."""
    before = [t.detach().clone() for t in tensors]
    try:
        yield
    finally:
        with umbra.no_grad():
            for t, value in zip(tensors, before):
                t.copy_(value)


def _trace(step, args, kwargs, with_data):
    # The first step makes the optimizer's state, and some models keep what they have computed once; the second is like all others.
    if with_data:
        step.run(args, kwargs)
        return _traced(step, args, kwargs, with_data)
    step.make_state()
    trace, before, *sizes = _traced(step, args, kwargs, with_data)
    if step.forget_unused() or trace.bytes_in_use != before:
        return _traced(step, args, kwargs, with_data)
    return trace, before, *sizes


def _traced(step, args, kwargs, with_data):
    trace = _C._CostTrace(with_data)
    held = [*step.parameters, *step.buffers, *_tensors((args, kwargs)), *step.state()]
    for tensor in held:
        trace.hold(tensor)
    before = trace.bytes_in_use
    with _scopes(trace, step.names):
        trace.start()
        try:
            kept, gradients = step.run(args, kwargs, trace.begin)
        finally:
            trace.stop()
    return trace, before, kept, gradients


def estimate(model, args=(), kwargs=None, *, training=False, optimizer=None, loss=None, with_data=False):
    """What one call of a model, or one step of training it, costs; see the top of this module. Nothing of `model` is changed.

    model: a module, or a function. args, kwargs: what it is called with, real or fake tensors.
    training: a forward and a backward pass, and a step of `optimizer` where there is one: a name ("adamw"), a class, or a function of parameters.
    loss: a function from outputs to a number; their sum, if it is not given.
    with_data: run on the model's data and report what was allocated, instead of estimating it.
    """
    kwargs = kwargs or {}
    args = args if isinstance(args, tuple) else (args,)
    if optimizer is not None and not training:
        raise ValueError("estimate(optimizer=...) needs training=True")
    if with_data:
        step = _Step(model, training, optimizer, loss)
        with _gradients_aside(step.parameters), _values_kept([*step.parameters, *step.buffers]):
            return _finish(step, *_trace(step, args, kwargs, True), args, kwargs, None)
    parameters, buffers = _own_tensors(list(model.modules()) if isinstance(model, Module) else [])
    fake = next((t for t in [*parameters, *_tensors((args, kwargs))] if isinstance(t, FakeTensor)), None)
    mode = fake.fake_mode if fake is not None else FakeTensorMode(allow_non_fake_inputs=True)
    if not all(isinstance(t, FakeTensor) for t in [*parameters, *buffers]):
        with FakeCopyMode(mode):
            model = copy.deepcopy(model)
    convert = lambda tree: pytree.tree_map(lambda t: mode.from_tensor(t, static_shapes=True) if isinstance(t, umbra.Tensor) else t, tree)  # noqa: E731
    args, kwargs = convert((args, kwargs))
    with mode:
        step = _Step(model, training, optimizer, loss)

        def again(size):
            with mode, _gradients_aside(step.parameters):
                return _trace(step, *_with_batch((args, kwargs), size), False)[0].report()["peak"]
        with _gradients_aside(step.parameters):
            return _finish(step, *_trace(step, args, kwargs, False), args, kwargs, again)


def _with_batch(tree, size):
    """The same tensors with another first dimension, where they have that of the first tensor."""
    tensors = [t for t in _tensors(tree) if t.dim() > 0]
    if not tensors:
        raise ValueError("largest_batch: no argument has a dimension of a batch")
    batch = tensors[0].shape[0]
    return pytree.tree_map(lambda t: t.new_empty((size, *t.shape[1:])).requires_grad_(t.requires_grad)
                           if isinstance(t, umbra.Tensor) and t.dim() > 0 and t.shape[0] == batch else t, tree)


def _finish(step, trace, before, kept, gradients, args, kwargs, again):
    def no_data(size):
        raise ValueError("largest_batch: of an estimate without data only")
    report = trace.report()
    saved = report["phase_ends"]["forward"] - before - kept if step.training else 0
    return Estimate(
        parameters=_C._storage_bytes(step.parameters), buffers=_C._storage_bytes(step.buffers), inputs=_C._storage_bytes(_tensors((args, kwargs))),
        gradients=gradients, optimizer_state=_C._storage_bytes(step.state()), saved_activations=max(0, saved), peak=report["peak"],
        peak_operator=report["peak_operator"], peak_module=report["peak_module"], peak_phase=report["peak_phase"], flops=report["flops"],
        flops_by_module=report["flops_by_module"], flops_by_operator=report["flops_by_operator"], operators=report["operators"], _trace=trace,
        _again=again or no_data)
