"""Collective operations that are differentiated."""
from umbra.distributed._refusals import refusing_names
from umbra.distributed.nn.functional import (  # noqa: F401
    all_gather, all_reduce, all_to_all, all_to_all_single, broadcast, gather, reduce, reduce_scatter, scatter)

__getattr__ = refusing_names(__name__)
