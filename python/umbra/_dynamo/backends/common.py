"""Backends that are made of compilers for the forward and the backward graph."""
import logging

from umbra._functorch.aot_autograd import aot_module_simplified

_log = logging.getLogger(__name__)
_KNOWN = ("fw_compiler", "bw_compiler", "inference_compiler", "partition_fn", "decompositions", "keep_inference_input_mutations")


class AotAutograd:
    """A backend of `torch.compile`: the captured function is differentiated, and its graphs go to these compilers. Called with a graph and example inputs,
    it does the same with that graph."""

    def __init__(self, **kwargs):
        if unknown := [name for name in kwargs if name not in _KNOWN]:
            raise NotImplementedError(f"aot_autograd({unknown[0]}=...) is not in Umbra; there are {', '.join(_KNOWN)}")
        if "fw_compiler" not in kwargs:
            raise KeyError("fw_compiler")
        self.__name__ = "compiler_fn"
        self.kwargs = kwargs

    @property
    def decompositions(self):
        """The table; a function without arguments may give it."""
        table = self.kwargs.get("decompositions")
        return table() if callable(table) else table

    def __call__(self, gm, example_inputs, **kwargs):
        if kwargs:
            _log.warning("aot_autograd-based backend ignoring extra kwargs %s", kwargs)
        return aot_module_simplified(gm, example_inputs, **{**self.kwargs, "decompositions": self.decompositions})


def aot_autograd(**kwargs):
    """A backend made of `fw_compiler`, `bw_compiler` (the same where there is none), `inference_compiler`, `partition_fn`, `decompositions`."""
    return AotAutograd(**kwargs)


def device_from_inputs(example_inputs):
    """The device of the first tensor."""
    import umbra
    return next((value.device for value in example_inputs if isinstance(value, umbra.Tensor)), umbra.device("cpu"))
