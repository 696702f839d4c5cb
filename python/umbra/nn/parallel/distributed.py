"""A module that several processes train together; of one process, the module itself with what the wrapper promises about its gradients."""
import contextlib
import inspect

import umbra
from umbra import distributed as dist
from umbra.distributed._group import _get_default_group
from umbra.distributed.algorithms.join import Joinable, JoinHook
from umbra.nn.modules.module import Module
from umbra.nn.parameter import UninitializedParameter
from umbra.utils._pytree import tree_leaves

_UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module has parameters that "
    "were not used in producing loss. You can enable unused parameter detection by passing the keyword argument `find_unused_parameters=True` to "
    "`torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all `forward` function outputs participate in calculating loss. \n"
    "If you already have done the above, then the distributed data parallel module wasn't able to locate the output tensors in the return value of your "
    "module's `forward` function. Please include the loss function and the structure of the return value of `forward` of your module when reporting this "
    "issue (e.g. list, dict, iterable).\nParameter indices which did not receive grad for rank {rank}: {indices}\n In addition, you can set the "
    "environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or DETAIL to print out information about which particular parameters did not receive "
    "gradient on this rank as part of this error")


class GradBucket:
    """Gradients side by side in one vector, as a hook for them is given them."""
    __module__ = "torch.distributed"

    def __init__(self, index, parameters, is_last):
        self._index, self._parameters, self._is_last = index, parameters, is_last
        self._buffer = umbra.cat([parameter.grad.detach().reshape(-1) for parameter in parameters])
        self.original_dtype = self._buffer.dtype

    def index(self):
        return self._index

    def buffer(self):
        return self._buffer

    def set_buffer(self, tensor):
        self._buffer = tensor

    def gradients(self):
        """Views of the vector, in the shapes of the parameters."""
        parts = self._buffer.split([parameter.numel() for parameter in self._parameters])
        return [part.view(parameter.shape) for part, parameter in zip(parts, self._parameters)]

    def parameters(self):
        return list(self._parameters)

    def is_last(self):
        return self._is_last


class _Reduction:
    """What a backward pass owes: a gradient of each parameter. When all are there, the hook, if there is one, turns them into others."""

    def __init__(self, parameters, rank):
        self.parameters, self.rank = parameters, rank
        self.hook = self.state = None
        self.missing, self.expecting, self.began = set(), False, False
        self._handles = [parameter.register_post_accumulate_grad_hook(self._ready_of(place)) for place, parameter in enumerate(parameters)]

    def _ready_of(self, place):
        return lambda parameter: self._ready(place)

    def begin(self, used):
        """Before a backward pass, in which the parameters at these places take part."""
        self.missing, self.expecting, self.began = set(used), True, False

    def check_finished(self):
        if self.expecting and self.began and self.missing:
            indices = " ".join(map(str, sorted(self.missing)))
            raise RuntimeError(_UNFINISHED.format(rank=self.rank, indices=indices))

    def _ready(self, place):
        if not self.expecting:
            return
        self.began = True
        self.missing.discard(place)
        if not self.missing:
            self.expecting = False
            self._finish()

    def _finish(self):
        if self.hook is None:
            return
        by_dtype = {}
        for parameter in reversed(self.parameters):
            if parameter.grad is not None:
                by_dtype.setdefault(parameter.dtype, []).append(parameter)
        for index, parameters in enumerate(by_dtype.values()):
            bucket = GradBucket(index, parameters, index == len(by_dtype) - 1)
            result = self.hook(self.state, bucket).wait()
            bucket.set_buffer(result[0] if isinstance(result, (list, tuple)) else result)
            with umbra.no_grad():
                for parameter, gradient in zip(parameters, bucket.gradients()):
                    parameter.grad.copy_(gradient)


def _reached(outputs):
    """The tensors whose gradients a backward pass from these outputs accumulates, by identity."""
    nodes = [leaf.grad_fn for leaf in tree_leaves(outputs) if isinstance(leaf, umbra.Tensor) and leaf.grad_fn is not None]
    found = {id(leaf) for leaf in tree_leaves(outputs) if isinstance(leaf, umbra.Tensor) and leaf.grad_fn is None}
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        if hasattr(node, "variable"):
            found.add(id(node.variable))
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                nodes.append(following)
    return found


class DistributedDataParallel(Module, Joinable):
    """`module`, trained with the average of all processes' gradients. There is one process, so the gradients are its own; a parameter without one is
    an error in the next pass unless `find_unused_parameters` or `static_graph` says that it may be, and hooks for communication are called."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=None, init_sync=True, process_group=None, bucket_cap_mb=None,
                 find_unused_parameters=False, check_reduction=False, gradient_as_bucket_view=False, static_graph=False,
                 delay_all_reduce_named_params=None, param_to_hook_all_reduce=None, mixed_precision=None, device_mesh=None,
                 skip_all_reduce_unused_params=False, bucket_cap_mb_list=None, batched_grad_copy=False, forward_sync_buffers=None,
                 lazy_bucket_allocation=False):
        super().__init__()
        if process_group is not None and device_mesh is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        if delay_all_reduce_named_params is not None or param_to_hook_all_reduce is not None or mixed_precision is not None:
            raise RuntimeError("DistributedDataParallel: delayed reductions and mixed_precision are not in Umbra")
        if device_mesh is not None and device_mesh.ndim != 1:
            raise RuntimeError(f"Only 1D device mesh is supported, but got {device_mesh}.")
        self.process_group = process_group if process_group is not None else device_mesh.get_group() if device_mesh is not None else _get_default_group()
        if not isinstance(self.process_group, dist.ProcessGroup):
            raise TypeError(f"DistributedDataParallel: process_group must be a ProcessGroup, not {type(process_group).__name__}")
        if self.process_group.size() != 1:
            raise RuntimeError("DistributedDataParallel: groups of several processes are not in Umbra, which has one")
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self._module_parameters = [p for name, p in module.named_parameters() if name not in self.parameters_to_ignore]
        self._check(module, device_ids, output_device)
        self.device_ids = self.output_device = None
        self.device = self._module_parameters[0].device
        self.device_type = self.device.type
        self.dim, self.module = dim, module
        self.broadcast_buffers = True if broadcast_buffers is None else broadcast_buffers
        self.find_unused_parameters, self.static_graph, self.gradient_as_bucket_view = find_unused_parameters, static_graph, gradient_as_bucket_view
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.reducer = self._make_reducer()

    def _check(self, module, device_ids, output_device):
        parameters = self._module_parameters
        if not any(p.requires_grad for p in parameters):
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient.")
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        kinds = {p.device.type for p in parameters}
        if len(kinds) != 1:
            raise ValueError("DistributedDataParallel's input module must be on the same type of devices, but input module parameters locate in "
                             f"{kinds}.")
        if device_ids or output_device:
            raise ValueError("DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules or "
                             f"CPU modules, but got device_ids {device_ids}, output_device {output_device}, and module parameters "
                             f"{set(p.device for p in parameters)}.")
        if any(isinstance(p, UninitializedParameter) for p in module.parameters()):
            raise RuntimeError("Modules with uninitialized parameters can't be used with `DistributedDataParallel`. "
                               "Run a dummy forward pass to correctly initialize the modules")

    def _make_reducer(self):
        return _Reduction([p for p in self._module_parameters if p.requires_grad], self.process_group.rank())

    # ---- calls ----

    def forward(self, *inputs, **kwargs):
        recording = umbra.is_grad_enabled() and self.require_backward_grad_sync
        if recording:
            self.reducer.check_finished()
        output = self.module(*inputs, **kwargs)
        if recording:
            self.reducer.begin(self._used(output))
        return output

    def _used(self, output):
        """The places of the parameters that will have gradients, as far as this can be told."""
        places = range(len(self.reducer.parameters))
        if not (self.find_unused_parameters or self.static_graph):
            return places
        reached = _reached(output)
        return [place for place in places if id(self.reducer.parameters[place]) in reached]

    @contextlib.contextmanager
    def no_sync(self):
        """Gradients that are accumulated inside are left as they are."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    # ---- hooks and processes with unequal inputs ----

    def register_comm_hook(self, state, hook):
        """`hook(state, bucket)` gives a future of the gradients in the place of their average."""
        self._check_comm_hook(hook)
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.reducer.hook, self.reducer.state = hook, state

    def _check_comm_hook(self, hook):
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        signature, unsaid = inspect.signature(hook), inspect.Signature.empty
        if signature.parameters["bucket"].annotation not in (unsaid, GradBucket):
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        if signature.return_annotation not in (unsaid, umbra.futures.Future[umbra.Tensor]):
            raise ValueError("Communication hook: return annotation should be torch.futures.Future[torch.Tensor].")
        if hook.__name__ in ("bf16_compress_hook", "bf16_compress_wrapper_hook"):
            raise TypeError("BF16 all reduce communication hook required CUDA 11+ and NCCL 2.10+ or XPU and XCCL")

    @contextlib.contextmanager
    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """Inside, processes may have unequal numbers of inputs."""
        yield

    def join_hook(self, **kwargs):
        return JoinHook()

    @property
    def join_device(self):
        return self.device

    @property
    def join_process_group(self):
        return self.process_group

    def _set_static_graph(self):
        self.static_graph = True

    # ---- what is known of it ----

    def will_sync_module_buffers(self):
        """Whether a pass makes the buffers of all processes alike."""
        return self.require_forward_param_sync and self.broadcast_buffers and any(
            name not in self.parameters_to_ignore for name, _ in self.module.named_buffers())

    def _get_ddp_logging_data(self):
        """The wrapper's options and sizes; no times are taken."""
        parameters = self.reducer.parameters
        size = sum(p.numel() * p.element_size() for p in parameters)
        texts = {"backend_name": dist.get_backend(self.process_group), "bucket_sizes": str(size), "device_ids": "", "module_name": type(self.module).__name__}
        flags = {"broadcast_buffers": self.broadcast_buffers, "find_unused_parameters": self.find_unused_parameters, "static_graph": self.static_graph,
                 "gradient_as_bucket_view": self.gradient_as_bucket_view, "is_multi_device_module": False}
        numbers = {"iteration": 0, "num_parameter_tensors": len(parameters), "output_device": -1, "rank": self.process_group.rank(),
                   "total_parameter_size_bytes": size, "world_size": 1}
        return {**texts, **{name: int(flag) for name, flag in flags.items()}, **numbers}

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module, params_and_buffers_to_ignore):
        """Names the parameters and buffers that are left out when `module` is wrapped."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if name in params_and_buffers_to_ignore:
                tensor._ddp_ignored = True

    # ---- copies: they find the group and the parameters' hooks anew ----

    def __getstate__(self):
        state = {**self.__dict__}
        for name in ("process_group", "reducer"):
            del state[name]
        return state

    def __setstate__(self, state):
        super().__setstate__(state)
        self.process_group = _get_default_group()
        self._module_parameters = [p for name, p in self.module.named_parameters() if name not in self.parameters_to_ignore]
        self.reducer = self._make_reducer()
