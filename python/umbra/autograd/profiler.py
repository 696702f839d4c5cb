"""Profiles of what runs inside: the calls of operators below autograd, and regions that have names."""
import contextlib

from umbra import _C
from umbra._options import not_built
from umbra.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg, events_of  # noqa: F401

_running = []  # profiles that are noted at this moment


class record_function(contextlib.ContextDecorator):
    """A region with a name, which profiles show."""

    def __init__(self, name, args=None):
        self.name, self.args = name, args

    def _recreate_cm(self):
        return type(self)(self.name, self.args)

    def __enter__(self):
        self._noted = list(_running)
        for profile in self._noted:
            profile._noting.begin(self.name)
        return self

    def __exit__(self, *exception):
        for profile in self._noted:
            if profile in _running:
                profile._noting.end()
        return None


def kineto_available():
    """Whether the library is there that measures accelerators: it is not, calls are measured without it."""
    return False


class profile:
    """The calls of operators that this thread makes, and how long they take."""

    def __init__(self, enabled=True, *, record_shapes=False, with_flops=False, profile_memory=False, with_stack=False, with_modules=False,
                 use_kineto=False, use_cpu=True, use_device=None):
        not_built("torch.autograd.profiler.profile", with_flops=(with_flops, False), with_stack=(with_stack, False), with_modules=(with_modules, False),
                  use_cpu=(use_cpu, True), use_device=(use_device, None))
        self.enabled, self.record_shapes, self.profile_memory = enabled, record_shapes, profile_memory
        self._noting, self._events = None, None

    def __enter__(self):
        if self.enabled:
            if self._noting is not None:
                raise RuntimeError("Profiler context manager is not reentrant")
            self._noting = _C._Profile(self.record_shapes, self.profile_memory)
            self._noting.start()
            _running.append(self)
        return self

    def __exit__(self, *exception):
        if self.enabled:
            _running.remove(self)
            self._noting.stop()
            self._events = events_of(self._noting.calls(), self.record_shapes, self.profile_memory)
        return False

    def _function_events(self):
        if self._events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self._events

    @property
    def function_events(self):
        return self._function_events()

    @property
    def self_cpu_time_total(self):
        return self._function_events().self_cpu_time_total

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False, include_python_functions=False):
        return self._function_events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name, include_python_functions)

    def total_average(self):
        return self._function_events().total_average()

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55, max_shapes_column_width=80, header=None,
              top_level_events_only=False):
        return self._function_events().table(sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header,
                                             top_level_events_only)

    def export_chrome_trace(self, path):
        return self._function_events().export_chrome_trace(path)

    def __str__(self):
        return "<unfinished torch.autograd.profile>" if self._events is None else str(self._events)

    __repr__ = __str__


class emit_nvtx:
    """Marks for another device's profiler, which is not here."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("torch.autograd.profiler.emit_nvtx is not in Umbra yet")


emit_itt = emit_nvtx
