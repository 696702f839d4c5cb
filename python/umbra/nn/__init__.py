"""Modules, parameters and functions of neural networks."""
from umbra._modules import lazy_submodules
from umbra.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter  # noqa: F401
from umbra.nn.modules import *  # noqa: F401, F403
globals().pop("utils", None)  # that of umbra.nn.modules, which would hide umbra.nn.utils
from umbra.nn import functional, init, modules  # noqa: F401
from umbra.nn.parallel import DataParallel  # noqa: F401



def factory_kwargs(kwargs):
    """The keywords for factories (device, dtype, memory_format) among those of a module's constructor, by themselves or in `factory_kwargs`."""
    if kwargs is None:
        return {}
    names = {"device", "dtype", "memory_format"}
    if unknown := kwargs.keys() - (names | {"factory_kwargs"}):
        raise TypeError(f"unexpected kwargs {unknown}")
    out = dict(kwargs.get("factory_kwargs", {}))
    for name in ("device", "dtype", "memory_format"):
        if name not in kwargs:
            continue
        if name in out:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        out[name] = kwargs[name]
    return out


__getattr__ = lazy_submodules(__name__)
