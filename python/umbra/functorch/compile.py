"""Ahead-of-time autograd under functorch's names."""
from umbra._functorch import config  # noqa: F401
from umbra._functorch.aot_autograd import (  # noqa: F401
    aot_function, aot_module, aot_module_simplified, compiled_function, compiled_module, get_aot_compilation_context, get_aot_graph_name,
    get_graph_being_compiled, make_boxed_compiler, make_boxed_func)
from umbra._functorch.compilers import default_decompositions, memory_efficient_fusion, nnc_jit, nop, print_compile, ts_compile  # noqa: F401
from umbra._functorch.partitioners import default_partition, min_cut_rematerialization_partition  # noqa: F401
