"""Calls of modules while a program is exported: the paths that its nodes get, and modules that are reached by several."""
import threading

from umbra import _C
from umbra.nn.modules import _hooks


class _Capture(threading.local):
    """The path of each module in the program, for the nodes that are recorded. Each thread has its own; the count of exports in
    progress spares calls outside of them the look."""

    paths = noted_calls = None


_capture = _Capture()


class ModulePaths(dict):
    """The paths of a module's parts by their ids; `shared` are the ids of parts that have several, and `named` is what stands for each path of theirs."""

    def __init__(self, parts, prefix="L__self__"):
        """`parts`: pairs of a path and a module, one for each path. `prefix`: what stands before a path in the keys of `nn_module_stack`."""
        super().__init__()
        self.prefix = prefix
        self.shared, self.named = set(), {}
        for path, part in parts:
            if self.setdefault(id(part), path) is not path:
                self.shared.add(id(part))


def set_paths(paths):
    """Gives this thread's export the paths of modules (a `ModulePaths`), or takes them back with None; says which there were before."""
    before = _capture.paths
    _C._count_module_captures((paths is not None) - (before is not None))
    _capture.paths = paths
    return before


def set_noted_calls(noted):
    """Gives this thread's export what to do with calls of modules, by their paths: functions of `forward` that give what runs in its place."""
    _capture.noted_calls = noted


def by_name(parent, name, module):
    """A module of several names goes by the one that it is reached by: an object of its own for each name, with all that the module has."""
    paths = _capture.paths
    if not paths or id(module) not in paths.shared or id(parent) not in paths:
        return module
    path = f"{paths[id(parent)]}.{name}".lstrip(".")
    if path not in paths.named:
        named = paths.named[path] = object.__new__(type(module))
        object.__setattr__(named, "__dict__", module.__dict__)
        paths[id(named)] = path
    return paths.named[path]


def parts_by_name(parent):
    """The parts of a container; while a module of several names is exported, as they are reached by way of this one."""
    paths = _capture.paths
    if not paths or not paths.shared:
        return parent._modules
    return {name: by_name(parent, name, part) for name, part in parent._modules.items()}


def type_path(module):
    """The class of a module as graphs name it: torch.nn.modules.linear.Linear."""
    cls = type(module)
    name = f"{cls.__module__}.{cls.__qualname__}"
    return "torch" + name.removeprefix("umbra") if name.startswith("umbra.") else name


def call(module, args, kwargs, forward):
    """A call of a module while some thread exports a program."""
    path = (_capture.paths or {}).get(id(module))
    if path is None:
        return _hooks.call_with_hooks(module, args, kwargs, forward)
    _C._enter_module(path, type_path(module), _capture.paths.prefix)
    try:
        note = _capture.noted_calls.get(path) if _capture.noted_calls is not None else None
        return _hooks.call_with_hooks(module, args, kwargs, note and note(module.forward))
    finally:
        _C._leave_module()
