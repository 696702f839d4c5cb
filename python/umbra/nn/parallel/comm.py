"""Tensors between accelerators, of which there is none: every call says so."""


def _without_accelerators(name):
    def refused(*args, **kwargs):
        raise AssertionError("Torch not compiled with CUDA enabled")
    refused.__name__ = refused.__qualname__ = name
    return refused


broadcast, broadcast_coalesced, reduce_add, reduce_add_coalesced, scatter, gather = map(_without_accelerators, (
    "broadcast", "broadcast_coalesced", "reduce_add", "reduce_add_coalesced", "scatter", "gather"))
