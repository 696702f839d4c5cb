"""Collective operations that are differentiated: there is one process, so they are refused."""
from umbra.distributed._refusals import refusing

all_reduce, all_gather, all_to_all, broadcast, gather, reduce, reduce_scatter, scatter = map(
    refusing, ("nn.all_reduce", "nn.all_gather", "nn.all_to_all", "nn.broadcast", "nn.gather", "nn.reduce", "nn.reduce_scatter", "nn.scatter"))
