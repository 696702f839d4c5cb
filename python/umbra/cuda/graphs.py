"""Recorded work of devices, of which there are none."""
from umbra.cuda import CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing, make_graphed_callables  # noqa: F401
