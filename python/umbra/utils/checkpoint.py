"""Checkpoints: what a part of a model computes is not kept for the backward pass, but computed again there.

    y = checkpoint(block, x, use_reentrant=False)
"""
import collections
import contextlib
import enum
import functools
import warnings

import umbra
from umbra import _C
from umbra.autograd import Function
from umbra.autograd.graph import saved_tensors_hooks
from umbra.utils import _pytree as pytree
from umbra.utils._contextlib import uninterrupted
from umbra.utils._python_dispatch import TorchDispatchMode

__all__ = ["CheckpointError", "CheckpointFunction", "CheckpointPolicy", "SelectiveCheckpointContext", "checkpoint", "checkpoint_sequential",
           "create_selective_checkpoint_contexts", "get_device_states", "noop_context_fn", "set_checkpoint_debug_enabled",
           "set_checkpoint_early_stop", "set_device_states"]


class CheckpointError(RuntimeError):
    """The part computed something else the second time."""


class _StopRecomputation(Exception):
    """All that the backward pass needs has been computed."""


def noop_context_fn():
    """Nothing around the forward pass, nothing around its recomputation: what `checkpoint` enters unless it is given contexts."""
    return contextlib.nullcontext(), contextlib.nullcontext()


_early_stop = True


@contextlib.contextmanager
def set_checkpoint_early_stop(enable):
    """Whether a recomputation stops as soon as everything that was kept is there again."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


_debug = None  # as each call says


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled):
    """Whether errors of checkpoints list the operators of both computations; None leaves it to each call's `debug`."""
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before


def _metadata(tensor):
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


def get_device_states(*args):
    """Which accelerators the tensors among the arguments are on, and the states of their random numbers: two lists, empty where all are here."""
    devices = sorted({leaf.get_device() for leaf in pytree.tree_leaves(args) if isinstance(leaf, umbra.Tensor) and leaf.device.type not in ("cpu", "meta")})
    module = umbra.get_device_module(_accelerator_of(args)) if devices else None
    return devices, [module.get_rng_state(device) for device in devices]


def set_device_states(devices, states, *, device_type=None):
    """Puts back what `get_device_states` gave."""
    for device, state in zip(devices, states):
        umbra.get_device_module(device_type or "cuda").set_rng_state(state, device)


def _accelerator_of(args):
    return next(leaf.device.type for leaf in pytree.tree_leaves(args) if isinstance(leaf, umbra.Tensor) and leaf.device.type not in ("cpu", "meta"))


@contextlib.contextmanager
def _random_numbers_of(state):
    """The generator as it was then, for a block; afterwards as it is now."""
    if state is None:
        yield
        return
    now = umbra.get_rng_state()
    umbra.set_rng_state(state)
    try:
        yield
    finally:
        umbra.set_rng_state(now)


@contextlib.contextmanager
def _regions_end():
    """Regions of autocast that begin in the block end with it: what is computed again stops early, perhaps inside of one that a recorded program has
    entered."""
    casts = {device: (umbra.is_autocast_enabled(device), umbra.get_autocast_dtype(device)) for device in ("cpu", "cuda")}
    depth, cached = umbra.autocast_increment_nesting(), umbra.is_autocast_cache_enabled()
    try:
        yield
    finally:
        for device, (enabled, dtype) in casts.items():
            umbra.set_autocast_enabled(device, enabled)
            umbra.set_autocast_dtype(device, dtype)
        umbra.set_autocast_cache_enabled(cached)
        while (left := umbra.autocast_decrement_nesting()) >= depth:
            pass
        if left == 0:
            umbra.clear_autocast_cache()


class _Surroundings:
    """What a function finds around it besides its arguments: the state of random numbers, the type that autocast casts to, and in a capture what stands for
    tensors that it closes over."""

    def __init__(self, preserve_rng_state):
        self.state = umbra.get_rng_state() if preserve_rng_state else None
        self.stand_ins = _C._stand_ins()
        self.casts = [{"device_type": device, "enabled": umbra.is_autocast_enabled(device), "dtype": umbra.get_autocast_dtype(device),
                       "cache_enabled": umbra.is_autocast_cache_enabled()} for device in ("cpu", "cuda")]

    @uninterrupted
    def again(self):
        """The same surroundings for a block."""
        with self.stand_ins, _random_numbers_of(self.state), _regions_end(), contextlib.ExitStack() as stack:
            for cast in self.casts:
                if cast["enabled"] or umbra.is_autocast_enabled(cast["device_type"]):
                    stack.enter_context(umbra.autocast(**cast))
            yield


class _KeepInputs(Function):
    """A node that keeps the inputs as any node keeps its own: hooks on saved tensors see them, a write to them is found out."""

    @staticmethod
    def forward(ctx, start, *tensors):
        ctx.save_for_backward(*tensors)
        return start.new_empty(0)

    @staticmethod
    def backward(ctx, *gradients):
        raise AssertionError("a checkpoint's inputs are kept by a node without a gradient")


def _kept(args):
    """A function that gives the arguments back, which holds their tensors by a node."""
    positions = [i for i, a in enumerate(args) if isinstance(a, umbra.Tensor)]
    others = [None if i in positions else a for i, a in enumerate(args)]
    node = _KeepInputs.apply(umbra.empty(0, requires_grad=True), *[args[i] for i in positions]).grad_fn

    def read():
        found = list(others)
        for position, tensor in zip(positions, node.saved_tensors):
            found[position] = tensor
        return found
    return read


@uninterrupted
def _recomputation():
    """What a capture records within it belongs to its backward graph."""
    before = _C._set_recomputing(True)
    try:
        yield
    finally:
        _C._set_recomputing(before)


class _Part:
    """One call of a checkpointed function: what it kept, by number, and how to compute it again."""

    def __init__(self, run, inputs, context, surroundings, check, early_stop):
        self.run, self.inputs, self.context, self.surroundings, self.check, self.early_stop = run, inputs, context, surroundings, check, early_stop
        self.kept, self.again, self.log, self.completed = [], {}, None, False

    def pack(self, tensor):
        self.kept.append(_metadata(tensor))
        return len(self.kept) - 1

    def unpack(self, number):
        backward_pass = _C._backward_pass()
        found = self.again.get(backward_pass)
        if found is None:
            found = self.compute_again()
            if backward_pass:  # outside of one every look computes anew
                self.again[backward_pass] = found
        if number not in found:
            raise CheckpointError("torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you are "
                               "calling ctx.saved_tensors in backward, make sure to do so only once. Otherwise please open an issue with "
                               "details on your use case.")
        return found.pop(number)

    def compute_again(self):
        found = []

        def collect(tensor):
            if len(found) == len(self.kept):
                self.refuse("torch.utils.checkpoint: trying to save more tensors during recomputation than during the original forward pass.")
            found.append(tensor.detach() if tensor.requires_grad else tensor)
            # A gradient that the function takes itself computes again what has been kept so far.
            if (self.early_stop or not self.completed) and len(found) == len(self.kept):
                raise _StopRecomputation
            return tensor
        inputs = self.inputs()  # which a checkpoint around this one may have to compute: that is no call of this one's
        logged = self.log.recomputation() if self.log else contextlib.nullcontext()
        with self.surroundings.again(), self.context, logged, umbra.enable_grad(), saved_tensors_hooks(collect, lambda tensor: tensor):
            with contextlib.suppress(_StopRecomputation), _recomputation():
                self.run(inputs)
        self.compare(found)
        return dict(enumerate(found))

    def refuse(self, text):
        raise CheckpointError(text if self.log is None else self.log.text())

    def compare(self, found):
        if len(found) != len(self.kept):
            self.refuse("torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
                        f"Number of tensors saved during forward: {len(self.kept)}\n"
                        f"Number of tensors saved during recomputation: {len(found)}.")
        if not self.check:
            return
        differences = [f"tensor at position {i}:\nsaved metadata: {kept}\nrecomputed metadata: {_metadata(tensor)}"
                       for i, (kept, tensor) in enumerate(zip(self.kept, found)) if kept != _metadata(tensor)]
        if differences:
            self.refuse("torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the "
                        "forward pass.\n" + "\n".join(differences))


class _Log:
    """The operators of a checkpointed function, the first time and when it is computed again."""

    class _Names(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.names.append(str(func))
            return func(*args, **(kwargs or {}))

    def __init__(self):
        self.forward, self.second = self._Names(), None

    def recomputation(self):
        self.second = self._Names()
        return self.second

    def text(self):
        return ("Operations executed during the original forward:\n" + "\n".join(self.forward.names) +
                "\nOperations executed during recomputation:\n" + "\n".join(self.second.names) +
                "\n ERROR: Detected non-determinism while running activation checkpointing\n\n You are seeing this error because you passed "
                "`debug=True` to checkpoint and\n tensors to be saved during the original forward and differ between those saved\n during recomputation.")


class CheckpointFunction(Function):
    """The reentrant form: the backward pass runs the function and a backward pass of its own."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        if not any(isinstance(a, umbra.Tensor) and a.requires_grad for a in args):
            warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)
        ctx.run_function = run_function
        ctx.surroundings = _Surroundings(preserve_rng_state)
        ctx.positions = [i for i, a in enumerate(args) if isinstance(a, umbra.Tensor)]
        ctx.inputs = [None if isinstance(a, umbra.Tensor) else a for a in args]
        ctx.save_for_backward(*[args[i] for i in ctx.positions])
        with umbra.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *gradients):
        if _C._backward_to_inputs():
            raise RuntimeError("When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to "
                               ".backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without passing the "
                               "`inputs` argument.")
        inputs = list(ctx.inputs)
        for position, tensor in zip(ctx.positions, ctx.saved_tensors):
            inputs[position] = tensor.detach().requires_grad_(tensor.requires_grad)
        with ctx.surroundings.again(), umbra.enable_grad():
            outputs = ctx.run_function(*inputs)
        outputs = (outputs,) if isinstance(outputs, umbra.Tensor) else outputs
        pairs = [(o, g) for o, g in zip(outputs, gradients) if isinstance(o, umbra.Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        umbra.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(i.grad if isinstance(i, umbra.Tensor) else None for i in inputs))


def checkpoint(function=None, *args, use_reentrant=None, preserve_rng_state=True, context_fn=noop_context_fn, determinism_check="default",
               debug=False, early_stop=True, respect_saved_tensors_hooks=None, **kwargs):
    """`function(*args)`, of which only the inputs are kept; the backward pass calls it again.

        y = checkpoint(block, x, use_reentrant=False)

    Without a function it is a decorator: `@checkpoint(use_reentrant=False)`.
    """
    if function is None:
        options = {"use_reentrant": use_reentrant, "preserve_rng_state": preserve_rng_state, "context_fn": context_fn,
                   "determinism_check": determinism_check, "debug": debug, "early_stop": early_stop,
                   "respect_saved_tensors_hooks": respect_saved_tensors_hooks, **kwargs}
        return lambda decorated: functools.wraps(decorated)(functools.partial(checkpoint, decorated, **options))
    if use_reentrant is None:
        warnings.warn("torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. use_reentrant=False is recommended, "
                      "but if you need to preserve the current default behavior, you can pass use_reentrant=True.", stacklevel=2)
        use_reentrant = True
    if use_reentrant and kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if use_reentrant:
        if context_fn is not noop_context_fn or debug is not False or respect_saved_tensors_hooks is not None:
            raise ValueError("Passing `context_fn`, `debug`, or `respect_saved_tensors_hooks` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    if context_fn is noop_context_fn and _C._is_tracing():
        context_fn = _contexts_of_a_capture
    forward_context, recompute_context = context_fn()
    if isinstance(forward_context, _Keeping) and context_fn is not _contexts_of_a_capture:
        forward_context.go_through_hooks(respect_saved_tensors_hooks)
    surroundings = _Surroundings(preserve_rng_state)
    if not umbra.is_grad_enabled():
        with forward_context:
            return function(*args, **kwargs)
    if umbra._C._are_functorch_transforms_active():
        return _run_in_transform(function, args, kwargs, forward_context)
    if umbra.jit.is_tracing():  # a trace has no backward pass: nothing of it would be computed again
        with forward_context:
            return function(*args, **kwargs)
    inputs = _kept(args)
    part = _Part(lambda values: function(*values, **kwargs), inputs, recompute_context, surroundings, determinism_check == "default",
                 early_stop and _early_stop)
    if debug if _debug is None else _debug:
        part.log = _Log()
    with forward_context, part.log.forward if part.log else contextlib.nullcontext(), saved_tensors_hooks(part.pack, part.unpack):
        result = function(*args, **kwargs)
    part.completed = True
    return result


def _run_in_transform(function, args, kwargs, forward_context):
    """Inside of vmap and jvp a part keeps what it saves: run again later, it would meet wrappers of a transform that has ended. Reverse mode takes no
    hooks on what is saved, and says so."""
    with saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        pass
    with forward_context:
        return function(*args, **kwargs)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """Modules one after another, in so many checkpointed segments; the last segment is not checkpointed.

        y = checkpoint_sequential(model, 2, x, use_reentrant=False)
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if isinstance(functions, umbra.nn.Sequential) else list(functions)

    def run(start, end):
        def forward(value):
            for function in functions[start:end]:
                value = function(value)
            return value
        return forward
    size = len(functions) // segments
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(run(start, start + size), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return run(size * (segments - 1), len(functions))(input)


# ---- what is kept all the same ----

class CheckpointPolicy(enum.Enum):
    """What becomes of an operator's results in a checkpoint. MUST is what programs may rely on; PREFER is advice to compilers. What is offloaded
    is kept on the CPU."""
    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy is told besides the call: whether it is the first one or the one in the backward pass."""

    def __init__(self, *, is_recompute):
        self.is_recompute = is_recompute


def _draws_anew(function):
    """Whether a graph that calls it twice may get other random numbers, where eager code sets the generator back. Operators that take functions may."""
    return not isinstance(function, umbra._ops.OpOverload) or umbra.Tag.nondeterministic_seeded in function.tags


def _contexts_of_a_capture():
    """A checkpoint in a graph keeps what would be drawn anew, and nothing else."""
    kept = {}
    modes = _Keeping(lambda _, function, *args, **kwargs: _draws_anew(function), kept), _Giving(kept)
    for mode in modes:
        mode.supports_higher_order_operators = True
    return modes


_IGNORED = (umbra.ops.aten.detach.default,)


_OFFLOADED = (CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD)
_SAVED = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE, *_OFFLOADED)


class _Kept:
    """A result that is kept: itself, on the CPU, or what saved tensor hooks make of it."""

    def __init__(self, tensor, offloaded, hooks):
        pack, self.unpack = hooks or (None, None)
        self.tensor, self.version, self.device = tensor.detach(), tensor._version, tensor.device if offloaded else None
        if offloaded:
            self.tensor = self.tensor.cpu()
        if pack is not None:
            self.tensor = pack(self.tensor)

    def read(self, allow_mutation):
        if self.unpack is not None:
            tensor = self.unpack(self.tensor)
        elif self.device is None and self.tensor._version != self.version and not allow_mutation:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        else:
            tensor = self.tensor
        return tensor if self.device is None else tensor.to(self.device)


_COMPUTED_AGAIN, _GIVEN = object(), object()  # what is there of a call instead of its results


class _Keeping(TorchDispatchMode):
    """Keeps the results that the policy says, in the order of the calls."""

    def __init__(self, policy, kept):
        super().__init__()
        self.policy, self.kept, self.context, self.hooks = policy, kept, SelectiveCheckpointContext(is_recompute=False), None

    def go_through_hooks(self, wanted):
        """What is kept goes through the saved tensor hooks that are in force now, if that is wanted; None is a choice that has not been made."""
        hooks = _C._top_saved_tensor_hooks() if wanted is not False else None
        if hooks is not None and wanted is None:
            warnings.warn("saved_tensors_hooks are in force around a selective checkpoint, whose kept tensors do not go through them yet. "
                          "They will: pass respect_saved_tensors_hooks=True to have it so now, or False to keep it as it is.", FutureWarning, stacklevel=3)
        self.hooks = hooks if wanted else None

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func not in _IGNORED:
            policy = self.policy(self.context, func, *args, **(kwargs or {}))
            saved = policy if isinstance(policy, bool) else policy in _SAVED
            values = pytree.tree_map_only(umbra.Tensor, lambda t: _Kept(t, policy in _OFFLOADED, self.hooks), result) if saved else _COMPUTED_AGAIN
            self.kept.setdefault(func, []).append(values)
        return result


class _Giving(TorchDispatchMode):
    """Gives what was kept instead of computing it: what the policy said of the same call before counts."""

    def __init__(self, kept, allow_mutation=False):
        super().__init__()
        self.kept, self.allow_mutation, self.calls = kept, allow_mutation, collections.Counter()

    def __enter__(self):
        self.calls.clear()
        return super().__enter__()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in _IGNORED:
            return func(*args, **(kwargs or {}))
        number, entries = self.calls[func], self.kept.get(func, ())
        self.calls[func] += 1
        if number >= len(entries):
            raise RuntimeError(f"{func} encountered during backward, but not found in storage")
        entry = entries[number]
        if entry is _COMPUTED_AGAIN:
            return func(*args, **(kwargs or {}))
        if entry is _GIVEN:
            raise RuntimeError("Trying to backward an extra time. You are only allowed to backward once on any region computed under selective activation "
                               "checkpoint.")
        entries[number] = _GIVEN
        value = pytree.tree_map_only(_Kept, lambda kept: kept.read(self.allow_mutation), entry)
        return args[0].copy_(value) if isinstance(func, umbra._ops.OpOverload) and func._schema.is_mutable else value


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation=False):
    """For `checkpoint(..., context_fn=...)`: the results of some operators are kept, others are computed again. The policy is a function of (context, operator,
    *args, **kwargs) that gives a CheckpointPolicy, or a list of operators whose results are kept.

        checkpoint(block, x, use_reentrant=False, context_fn=functools.partial(create_selective_checkpoint_contexts, [torch.ops.aten.mm.default]))
    """
    policy = policy_fn_or_list
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, umbra._ops.OpOverload):
                hint = ("Please update the OpOverloadPacket to a specific OpOverload.For example, if you have `torch.ops.aten.mm`, change it to "
                        "`torch.ops.aten.mm.default`." if isinstance(op, umbra._ops.OpOverloadPacket) else "")
                raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. {hint}")
        policy = lambda _, op, *args, **kwargs: CheckpointPolicy.MUST_SAVE if op in policy_fn_or_list else CheckpointPolicy.PREFER_RECOMPUTE  # noqa: E731
    elif not callable(policy_fn_or_list):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    def complete(context, op, *args, **kwargs):
        return _C._is_tracing() and _draws_anew(op) or policy(context, op, *args, **kwargs)
    kept = {}
    return _Keeping(complete, kept), _Giving(kept, allow_cache_entry_mutation)


def check_backward_validity(inputs):
    """Warns where no input asks for a gradient: a reentrant checkpoint has none for anything then."""
    if not any(value.requires_grad for value in inputs if isinstance(value, umbra.Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def detach_variable(inputs):
    """The inputs cut from what made them, asking for gradients as before."""
    if not isinstance(inputs, tuple):
        raise RuntimeError("Only tuple of tensors is supported. Got Unsupported input type: ", type(inputs).__name__)
    return tuple(value.detach().requires_grad_(value.requires_grad) if isinstance(value, umbra.Tensor) else value for value in inputs)
