"""Which nodes a backend takes: what partitioners ask."""
import abc

from umbra._C import Tensor
from umbra.fx.passes.tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]


class OperatorSupportBase(abc.ABC):
    @abc.abstractmethod
    def is_node_supported(self, submodules, node):
        """Whether the backend takes the node; `submodules` are the graph module's, by path."""


class OperatorSupport(OperatorSupportBase):
    """By names of targets: `{"torch.relu": None}` takes any arguments, `((dtypes of arguments, ...), {name: dtypes})` those of these types."""

    def __init__(self, support_dict=None):
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules, node):
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        wanted = self._support_dict[target]
        if wanted is None:
            return True
        positional, named = wanted
        for i, dtypes in enumerate(positional):
            if len(node.all_input_nodes) <= i:
                break
            dtype = _dtype(node.args[i])
            if dtype is not None and dtype not in dtypes:
                return False
        for name, dtypes in named.items():
            dtype = _dtype(node.kwargs.get(name))
            if dtype is not None and dtype not in dtypes:
                return False
        return True


def _dtype(argument):
    meta = getattr(argument, "meta", {})
    if "tensor_meta" in meta:
        return getattr(meta["tensor_meta"], "dtype", None)
    value = meta.get("val") if meta else None
    return value.dtype if isinstance(value, Tensor) else None


class _Function(OperatorSupportBase):
    def __init__(self, function):
        self.function = function

    def is_node_supported(self, submodules, node):
        return self.function(submodules, node)


def create_op_support(is_node_supported):
    """The support that a function of (submodules, node) describes."""
    return _Function(is_node_supported)


def chain(*op_support):
    """What all take."""
    return create_op_support(lambda submodules, node: all(s.is_node_supported(submodules, node) for s in op_support))


def any_chain(*op_support):
    """What one of them takes."""
    return create_op_support(lambda submodules, node: any(s.is_node_supported(submodules, node) for s in op_support))


class OpSupports:
    """Usual restrictions."""

    @classmethod
    def decline_if_input_dtype(cls, dtype):
        """Nodes with an argument of a type are not taken."""
        return create_op_support(lambda _, node: all(_dtype(a) != dtype for a in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set):
        """Nodes of these names are not taken."""
        return create_op_support(lambda _, node: node.name not in disallow_set)
