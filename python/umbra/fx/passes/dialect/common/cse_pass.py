"""Equal calls of equal arguments made once."""
from umbra.fx.passes.infra.pass_base import PassBase, PassResult


class CSEPass(PassBase):
    """Removes calls that compute once more what is there. Random numbers and what writes stay."""

    def __init__(self, banned_ops=None):
        super().__init__()
        if banned_ops:
            raise NotImplementedError("CSEPass(banned_ops=...) is not in Umbra yet")

    def call(self, graph_module):
        removed = graph_module.graph.eliminate_common_subexpressions()
        graph_module.recompile()
        return PassResult(graph_module, bool(removed))
