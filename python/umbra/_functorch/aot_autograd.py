"""Ahead-of-time autograd: a function in, a callable with compiled forward and backward graphs out."""
import functools
import itertools

from umbra import _C
from umbra._C import Tensor
from umbra._functorch import config, subclasses
from umbra._functorch.aot_export import BackwardSignature, GraphSignature, aot_export_joint_simple, aot_export_module  # noqa: F401
from umbra._functorch.partitioners import default_partition, min_cut_rematerialization_partition, partitioner  # noqa: F401
from umbra._options import not_built
from umbra.fx.graph_module import GraphModule
from umbra.nn import Module
from umbra.nn.utils.stateless import _reparametrize_module
from umbra.utils import _pytree as pytree

AOT_COUNTER = itertools.count()

# What an argument or a result may be.
KNOWN_TYPES = (Tensor, int, str, float, bool, type(None), _C.SymInt, _C.SymFloat, _C.SymBool)
# What graphs know as their inputs and outputs. Others (enumerations, integers beyond 64 bits) stay with the function, and their values tell which
# graphs to run.
_GRAPH_TYPES = (int, str, float, bool, type(None))


def _in_graph(leaf):
    if isinstance(leaf, (Tensor, _C.SymInt, _C.SymFloat, _C.SymBool)):
        return True
    return type(leaf) in _GRAPH_TYPES and not (type(leaf) is int and not -2**63 <= leaf < 2**63)


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


def _refuse_random(graph):
    """Random numbers as functions of a seed and an offset take a generator that counts; the CPU's does not."""
    for node in graph.nodes:
        if node.op == "call_function" and any("nondeterministic_seeded" in str(tag) for tag in getattr(node.target, "tags", ())):
            raise RuntimeError("You are trying to functionalize a CPU RNG operator but CPU does not use Philox/counter-based RNG. Therefore, "
                               "functionalizing a CPU RNG operator is not supported.")


def _call_compiler(compiler, handle):
    """Runs a user's compiler on a graph; gives a function of a list of inputs."""
    module = GraphModule._wrap(handle)
    if config.functionalize_rng_ops:
        _refuse_random(module.graph)
    inputs = [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]
    compiled = compiler(module, inputs)
    boxed = getattr(compiled, "_boxed_call", False)

    def run(values):
        results = compiled(list(values)) if boxed else compiled(*values)
        return list(results) if isinstance(results, (tuple, list)) else [results]
    return run


def _compiler(compiler):
    return None if compiler is None else functools.partial(_call_compiler, compiler)


class _Assumptions:
    """What graphs that are compiled once, for one call, take for granted of later calls. Checked where `config.debug_assert` asks for it: otherwise
    another kind of call is compiled for itself."""

    def __init__(self, number, inputs, found):
        changed = [primal["written"] or primal["changes_metadata"] for primal in found["primals"]]
        self.number = number
        self.same_as = {i: _first_place(inputs, i) for i, value in enumerate(inputs)
                        if isinstance(value, Tensor) and changed[found["arguments"][i]] and _first_place(inputs, i) < i}
        self.without_grad = [i for i, value in enumerate(inputs) if isinstance(value, Tensor) and not value.requires_grad]

    def check(self, inputs):
        for i, first in self.same_as.items():
            if inputs[i] is not inputs[first]:
                self._fail(i, f"be a duplicate of input {first}")
        for i in self.without_grad:
            if inputs[i].requires_grad:
                self._fail(i, "not require grad")

    def _fail(self, i, what):
        raise AssertionError(f"At compilation time, graph {self.number} was compiled under the assumption that input {i} would {what}, but at runtime "
                             "this was not the case.  This indicates a guard bug in AOTAutograd or Dynamo, please file a bug to PyTorch.")


def _first_place(values, i):
    return next(j for j, value in enumerate(values) if value is values[i])


class _Compiled:
    """One function, compiled for each structure of arguments it is called with."""

    def __init__(self, function, forward, backward, inference, partition, decompositions, dynamic, fixed_inputs, keep_writes):
        self.function, self.partition = function, partition
        self.options = (partitioner(partition), _compiler(forward), _compiler(backward), _compiler(inference), decompositions, dynamic,
                        fixed_inputs, keep_writes)
        self.entries = {}

    def __call__(self, leaves, spec, context=()):
        """Flat arguments to the function's result. `context` is what else the function decides by."""
        compiled, inputs = self._find(leaves, spec, context)
        *results, form = compiled(inputs)
        return form.fill(results)

    def prepare(self, leaves, spec, context=()):
        """Captures and compiles what a call with such arguments would run."""
        compiled, inputs = self._find(leaves, spec, context)
        return compiled.graphs(inputs)

    def _find(self, leaves, spec, context):
        kept = {i: leaf for i, leaf in enumerate(leaves) if not _in_graph(leaf)}
        key = (spec, tuple((i, type(leaf), leaf) for i, leaf in kept.items()), context)
        if key not in self.entries:
            self.entries[key] = self._compile(spec, kept)
        return self.entries[key], [leaf for i, leaf in enumerate(leaves) if i not in kept]

    def _compile(self, spec, kept):
        return _ForKind(functools.partial(self._run, spec, kept), self.options, self.partition)

    def _run(self, spec, kept, inputs):
        args, kwargs = pytree.tree_unflatten(_with_kept(inputs, kept), spec)
        leaves, form = pytree.tree_flatten(self.function(*args, **kwargs))
        _check_results(leaves)
        kept_results = {i: leaf for i, leaf in enumerate(leaves) if not _in_graph(leaf)}
        # The last result is no part of the graphs: it says how the others belong together.
        return [*(leaf for i, leaf in enumerate(leaves) if i not in kept_results), _Form(form, kept_results)]


class _ForKind:
    """The graphs for one structure of arguments: by C++ where all tensors are plain, else by way of the plain tensors inside of others."""

    def __init__(self, run, options, partition):
        def run_plain(inputs):
            results = run(inputs)
            if subclasses.has_subclasses(results):
                raise subclasses.HasSubclasses
            return results
        self.plain = _C._aot_compile(run_plain, *options)
        _, forward, backward, inference, decompositions, _, _, keep_writes = options
        # Sizes are numbers there: what a class makes of sizes that are symbols is not known.
        static = ("default", None, None, forward if inference is None else inference, decompositions, False, 0, keep_writes)
        self.wrapped = subclasses.Compiled(run, static, partition, forward, backward)
        self.gives_subclasses = False

    def __call__(self, inputs):
        return self._call(inputs, self.plain, self.wrapped)

    def graphs(self, inputs):
        return self._call(inputs, self.plain.graphs, self.wrapped.graphs)

    def _call(self, inputs, plain, wrapped):
        if self.gives_subclasses or subclasses.has_subclasses(inputs):
            return wrapped(inputs)
        try:
            return plain(inputs)
        except subclasses.HasSubclasses:
            self.gives_subclasses = True
        return wrapped(inputs)


def _with_kept(values, kept):
    """All leaves: the kept ones in their places, the others in theirs."""
    others = iter(values)
    return [kept[i] if i in kept else next(others) for i in range(len(values) + len(kept))]


class _Form:
    """The form of a function's result: its structure, and the leaves that graphs cannot hold. A plain tuple comes back as a list, as in PyTorch."""

    def __init__(self, spec, kept):
        self.spec, self.kept = spec, kept
        self.is_flat = spec.type in (tuple, list) and all(child.is_leaf() for child in spec.children())

    def fill(self, values):
        leaves = _with_kept(values, self.kept)
        return leaves if self.is_flat else pytree.tree_unflatten(leaves, self.spec)


def aot_function(fn, fw_compiler, bw_compiler=None, partition_fn=default_partition, decompositions=None, num_params_buffers=0,
                 keep_inference_input_mutations=False, inference_compiler=None, *, dynamic=False, enable_log=True,
                 disable_functionalization=False):
    """`fn` with its forward and backward captured and compiled on the first call for each kind of arguments. `num_params_buffers`, which says
    that the first arguments stay the same from call to call, matters for `dynamic` alone: the sizes of these are numbers, those of other
    arguments, and integers, are symbols of the graphs, which then serve every call that keeps their guards. `keep_inference_input_mutations`: the
    graphs carry out the writes to inputs that are no part of autograd."""
    not_built("aot_function", disable_functionalization=(disable_functionalization, False))
    return _compile(fn, fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler, dynamic, num_params_buffers,
                    keep_inference_input_mutations)


def _compile(fn, fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler, dynamic, fixed_inputs, keep_writes,
             context=lambda: ()):
    compiled = _Compiled(fn, fw_compiler, bw_compiler if bw_compiler is not None else fw_compiler, inference_compiler, partition_fn,
                         decompositions, bool(dynamic), fixed_inputs, bool(keep_writes))

    @functools.wraps(fn) if hasattr(fn, "__name__") else lambda g: g
    def call(*args, **kwargs):
        leaves, spec = pytree.tree_flatten((args, kwargs))
        _check_arguments(leaves)
        return compiled(leaves, spec, context())

    def prepare(*args, **kwargs):
        leaves, spec = pytree.tree_flatten((args, kwargs))
        _check_arguments(leaves)
        return compiled.prepare(leaves, spec, context())
    call._prepare, call._number = prepare, next(AOT_COUNTER)
    return call


def _compile_module(mod, fw_compiler, bw_compiler=None, partition_fn=default_partition, decompositions=None, inference_compiler=None,
                    keep_inference_input_mutations=False, *, dynamic=False, disable_functionalization=False):
    """`mod` as a compiled function. Parameters and buffers are looked up by name at each call, and its training flags decide with the
    arguments which graphs run."""
    not_built("aot_function", disable_functionalization=(disable_functionalization, False))

    def functional_call(named, *args, **kwargs):
        with _reparametrize_module(mod, dict(named)):
            return mod(*args, **kwargs)

    def training():
        return tuple(part.training for part in mod.modules())

    def state():
        return {**dict(mod.named_parameters(remove_duplicate=False)), **dict(mod.named_buffers(remove_duplicate=False))}
    compiled = _compile(functional_call, fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler, dynamic, len(state()),
                        keep_inference_input_mutations, training)

    def call(*args, **kwargs):
        return compiled(state(), *args, **kwargs)
    call._prepare = lambda *args, **kwargs: compiled._prepare(state(), *args, **kwargs)
    call._state, call._number = state, compiled._number
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
    """`mod` compiled at once for `args`; the result takes flat arguments such as these. Fake tensors with symbolic sizes among them make graphs
    for every call that keeps the guards on their symbols."""
    not_built("aot_module_simplified", ignore_shape_env=(ignore_shape_env, False), pre_grad_passes=(pre_grad_passes, None))
    dynamic = any(isinstance(a, _C.SymInt) or isinstance(a, Tensor) and any(isinstance(s, _C.SymInt) for s in a.shape) for a in args)
    compiled = _compile_module(mod, fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler, keep_inference_input_mutations,
                               dynamic=dynamic, disable_functionalization=disable_functionalization)
    found = compiled._prepare(*args)
    if any(primal["is_fake"] for primal in found["primals"][len(set(found["arguments"])):]):
        raise AssertionError("Unexpected fake buffer _tensor_constant0 Enable TORCH_FAKE_TENSOR_DEBUG=1 to get creation stack traces on fake tensors.")
    inputs = [*compiled._state().values(), *args]
    assumptions = _Assumptions(compiled._number, inputs, found)

    def forward(*runtime_args):
        if config.debug_assert and not subclasses.has_subclasses(inputs):
            assumptions.check([*compiled._state().values(), *runtime_args])
        return compiled(*runtime_args)
    forward.zero_grad = mod.zero_grad
    forward.named_parameters = mod.named_parameters
    forward.named_buffers = mod.named_buffers
    return forward


compiled_function = aot_function
compiled_module = aot_module
