"""Graphs of captured programs."""
from umbra._modules import lazy_submodules
from umbra.fx.node import Node, has_side_effect, map_arg  # noqa: F401
from umbra.fx.graph import CodeGen, Graph  # noqa: F401
from umbra.fx.graph_module import GraphModule  # noqa: F401
from umbra.fx.proxy import Proxy, TraceError  # noqa: F401
from umbra.fx._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap  # noqa: F401
from umbra.fx.interpreter import Interpreter, Transformer  # noqa: F401
from umbra.fx.subgraph_rewriter import replace_pattern  # noqa: F401
from umbra.fx import operator_schemas  # noqa: F401  (completes Node)

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "has_side_effect", "map_arg", "replace_pattern", "symbolic_trace",
           "wrap"]

__getattr__ = lazy_submodules(__name__)
