"""Sets of dispatch keys, as kernels that ask for theirs get them: `kernel(keyset, *args)`."""
import enum

import umbra
from umbra import _C
from umbra._C import OpOverload, Tensor
from umbra.utils import _pytree as pytree

# In PyTorch's order: a later one comes first in a call.
_ORDER = ("Undefined", "CPU", "CUDA", "Meta", "ADInplaceOrView", "AutogradCPU", "AutogradCUDA", "AutogradMeta", "AutocastCPU", "AutocastXPU",
          "AutocastCUDA")
# Keys that stand for several, and layers that tensors do not carry: what rules of higher-order operators are registered for.
_OF_RULES = ("Autograd", "BackendSelect", "CompositeExplicitAutograd", "CompositeImplicitAutograd", "Functionalize", "PreDispatch", "PythonDispatcher",
             "PythonTLSSnapshot")
DispatchKey = enum.Enum("DispatchKey", _ORDER + _OF_RULES, module="torch._C")
_BACKENDS = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}


class DispatchKeySet:
    """Keys, or their names; `&`, `|` and `-` as for sets."""

    def __init__(self, *keys):
        names = [key.name if isinstance(key, DispatchKey) else key for key in keys]
        for name in names:
            if name not in _ORDER:
                raise NotImplementedError(f"the dispatch key {name} is not in Umbra yet")
        self._names = frozenset(names)

    def has(self, key):
        return str(key).removeprefix("DispatchKey.") in self._names

    def add(self, key):
        return self | DispatchKeySet(key)

    def remove(self, key):
        return self - DispatchKeySet(key)

    def highestPriorityTypeId(self):
        return max(self._names, key=_ORDER.index, default="Undefined")

    def __and__(self, other):
        return DispatchKeySet(*(self._names & other._names))

    def __or__(self, other):
        return DispatchKeySet(*(self._names | other._names))

    def __sub__(self, other):
        return DispatchKeySet(*(self._names - other._names))

    def __eq__(self, other):
        return isinstance(other, DispatchKeySet) and self._names == other._names

    def __hash__(self):
        return hash(self._names)

    def __repr__(self):
        return f"DispatchKeySet({', '.join(name for name in _ORDER if name in self._names)})"


AFTER_VIEWS_AND_WRITES = DispatchKeySet("CPU", "CUDA", "Meta")
AFTER_AUTOGRAD = AFTER_VIEWS_AND_WRITES | DispatchKeySet("ADInplaceOrView")


def with_keyset(function, key):
    """A kernel at a key that is given the keys of its call first."""
    above = key.startswith("Autograd") or key == "CompositeImplicitAutograd"

    def kernel(*args, **kwargs):
        devices = [leaf.device.type for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        backend = _BACKENDS[devices[0] if devices else "cpu"]
        return function(DispatchKeySet(backend, f"Autograd{backend}") if above else DispatchKeySet(backend), *args, **kwargs)
    return kernel


def _redispatch(op, keyset, /, *args, **kwargs):
    """Calls the operator's kernel for the first of the keys."""
    if any(name.startswith("Autograd") for name in keyset._names):
        return op(*args, **kwargs)
    return _C._call_below_autograd(op, args, kwargs)


class _ExcludeDispatchKeyGuard:
    """A region without some layers: those that cast, where all of them are left out."""

    def __init__(self, keyset):
        if not keyset._names or not all(name.startswith("Autocast") for name in keyset._names):
            raise NotImplementedError(f"torch._C._ExcludeDispatchKeyGuard of {keyset} is not in Umbra yet")
        devices = {name.removeprefix("Autocast").lower() for name in keyset._names}
        self._regions = [umbra.autocast(device, enabled=False) for device in sorted(devices & {"cpu", "cuda"})]

    def __enter__(self):
        for region in self._regions:
            region.__enter__()

    def __exit__(self, *exception):
        for region in reversed(self._regions):
            region.__exit__(*exception)


OpOverload.redispatch = _redispatch
_C.DispatchKey, _C.DispatchKeySet, _C._ExcludeDispatchKeyGuard = DispatchKey, DispatchKeySet, _ExcludeDispatchKeyGuard
_C._after_autograd_keyset, _C._after_ADInplaceOrView_keyset = AFTER_AUTOGRAD, AFTER_VIEWS_AND_WRITES
