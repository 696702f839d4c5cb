"""How long operators take: `with profile() as p: ...`, then `print(p.key_averages().table())`.

Calls are seen below autograd, where composites have come apart, on the thread that runs the profile.
"""
import enum
import os
import socket
import time
import warnings

from umbra._modules import lazy_submodules
from umbra._options import not_built
from umbra.autograd import profiler as _profiler
from umbra.autograd.profiler import kineto_available, record_function  # noqa: F401

__all__ = ["ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function", "schedule", "supported_activities",
           "tensorboard_trace_handler"]


class ProfilerActivity(enum.Enum):
    """Whose work is measured."""
    CPU, CUDA, XPU, MTIA, HPU, PrivateUse1 = range(6)


class ProfilerAction(enum.Enum):
    """What a profiler does in a step."""
    NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)


def supported_activities():
    """What can be measured."""
    return {ProfilerActivity.CPU}


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """The function of a step's number that says what a profiler does in it."""
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), active={active} (need > 0), "
                             f"repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0).")
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)

    def action(step):
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        length = wait + warmup + active
        if repeat > 0 and step // length >= repeat:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE
    return action


class profile:
    """A profile of what runs inside; with a schedule, of some of its steps, each of which ends with `step()`."""

    def __init__(self, *, activities=None, schedule=None, on_trace_ready=None, record_shapes=False, profile_memory=False, with_stack=False,
                 with_flops=False, with_modules=False, experimental_config=None, execution_trace_observer=None, acc_events=False, use_cuda=None,
                 custom_trace_id_callback=None):
        not_built("torch.profiler.profile", with_stack=(with_stack, False), with_flops=(with_flops, False), with_modules=(with_modules, False),
                  experimental_config=(experimental_config, None), execution_trace_observer=(execution_trace_observer, None),
                  custom_trace_id_callback=(custom_trace_id_callback, None))
        self.activities = set(activities) if activities else supported_activities()
        if use_cuda or self.activities - supported_activities():
            warnings.warn("CUDA is not available, disabling CUDA profiling", stacklevel=2)
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.record_steps, self.on_trace_ready = schedule is not None, on_trace_ready
        self.record_shapes, self.profile_memory, self.acc_events = record_shapes, profile_memory, acc_events
        self.step_num, self.current_action = 0, self.schedule(0)
        self._inner, self._past, self._step_region = None, [], None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exception):
        self.stop()

    def start(self):
        self._go_on()

    def stop(self):
        self._end_step()
        recorded = self._inner is not None
        self._finish()
        if recorded and self.on_trace_ready:
            self.on_trace_ready(self)

    def step(self):
        """A step ends and the next one begins, with what the schedule says of it."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if before == ProfilerAction.RECORD_AND_SAVE:
            self._finish()
            if self.on_trace_ready:
                self.on_trace_ready(self)
        elif before == ProfilerAction.RECORD and self.current_action in (ProfilerAction.NONE, ProfilerAction.WARMUP):
            warnings.warn("Incorrect schedule: RECORD followed by NONE" if self.current_action == ProfilerAction.NONE
                          else "Incorrect schedule: RECORD followed by WARMUP", stacklevel=2)
            self._finish()
        self._go_on()

    def _go_on(self):
        if self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE) and self._inner is None:
            self._inner = _profiler.profile(record_shapes=self.record_shapes, profile_memory=self.profile_memory)
            self._inner.__enter__()
        if self.record_steps and self._inner is not None:
            self._step_region = record_function(f"ProfilerStep#{self.step_num}")
            self._step_region.__enter__()

    def _end_step(self):
        if self._step_region is not None:
            self._step_region.__exit__(None, None, None)
            self._step_region = None

    def _finish(self):
        if self._inner is None:
            return
        self._inner.__exit__(None, None, None)
        events = self._inner.function_events
        if self.acc_events:
            events[:0] = self._past
        self._past, self._inner = events, None

    def events(self):
        """The calls of the last cycle; with `acc_events`, of all of them."""
        return self._past

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False, include_python_functions=False):
        events = _profiler.EventList(self._past, self.profile_memory)
        return events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name, include_python_functions)

    def export_chrome_trace(self, path):
        """Writes the last cycle for `chrome://tracing`."""
        _profiler.EventList(self._past).export_chrome_trace(path)


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """For `on_trace_ready`: writes each cycle to a file of its own in a folder."""
    not_built("torch.profiler.tensorboard_trace_handler", use_gzip=(use_gzip, False))

    def handler(profile):
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        profile.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json"))
    return handler


__getattr__ = lazy_submodules(__name__)
