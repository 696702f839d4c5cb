"""The fake value of every node, written to `meta["val"]`."""
from umbra._C import Tensor
from umbra._subclasses.fake_tensor import FakeTensorMode
from umbra.fx.interpreter import Interpreter
from umbra.fx.node import map_aggregate


class FakeTensorProp(Interpreter):
    def __init__(self, module, mode=None):
        super().__init__(module)
        self._mode = mode or FakeTensorMode()

    def run_node(self, n):
        result = super().run_node(n)
        # The node's value is the metadata as of now: neither history nor later writes are its own.
        n.meta["val"] = map_aggregate(result, lambda leaf: leaf.detach() if isinstance(leaf, Tensor) else leaf)
        return result

    def propagate(self, *args):
        return self.propagate_dont_convert_inputs(*(self._mode.from_tensor(a) if isinstance(a, Tensor) else a for a in args))

    def propagate_dont_convert_inputs(self, *args):
        with self._mode:
            return super().run(*args)
