"""Ahead-of-time autograd: a function in, a callable with compiled forward and backward graphs out."""
import functools
import itertools

from umbra import _C
from umbra._C import Tensor
from umbra._functorch.aot_export import BackwardSignature, GraphSignature, aot_export_joint_simple, aot_export_module  # noqa: F401
from umbra._functorch.partitioners import default_partition, min_cut_rematerialization_partition, partitioner_name  # noqa: F401
from umbra._options import not_built
from umbra.fx.graph_module import GraphModule
from umbra.nn import Module
from umbra.nn.utils.stateless import _reparametrize_module
from umbra.utils import _pytree as pytree

AOT_COUNTER = itertools.count()

# What an argument or a result may be. Graphs keep the values of plain ones, which tell by type and value which graphs to run.
KNOWN_TYPES = (Tensor, int, str, float, bool, type(None))


def _check_arguments(leaves):
    if not all(isinstance(leaf, KNOWN_TYPES) for leaf in leaves):
        raise AssertionError("all flat_args must be KNOWN_TYPES or opaque types")


def _check_results(leaves):
    for leaf in leaves:
        if not isinstance(leaf, KNOWN_TYPES):
            raise RuntimeError(f"Found {type(leaf)} in output, which is not a known type. If this type holds tensors, you need to register "
                               "a pytree for it.")


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


def _key(value):
    """What tells a plain argument from others, its type included. 0.0 and -0.0 are equal, and nan is not: their texts tell."""
    return type(value), float.__repr__(value) if isinstance(value, float) else value


def _same(a, b):
    return a is b or _key(a) == _key(b)


class _Compiled:
    """One function, compiled for each structure and set of plain arguments it is called with."""

    def __init__(self, function, forward, backward, inference, partition, decompositions):
        self.function = function
        self.options = (partitioner_name(partition), _compiler(forward), _compiler(backward), _compiler(inference), decompositions)
        self.entries = {}

    def __call__(self, leaves, spec, context=()):
        """Flat arguments to the function's result. `context` is what else the function decides by."""
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        plain = tuple((i, leaf) for i, leaf in enumerate(leaves) if not isinstance(leaf, Tensor))
        key = (spec, tuple((i, _key(leaf)) for i, leaf in plain), context)
        if key not in self.entries:
            self.entries[key] = self._compile(len(leaves), plain, spec)
        compiled, results = self.entries[key]
        *tensors, number = compiled(tensors)
        return results[number].fill(tensors)

    def _compile(self, count, plain, spec):
        fixed = dict(plain)
        results = []

        def run(tensors):
            remaining = iter(tensors)
            leaves = [fixed[i] if i in fixed else next(remaining) for i in range(count)]
            args, kwargs = pytree.tree_unflatten(leaves, spec)
            result = _Result(self.function(*args, **kwargs))
            if result not in results:
                results.append(result)
            # Graphs keep the plain numbers that were among their results: this one says which form the result has.
            return [*result.take_tensors(), results.index(result)]
        partition, forward, backward, inference, decompositions = self.options
        return _C._aot_compile(run, partition, forward, backward, inference, decompositions), results


class _Result:
    """The form of a function's result: its structure, and the leaves that are not tensors."""

    def __init__(self, value):
        leaves, self.spec = pytree.tree_flatten(value)
        _check_results(leaves)
        self.is_tensor = [isinstance(leaf, Tensor) for leaf in leaves]
        self.plain = [leaf for leaf in leaves if not isinstance(leaf, Tensor)]
        self.tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]

    def __eq__(self, other):
        return (self.spec, self.is_tensor) == (other.spec, other.is_tensor) and all(map(_same, self.plain, other.plain))

    def take_tensors(self):
        tensors, self.tensors = self.tensors, None
        return tensors

    def fill(self, tensors):
        tensors, plain = iter(tensors), iter(self.plain)
        return pytree.tree_unflatten([next(tensors if is_tensor else plain) for is_tensor in self.is_tensor], self.spec)


def aot_function(fn, fw_compiler, bw_compiler=None, partition_fn=default_partition, decompositions=None, num_params_buffers=0,
                 keep_inference_input_mutations=False, inference_compiler=None, *, dynamic=False, enable_log=True,
                 disable_functionalization=False):
    """`fn` with its forward and backward captured and compiled on the first call for each kind of arguments. `num_params_buffers`, which says
    that the first arguments stay the same from call to call, is not needed: they are looked at each time. `keep_inference_input_mutations`: writes to
    inputs stay outside the graphs."""
    not_built("aot_function", dynamic=(dynamic, False), disable_functionalization=(disable_functionalization, False))
    return _compile(fn, fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler)


def _compile(fn, fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler, context=lambda: ()):
    compiled = _Compiled(fn, fw_compiler, bw_compiler if bw_compiler is not None else fw_compiler, inference_compiler, partition_fn,
                         decompositions)

    @functools.wraps(fn) if hasattr(fn, "__name__") else lambda g: g
    def call(*args, **kwargs):
        leaves, spec = pytree.tree_flatten((args, kwargs))
        _check_arguments(leaves)
        return compiled(leaves, spec, context())
    return call


def _compile_module(mod, fw_compiler, bw_compiler=None, partition_fn=default_partition, decompositions=None, inference_compiler=None,
                    keep_inference_input_mutations=False, *, dynamic=False, disable_functionalization=False):
    """`mod` as a compiled function. Parameters and buffers are looked up by name at each call, and its training flags decide with the
    arguments which graphs run."""
    not_built("aot_function", dynamic=(dynamic, False), disable_functionalization=(disable_functionalization, False))

    def functional_call(named, *args, **kwargs):
        with _reparametrize_module(mod, dict(named)):
            return mod(*args, **kwargs)

    def training():
        return tuple(part.training for part in mod.modules())
    compiled = _compile(functional_call, fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler, training)

    def call(*args, **kwargs):
        named = {**dict(mod.named_parameters(remove_duplicate=False)), **dict(mod.named_buffers(remove_duplicate=False))}
        return compiled(named, *args, **kwargs)
    return call


class AOTModule(Module):
    """A module whose forward and backward are compiled ahead of time."""

    def __init__(self, mod, args, kwargs):
        super().__init__()
        self.orig_module = mod
        self.__dict__["_compiled"] = _compile_module(mod, *args, **kwargs)

    def forward(self, *args, **kwargs):
        return self._compiled(*args, **kwargs)


def aot_module(mod, *args, **kwargs):
    return AOTModule(mod, args, kwargs)


def aot_module_simplified(mod, args, fw_compiler, bw_compiler=None, partition_fn=default_partition, decompositions=None,
                          keep_inference_input_mutations=False, inference_compiler=None, ignore_shape_env=False,
                          disable_functionalization=False, pre_grad_passes=None):
    """`mod` compiled; the result takes flat arguments such as `args`."""
    not_built("aot_module_simplified", ignore_shape_env=(ignore_shape_env, False), pre_grad_passes=(pre_grad_passes, None))
    compiled = _compile_module(mod, fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler, keep_inference_input_mutations,
                               disable_functionalization=disable_functionalization)

    def forward(*runtime_args):
        return compiled(*runtime_args)
    forward.zero_grad = mod.zero_grad
    forward.named_parameters = mod.named_parameters
    forward.named_buffers = mod.named_buffers
    return forward


compiled_function = aot_function
compiled_module = aot_module
