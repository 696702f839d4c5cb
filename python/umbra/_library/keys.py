"""Sets of dispatch keys, as kernels that ask for theirs get them: `kernel(keyset, *args)`."""
from umbra import _C
from umbra._C import OpOverload, Tensor
from umbra.utils import _pytree as pytree

# In PyTorch's order: a later one comes first in a call.
_ORDER = ("CPU", "CUDA", "Meta", "ADInplaceOrView", "AutogradCPU", "AutogradCUDA", "AutogradMeta")
_BACKENDS = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}


class DispatchKeySet:
    """Keys by their names; `&`, `|` and `-` as for sets."""

    def __init__(self, *names):
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


OpOverload.redispatch = _redispatch
_C.DispatchKeySet = DispatchKeySet
_C._after_autograd_keyset, _C._after_ADInplaceOrView_keyset = AFTER_AUTOGRAD, AFTER_VIEWS_AND_WRITES
