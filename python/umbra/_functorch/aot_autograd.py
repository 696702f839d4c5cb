"""Ahead-of-time autograd: a function in, a callable with compiled forward and backward graphs out."""
import functools
import itertools

from umbra import _C
from umbra._C import Tensor
from umbra._functorch.partitioners import default_partition, min_cut_rematerialization_partition, partitioner_name  # noqa: F401
from umbra.fx.graph_module import GraphModule
from umbra.nn import Module
from umbra.nn.utils.stateless import _reparametrize_module
from umbra.utils import _pytree as pytree

AOT_COUNTER = itertools.count()


def make_boxed_func(function):
    """A function that takes its arguments in one list."""
    def boxed(args):
        return function(*args)
    boxed._boxed_call = True
    return boxed


def make_boxed_compiler(compiler):
    @functools.wraps(compiler)
    def compile(module, inputs):
        return make_boxed_func(compiler(module, inputs))
    return compile


boxed_nop = make_boxed_compiler(lambda module, inputs: module)


def _call_compiler(compiler, handle):
    """Runs a user's compiler on a graph; gives a function of a list of inputs."""
    module = GraphModule._wrap(handle)
    inputs = [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]
    compiled = compiler(module, inputs)
    boxed = getattr(compiled, "_boxed_call", False)

    def run(values):
        results = compiled(list(values)) if boxed else compiled(*values)
        return list(results) if isinstance(results, (tuple, list)) else [results]
    return run


def _compiler(compiler):
    return None if compiler is None else functools.partial(_call_compiler, compiler)


class _Compiled:
    """One function, compiled for each structure and set of plain arguments it is called with."""

    def __init__(self, function, forward, backward, partition, decompositions):
        self.function = function
        self.options = (partitioner_name(partition), _compiler(forward), _compiler(backward), decompositions)
        self.entries = {}

    def __call__(self, leaves, spec):
        """Flat arguments to the function's result."""
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        plain = tuple((i, leaf) for i, leaf in enumerate(leaves) if not isinstance(leaf, Tensor))
        key = (spec, tuple((i, type(leaf), repr(leaf)) for i, leaf in plain))
        if key not in self.entries:
            self.entries[key] = self._compile(len(leaves), plain, spec)
        compiled, result_spec = self.entries[key]
        results = compiled(tensors)
        return pytree.tree_unflatten(results, result_spec[0])

    def _compile(self, count, plain, spec):
        result_spec = [None]
        fixed = dict(plain)

        def run(tensors):
            remaining = iter(tensors)
            leaves = [fixed[i] if i in fixed else next(remaining) for i in range(count)]
            args, kwargs = pytree.tree_unflatten(leaves, spec)
            results, result_spec[0] = pytree.tree_flatten(self.function(*args, **kwargs))
            return results
        partition, forward, backward, decompositions = self.options
        return _C._aot_compile(run, partition, forward, backward, decompositions), result_spec


def aot_function(fn, fw_compiler, bw_compiler=None, partition_fn=default_partition, decompositions=None, num_params_buffers=0,
                 keep_inference_input_mutations=False, inference_compiler=None, *, dynamic=False, enable_log=True, **_):
    """`fn` with its forward and backward captured and compiled on the first call for each kind of arguments."""
    compiled = _Compiled(fn, fw_compiler, bw_compiler if bw_compiler is not None else fw_compiler, partition_fn, decompositions)

    @functools.wraps(fn) if hasattr(fn, "__name__") else lambda g: g
    def call(*args, **kwargs):
        leaves, spec = pytree.tree_flatten((args, kwargs))
        return compiled(leaves, spec)
    return call


class AOTModule(Module):
    """A module whose forward and backward are compiled ahead of time."""

    def __init__(self, mod, args, kwargs):
        super().__init__()
        self.orig_module = mod

        def functional_call(named, *call_args, **call_kwargs):
            with _reparametrize_module(mod, dict(named)):
                return mod(*call_args, **call_kwargs)
        self.__dict__["_compiled"] = aot_function(functional_call, *args, **kwargs)

    def forward(self, *args, **kwargs):
        named = {**dict(self.orig_module.named_parameters()), **dict(self.orig_module.named_buffers())}
        return self._compiled(named, *args, **kwargs)


def aot_module(mod, *args, **kwargs):
    return AOTModule(mod, args, kwargs)


def aot_module_simplified(mod, args, fw_compiler, bw_compiler=None, partition_fn=default_partition, decompositions=None,
                          keep_inference_input_mutations=False, inference_compiler=None, **_):
    """`mod` compiled for the given arguments; the result takes flat arguments."""
    named = {**dict(mod.named_parameters(remove_duplicate=False)), **dict(mod.named_buffers(remove_duplicate=False))}

    def functional_call(values, *call_args):
        with _reparametrize_module(mod, dict(values)):
            return mod(*call_args)
    compiled = aot_function(functional_call, fw_compiler, bw_compiler, partition_fn, decompositions)

    def forward(*runtime_args):
        return compiled(named, *runtime_args)
    forward.zero_grad = mod.zero_grad
    forward.named_parameters = mod.named_parameters
    forward.named_buffers = mod.named_buffers
    return forward


compiled_function = aot_function
compiled_module = aot_module
