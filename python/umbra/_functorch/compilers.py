"""Compilers that do next to nothing, and tables they are used with."""
from umbra._functorch.aot_autograd import aot_function

default_decompositions = {}


def nop(fx_g, _):
    return fx_g


def print_compile(fx_g, _):
    print(fx_g.code)
    return fx_g


def nnc_jit(f):
    return aot_function(f, nop)


def memory_efficient_fusion(fn, **kwargs):
    from umbra._functorch.aot_autograd import aot_module, min_cut_rematerialization_partition
    from umbra.nn import Module
    options = {"fw_compiler": nop, "bw_compiler": nop, "partition_fn": min_cut_rematerialization_partition, **kwargs}
    return aot_module(fn, **options) if isinstance(fn, Module) else aot_function(fn, **options)
