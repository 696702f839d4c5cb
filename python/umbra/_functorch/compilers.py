"""Compilers that do next to nothing, and tables they are used with."""
import umbra
from umbra._functorch.aot_autograd import aot_function, make_boxed_compiler
from umbra._functorch.compile_utils import strip_overloads

default_decompositions = {}


def nop(fx_g, _):
    return fx_g


def print_compile(fx_g, _):
    print(fx_g.code)
    return fx_g


@make_boxed_compiler
def ts_compile(fx_g, _):
    """The graph as a TorchScript module, frozen."""
    strip_overloads(fx_g)
    for node in fx_g.graph.nodes:
        if node.target is umbra.ops.aten._to_copy and len(node.args) == 1 and list(node.kwargs) == ["dtype"]:
            node.target = umbra.ops.aten.to
        node.kwargs = {name: value.type if isinstance(value, umbra.device) else value for name, value in node.kwargs.items()}
    fx_g.graph.lint()
    fx_g.recompile()
    return umbra.jit.freeze(umbra.jit.script(fx_g).eval())


def nnc_jit(f):
    return aot_function(f, ts_compile)


def memory_efficient_fusion(fn, **kwargs):
    from umbra._functorch.aot_autograd import aot_module, min_cut_rematerialization_partition
    from umbra.nn import Module
    options = {"fw_compiler": nop, "bw_compiler": nop, "partition_fn": min_cut_rematerialization_partition, **kwargs}
    return aot_module(fn, **options) if isinstance(fn, Module) else aot_function(fn, **options)
