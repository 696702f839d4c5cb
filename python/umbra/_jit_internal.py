"""Marks for the compiler of TorchScript under the names that packages import."""
from typing import Any, Callable, Dict, Final, List, Optional, Tuple, TypeVar, Union  # noqa: F401

from umbra.jit._annotations import export, ignore, is_scripting, unused  # noqa: F401

BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = List  # one number, or a list of that many


def _overload(func):
    return func


_overload_method = _overload


def boolean_dispatch(arg_name, arg_index, default, if_true, if_false, module_name, func_name):
    """The function that one argument chooses: `if_true` or `if_false`."""
    def dispatched(*args, **kwargs):
        chosen = kwargs.get(arg_name, args[arg_index] if len(args) > arg_index else default)
        return (if_true if chosen else if_false)(*args, **kwargs)
    dispatched.__module__, dispatched.__name__ = module_name, func_name
    return dispatched


def can_compile_class(cls):
    return isinstance(cls, type)
