"""Pipes: datasets that are made of one another, each a step on the way of the samples."""
from umbra.utils.data.datapipes import iter, map  # noqa: F401
