"""What a captured function must not do, since a graph does not do it again: calls of functions that are not to be captured, prints, questions for the time,
random numbers that are not the library's, changes of what tensors are to autograd."""
import builtins
import contextlib
import functools
import gc
import io
import os
import random
import re
import sys
import threading
import time
import types

import umbra
from umbra import _C
from umbra._C import ConstraintViolationError, Tensor
from umbra._dynamo.exc import Unsupported
from umbra._functorch import made, objects
from umbra.nn import Module
from umbra.utils import _device, _pytree as pytree
from umbra.utils._python_dispatch import is_traceable_wrapper_subclass

_state = threading.local()  # of the capture that is under way on this thread
_replaced = {}  # functions that stop captures, while there are any: (module, name) to the function itself
_CLOCKS = ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time", "sleep")
_lock = threading.Lock()
_captures = 0  # under way, on all threads
_collects = False  # whether Python's collector, which may call anything at any time, waits for them


class NotCaptured(Unsupported):
    """What is captured has to run as it is."""


class NotForeseen(NotCaptured):
    """A function was called whose reads are not watched, or an attribute asked for by a name that was computed: the capture begins again with it."""

    def __init__(self, found):
        super().__init__(f"use of {getattr(found, '__qualname__', found)}\n  Explanation: nobody knew that it would be called")
        self.found = found


class Signalled(BaseException):
    """A handler of a signal was to run within a capture. It runs as soon as everything is as it was before, and the capture begins again."""


NotCaptured.__name__ = NotCaptured.__qualname__ = "Unsupported"  # as which users see it


def stop(what, why):
    """Ends the capture that is under way on this thread, if there is one."""
    if _C._is_capturing():
        _state.stopped = NotCaptured(f"{what}\n  Explanation: {why}")
        raise _state.stopped


def stop_call(name, why):
    """The same for a call of a function that is written in C."""
    if name != "warn" or not getattr(_state, "whole", False):  # a whole graph leaves warnings out
        stop(f"call of {name}", why)


def not_foreseen(found):
    """Ends the capture before the function runs, or the attribute is used."""
    if _C._is_capturing() and _state.stopped is None:
        _state.stopped = NotForeseen(found)
    if _state.stopped is not None:
        raise _state.stopped


def signalled(number):
    """Ends the capture before a handler of a signal runs."""
    _state.signals.append(number)
    _state.stopped = Signalled()
    raise _state.stopped


@contextlib.contextmanager
def watched(functions, reads, marked=None, whole=False):
    """While a function is captured it must not do any of this. To be entered and left without interruption. `functions` are those that it may call (`reachable.Functions`), `reads` what these read. `marked`: sizes of inputs
    that must not become numbers, {place: (name, dimensions)}. `whole`: nothing may run as it is."""
    _state.stopped, _state.marked, _state.signals = None, marked or {}, []
    _state.whole, _state.reads, _state.names, _state.own_files = whole, reads, functions.names | functions.texts, tuple(functions.own_files)
    _state.whole_reads, _state.returned = functions.whole, functions.returned
    _state.library = functions.library + os.sep
    _state.cells = {id(cell) for function in functions.functions for cell in function.__closure__ or ()}
    numbers, modes = _RandomNumbers(), _modes()
    _C._converted_to_int()
    _begin()
    _C._watch_frames(set(functions.functions), functions.inner_code(), functions.questions, functions.own_files, functions.library)
    try:
        with _C._Capturing(True):
            yield
            if _state.stopped is not None:  # and the function went on
                raise _state.stopped
            numbers.check()
    except Exception:
        if _state.signals:  # the function caught it and failed
            raise Signalled from None
        raise
    finally:
        _C._stop_watching_frames()
        for number in _state.signals:
            _C._run_handler_later(number)
        _state.reads = _state.stopped = None
        numbers.restore()
        _restore_modes(modes)
        _end()


def paused():
    """While a backend runs, which may do as it likes; while something is done that is no part of the function."""
    return _C._Capturing(False)


def is_of_handler(error):
    """Whether an exception came out of a handler of a signal."""
    traceback = error.__traceback__
    while traceback is not None and not _C._is_handler(traceback.tb_frame.f_code):
        traceback = traceback.tb_next
    return traceback is not None


def _begin():
    global _captures, _collects
    with _lock:
        _captures += 1
        if _captures > 1:
            return
        _collects = gc.isenabled()
        gc.disable()
        _replace(builtins, "print", "Failed to trace builtin operator `print`", "a graph would print when it is captured, and never again")
        for module, name in ((builtins, "open"), (io, "open"), (builtins, "input")):
            _replace(module, name, f"Failed to trace builtin operator `{name}`", "a graph reads and writes no files")
        for name in _CLOCKS:
            _replace(time, name, f"call of time.{name}", "a graph would keep the time at which it was captured")
        for name, watching in (("id", _id), ("getattr", _getattr), ("hasattr", _hasattr)):
            _replaced[builtins, name] = getattr(builtins, name), watching
            setattr(builtins, name, watching)


def _end():
    global _captures
    with _lock:
        _captures -= 1
        if _captures > 0:
            return
        if _collects:
            gc.enable()
        for (module, name), (function, refusing) in _replaced.items():
            if getattr(module, name) is refusing:
                setattr(module, name, function)
        _replaced.clear()


def _replace(module, name, what, why):
    function = getattr(module, name)

    @functools.wraps(function)
    def refusing(*args, **kwargs):
        stop(what, why)
        return function(*args, **kwargs)
    _replaced[module, name] = function, refusing
    setattr(module, name, refusing)


def asks_for_everything():
    """Ends the capture before the function gets all attributes of an object, unless all of them are watched."""
    if _C._is_capturing() and not _state.whole_reads:
        not_foreseen(EVERYTHING)


def _user_calls(library=False):
    """Whether the caller's caller is code of the user's, in a function that is captured: not of this package, nor of Python's library, unless that is
    asked for and works for the user."""
    if not _C._is_capturing():
        return False
    frame = sys._getframe(2)
    if library:
        return _C._is_of_user(frame)
    file = frame.f_code.co_filename
    return not file.startswith(_state.own_files) and (not file.startswith(_state.library) or "-packages" in file)


@functools.wraps(builtins.id)
def _id(obj, /, _id=builtins.id):
    if isinstance(obj, Tensor) and _user_calls():
        stop("call of id() on a Tensor", "a stand-in is another object")
    return _id(obj)


@functools.wraps(builtins.getattr)
def _getattr(obj, name, /, *default, _getattr=builtins.getattr):
    """A name that was computed may be that of an object whose inside is to be watched."""
    if not _C._is_capturing() or name in _state.names or not _user_calls(library=True) or _is_foreseen(obj, name):
        return _getattr(obj, name, *default)
    value = _getattr(obj, name, *default)
    if not (isinstance(obj, Module) and isinstance(value, (Module, Tensor))):
        not_foreseen(name)
    return value


@functools.wraps(builtins.hasattr)
def _hasattr(obj, name, /, _hasattr=builtins.hasattr):
    if _C._is_capturing() and name not in _state.names and _user_calls(library=True) and not _is_foreseen(obj, name):
        not_foreseen(name)
    return _hasattr(obj, name)


def _is_foreseen(obj, name):
    """Whether an attribute is watched by whatever name it is asked for, or never changes: of the classes of tensors, of this package, plain ones of objects."""
    if not isinstance(name, str):
        return True
    if isinstance(obj, Tensor):
        return hasattr(type(obj), name)
    if isinstance(obj, types.ModuleType):
        return is_own_name(obj.__name__)
    cls, attributes = (obj, {}) if isinstance(obj, type) else (type(obj), _attributes_of(obj))
    if name in attributes:
        return type(attributes[name]) in _PLAIN
    return not cls.__flags__ & _MADE_IN_PYTHON or is_own_name(cls.__module__) or cls.__module__ in sys.stdlib_module_names


def _attributes_of(obj):
    try:
        return object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return {}


def is_own_name(module):
    """Whether a module is of this package, by its name."""
    return isinstance(module, str) and module.split(".")[0] in ("umbra", "torch")


class Returned:
    """A list, dict or object from outside that a function gives back."""
    __qualname__ = "a container from outside as a result"

    def __init__(self, container):
        self.container = container


EVERYTHING = types.SimpleNamespace(__qualname__="all attributes of an object")  # may be looked at
_MADE_IN_PYTHON = 1 << 9  # a flag of classes made by a class statement
_PLAIN = (str, int, float, bool, type(None))


class _RandomNumbers:
    """The generators of Python and NumPy: a graph would keep the numbers that were drawn for it."""

    def __init__(self):
        numpy = sys.modules.get("numpy")
        self.numpy = numpy.random if numpy is not None else None
        self.states = self._now()

    def _now(self):
        of_numpy = None if self.numpy is None else self.numpy.get_state(legacy=False)
        return random.getstate(), of_numpy

    def _changed(self):
        python, of_numpy = self._now()
        if python != self.states[0]:
            return "random"
        return None if _same(of_numpy, self.states[1]) else "numpy.random"

    def check(self):
        if (module := self._changed()) is not None:
            stop(f"random numbers of the module {module}", "a graph would keep the numbers that were drawn when it was captured")

    def restore(self):
        """The function has not run yet."""
        if self._changed() is not None:
            random.setstate(self.states[0])
            if self.numpy is not None:
                self.numpy.set_state(self.states[1])


def _same(a, b):
    """Whether two states of a generator of NumPy's are equal: dicts that hold arrays."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    return a.tobytes() == b.tobytes() if hasattr(a, "tobytes") else a == b


def _holds_others(part):
    return isinstance(part, (list, dict)) or objects.opens(part)


def _containers_in(arguments):
    """Lists, dicts and objects among arguments: {number of the object: (object, steps to it)}."""
    args, kwargs = arguments
    found, left = {}, [(part, (0, i)) for i, part in enumerate(args)] + [(part, (1, name)) for name, part in kwargs.items()]
    while left:
        part, steps = left.pop()
        if _holds_others(part):
            if id(part) in found:
                continue
            found[id(part)] = part, steps
        if isinstance(part, tuple) or _holds_others(part):
            inside = enumerate(part) if isinstance(part, (list, tuple)) else (part if isinstance(part, dict) else vars(part)).items()
            left += [(value, (*steps, key)) for key, value in inside]
    return found


class Changed(Exception):
    """A function changed something besides its results."""


def _set_deterministic(modes):
    umbra.use_deterministic_algorithms(modes[0], warn_only=modes[1])


def _switches():
    """What of a thread, or of all, stays when a function that changed it is over: pairs of functions that tell it and set it."""
    of_attention = umbra.backends.cuda
    of_modules = umbra.__future__
    return ((umbra.is_grad_enabled, umbra.set_grad_enabled),
            (lambda: umbra.is_autocast_enabled("cpu"), lambda on: umbra.set_autocast_enabled("cpu", on)),
            (lambda: umbra.get_autocast_dtype("cpu"), lambda dtype: umbra.set_autocast_dtype("cpu", dtype)),
            (umbra.get_default_dtype, umbra.set_default_dtype),
            (_device.get_default, _device.set_default),
            (lambda: (umbra.are_deterministic_algorithms_enabled(), umbra.is_deterministic_algorithms_warn_only_enabled()), _set_deterministic),
            (of_modules.get_overwrite_module_params_on_conversion, of_modules.set_overwrite_module_params_on_conversion),
            (of_modules.get_swap_module_params_on_conversion, of_modules.set_swap_module_params_on_conversion),
            (of_attention.math_sdp_enabled, of_attention.enable_math_sdp),
            (of_attention.flash_sdp_enabled, of_attention.enable_flash_sdp),
            (of_attention.mem_efficient_sdp_enabled, of_attention.enable_mem_efficient_sdp),
            (of_attention.cudnn_sdp_enabled, of_attention.enable_cudnn_sdp))


def _modes():
    return [tell() for tell, _ in _switches()]


def _restore_modes(modes):
    """The function has not run yet."""
    for (tell, put), before in zip(_switches(), modes):
        if tell() != before:
            put(before)


class Tensors:
    """What must be as it was when one run of a captured function is over: what its arguments are to autograd, since their stand-ins are gone then; what it
    reads, since a second run of the capture may change it back; modes of the thread."""

    def __init__(self, inputs, arguments):
        self.inputs, self.modes = inputs, _modes()
        self.containers = _containers_in(arguments)
        self.leaves = [leaf for leaf in pytree.tree_leaves(arguments) if not isinstance(leaf, (Tensor, *_PLAIN))]
        self.places = [place for place, value in enumerate(inputs) if isinstance(value, Tensor)]
        self.before = [(value, value.requires_grad) for value in inputs if isinstance(value, Tensor)]
        self.attributes = [dict(vars(value)) for value, _ in self.before]
        self.steps = [_C._steps_from_base(value) for value, _ in self.before]

    def is_from_outside(self, part):
        """Whether part of a result is a list, dict or object among the arguments, or one that the function reads from elsewhere: it is given as what it is.
        Where an equal one may make way for the latter, the capture begins again with guards that tell them apart."""
        if not _holds_others(part) or id(part) in self.containers:
            return _holds_others(part)
        if not _C._is_capturing() or not _state.reads.saw(part):
            return False
        if not any(part is other for other in _state.returned):
            not_foreseen(Returned(part))
        return True

    def saw(self, part):
        """Whether an object is one of those that the function reads, or is given."""
        return _C._is_capturing() and _state.reads.saw(part) or any(part is leaf for leaf in self.leaves)

    def stays(self, part):
        """Whether part of a result is given back as itself."""
        given = any(part is leaf for leaf in self.leaves) or isinstance(part, (Module, types.FunctionType)) and self.saw(part)
        return given or made.is_constant(part) or self.is_from_outside(part)

    def has_class_of_its_own(self, value):
        """Whether a result is a tensor of a user's class which has nothing besides, and is no argument."""
        return _has_class_of_its_own(value) and not vars(value) and not any(value is other for other, _ in self.before)

    @property
    def cells(self):
        """The cells of closures that were there before the function ran, by their number."""
        return _state.cells

    @staticmethod
    def stop(what, why):
        stop(what, why)

    def assigned(self):
        """The attributes that arguments were given: [(place, name, value)]."""
        found = []
        for place, value, before in zip(self.places, (value for value, _ in self.before), self.attributes):
            now = vars(value)
            if is_traceable_wrapper_subclass(value) and (before.keys() != now.keys() or any(now[name] is not before[name] for name in now)):
                stop("setattr() on a tensor subclass", "the function gives an argument attributes, and graphs know its parts alone")
            if before.keys() - now.keys():
                stop("delattr() on a Tensor", "the function takes an attribute from an argument, and graphs know values alone")
            found += [(place, name, part) for name, part in now.items() if name not in before or part is not before[name]]
        return found

    def place_of(self, part):
        """Where a container stands among the arguments; None of others."""
        return self.containers.get(id(part), (None, None))[1]

    def check(self, results):
        """Stops a capture whose graphs would leave something out."""
        self._check_sizes()
        if _C._is_capturing() and (why := _state.reads.broken()) is not None:
            raise Changed(why)
        if _modes() != self.modes:
            raise Changed("modes of the thread")
        for value, required in self.before:
            if value._grad is not None:
                stop("Tensor.grad", "the function sets the gradient of an argument, and graphs know values alone")
            if required != value.requires_grad and (required or value.is_leaf):
                stop("Unsupported Tensor.requires_grad_() call", "the function changes whether an argument requires gradients")
        if self.steps != [_C._steps_from_base(value) for value, _ in self.before]:
            stop("Unsupported function call (delayed)", "the function makes an argument a view of itself, whose history is the function's own")
        known = {id(value) for value, _ in self.before}
        # Without an input that requires gradients, those of a result have to lead to something that is closed over.
        from_outside = not _C._is_tracing() and not any(required for _, required in self.before)
        for value in results:
            if isinstance(value, Tensor) and id(value) not in known and _has_class_of_its_own(value):
                stop(f"a result of the class {type(value).__name__}", "graphs give plain tensors")
            if type(value) is Tensor and id(value) not in known and _C._has_own_attributes(value):
                stop("setattr() on a Tensor", "the function gives a result attributes, and graphs know values alone")
            lost = _C._lost_of_result(value, from_outside) if isinstance(value, Tensor) and id(value) not in known else None
            if lost is not None:
                stop(f"a result with {lost}", "the function gives a tensor that is more to autograd than a value made of its arguments")

    def _check_sizes(self):
        # int(x.shape[0]) has to give a number here, and need not for a compiler of source.
        if not _C._is_capturing() or _C._converted_to_int():
            return
        for place, (name, dims) in _state.marked.items():
            for dim in dims:
                size = self.inputs[place].shape[dim]
                if is_traceable_wrapper_subclass(self.inputs[place]):  # their sizes are numbers
                    continue
                if isinstance(size, int) or size.node.is_constant():
                    raise ConstraintViolationError(_violation(name, dim, size))


def _has_class_of_its_own(value):
    """Whether a tensor is of a user's class that graphs cannot make it of again."""
    return not is_own_name(type(value).__module__) and not is_traceable_wrapper_subclass(value)


def _violation(name, dim, size):
    first, *rest = re.split(r"(?=[\[.])", name, maxsplit=1)
    where = f"L['{first}']{''.join(rest)}.size()[{dim}]"
    return (f"Constraints violated ({where})! For more information, run with TORCH_LOGS=\"+dynamic\".\n  - You marked {where} as dynamic but your code "
            f"specialized it to be a constant ({size}). If you're using mark_dynamic, either remove it or use maybe_mark_dynamic. If you're using "
            "Dim.DYNAMIC, replace it with either Dim.STATIC or Dim.AUTO.")


def disabled(target, reason=None):
    """A function, or module, whose calls stop a capture."""
    if isinstance(target, type):
        target.__init__ = disabled(target.__init__, reason)
        return target
    if isinstance(target, Module):
        target.forward = disabled(target.forward, reason)
        return target
    name = getattr(target, "__name__", type(target).__name__)

    @functools.wraps(target)
    def call(*args, **kwargs):
        stop("Skip calling `torch.compiler.disable()`d function", f"{name} is not to be captured" + (f": {reason}" if reason else ""))
        return target(*args, **kwargs)
    call._torchdynamo_disable = True
    return call
