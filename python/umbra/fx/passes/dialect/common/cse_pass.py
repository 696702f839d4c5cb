"""Equal calls of equal arguments made once."""
import copy

import umbra
from umbra.fx.graph_module import GraphModule
from umbra.fx.passes.infra.pass_base import PassBase, PassResult


_RANDOM = ("dropout", "_fused_dropout", "_standard_gamma", "bernoulli", "multinomial", "native_dropout", "normal", "poisson", "binomial", "rrelu", "rand_like",
           "rand", "randint", "randn", "randperm")
_WRITING = ("add_", "sub_", "mul_", "div_", "pow_", "lerp_", "relu_", "sigmoid_", "tanh_")


def get_CSE_banned_ops():
    """Operators of aten that are given to `banned_ops` where calls of any function are merged."""
    return {getattr(umbra.ops.aten, name) for name in _RANDOM + _WRITING}


class CSEPass(PassBase):
    """Gives a module without calls that compute once more what is there. Random numbers, what writes, and calls of `banned_ops` (operators with all their
    overloads) stay."""

    def __init__(self, banned_ops=None):
        super().__init__()
        self.banned_ops = set(banned_ops or ())

    def _stays(self, node):
        return node.target in self.banned_ops or getattr(node.target, "overloadpacket", None) in self.banned_ops

    def call(self, graph_module):
        graph = copy.deepcopy(graph_module.graph)
        merged = graph._eliminate_common_subexpressions(self._stays if self.banned_ops else None)
        return PassResult(GraphModule(graph_module, graph), merged)
