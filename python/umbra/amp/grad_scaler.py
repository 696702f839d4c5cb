"""GradScaler: losses are multiplied, so that gradients of short floating types do not vanish, and steps on infinities are left out."""
import collections
import enum
import inspect
import warnings

import umbra


class OptState(enum.Enum):
    """How far an optimiser has come since the last update."""
    READY, UNSCALED, STEPPED = 0, 1, 2


def _fresh_state():
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Multiplies losses by a scale that grows while gradients stay finite.

        scaler = torch.amp.GradScaler("cpu")
        scaler.scale(loss).backward()
        scaler.step(optimizer)          # gradients are divided by the scale; no step where one is infinite or not a number
        scaler.update()
    """

    def __init__(self, device="cuda", init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        self._device, self._enabled = device, enabled
        if enabled and device == "cuda":
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._growth_factor, self._backoff_factor = init_scale, growth_factor, backoff_factor
        self._growth_interval, self._init_growth_tracker = growth_interval, 0
        self._scale = self._growth_tracker = None
        self._per_optimizer_states = collections.defaultdict(_fresh_state)

    def _check_scale_growth_tracker(self, name):
        if self._scale is None:
            raise AssertionError(f"Attempted {name} but _scale is None.  This may indicate your script did not use scaler.scale(loss or outputs) "
                                 "earlier in the iteration.")
        return self._scale, self._growth_tracker

    def _lazy_init_scale_growth_tracker(self, device):
        self._scale = umbra.full((), self._init_scale, dtype=umbra.float32, device=device)
        self._growth_tracker = umbra.full((), self._init_growth_tracker, dtype=umbra.int32, device=device)

    def scale(self, outputs):
        """A tensor, or tensors in lists and tuples, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, umbra.Tensor):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            return outputs * self._scale.to(outputs.device)
        if not isinstance(outputs, collections.abc.Iterable):
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")
        scaled = map(self.scale, outputs)
        return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled

    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16):
        by_type = collections.defaultdict(list)
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                if not allow_fp16 and parameter.grad.dtype == umbra.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                if parameter.grad.is_sparse and parameter.grad.dtype == umbra.float16:
                    parameter.grad = parameter.grad.coalesce()  # elements of one place may overflow together
                by_type[parameter.grad.dtype].append(parameter.grad._values() if parameter.grad.is_sparse else parameter.grad)
        with umbra.no_grad():
            for gradients in by_type.values():
                umbra._amp_foreach_non_finite_check_and_unscale_(gradients, found_inf, inv_scale)
        return {found_inf.device: found_inf} if by_type else {}

    def unscale_(self, optimizer):
        """Divides the gradients of an optimiser's parameters by the scale, once between steps: to clip them, say."""
        if not self._enabled:
            return
        self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = self._scale.double().reciprocal().float()
        found_inf = umbra.zeros((), dtype=umbra.float32, device=self._scale.device)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, found_inf, False)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """`optimizer.step(...)` on unscaled gradients, unless one of them is infinite or not a number."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_of_scaled(optimizer, state, args, kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _maybe_opt_step(self, optimizer, optimizer_state, *args, **kwargs):
        """A step, unless a gradient is infinite or not a number. Packages replace it, for steps that several processes take together."""
        if any(found.item() for found in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def _step_of_scaled(self, optimizer, state, args, kwargs):
        """A step of an optimiser that unscales gradients itself, and decides itself whether to step: it is shown the scale and whether there are
        infinities as `grad_scale` and `found_inf`; an older one takes the scaler."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn("GradScaler passes itself to optimizer.step(), which is deprecated: optimizers read self.grad_scale and self.found_inf.",
                          FutureWarning, stacklevel=3)
            result = optimizer.step(*args, **kwargs, grad_scaler=self)
            state["stage"] = OptState.STEPPED
            return result
        scaled = state["stage"] is OptState.READY
        if scaled:
            self._check_inf_per_device(optimizer)
        given = getattr(optimizer, "grad_scale", None)
        optimizer.grad_scale = None if not scaled else self._scale if given is None else self._scale * given
        optimizer.found_inf = sum(state["found_inf_per_device"].values())
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            state["stage"] = OptState.STEPPED
            del optimizer.grad_scale, optimizer.found_inf

    def _check_inf_per_device(self, optimizer):
        """Looks for infinities among the gradients, which stay as they are."""
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        found_inf = umbra.zeros((), dtype=umbra.float32, device=scale.device)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = self._unscale_grads_(optimizer, umbra.ones_like(scale), found_inf, True)
        return self._found_inf_per_device(optimizer)

    def _found_inf_per_device(self, optimizer):
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    def update(self, new_scale=None):
        """The scale of the next iteration: smaller after infinities, larger after many steps without; or `new_scale`."""
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if isinstance(new_scale, float):
            scale.fill_(new_scale)
        elif new_scale is not None:
            if not isinstance(new_scale, umbra.Tensor) or new_scale.numel() != 1 or new_scale.requires_grad:
                raise AssertionError("new_scale should be a float or a 1-element torch.Tensor with requires_grad=False and should be on the same "
                                     "device as the scale")
            scale.copy_(new_scale)
        else:
            found = [f for state in self._per_optimizer_states.values() for f in state["found_inf_per_device"].values()]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            combined = found[0].clone()
            for other in found[1:]:
                combined += other
            umbra._amp_update_scale_(scale, tracker, combined, self._growth_factor, self._backoff_factor, self._growth_interval)
        self._per_optimizer_states = collections.defaultdict(_fresh_state)

    # ---- what it is made of ----

    def _get_scale_async(self):
        return self._scale

    def get_scale(self):
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self):
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        self._growth_interval = new_interval

    def _get_growth_tracker(self):
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

    def is_enabled(self):
        return self._enabled

    def state_dict(self):
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": self._get_growth_tracker()}

    def load_state_dict(self, state_dict):
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.")
        self._init_scale = state_dict["scale"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval, self._init_growth_tracker = state_dict["growth_interval"], state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self):
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError("A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after scaler.update().")
            state.update(_init_scale=self.get_scale(), _init_growth_tracker=self._get_growth_tracker(), _scale=None, _growth_tracker=None,
                         _per_optimizer_states=None)
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        if self._enabled:
            self._per_optimizer_states = collections.defaultdict(_fresh_state)
