"""Ahead-of-time autograd: a function in, a callable with compiled forward and backward graphs out."""
import collections
import enum
import functools
import inspect
import itertools
import math
import threading

from umbra import _C
from umbra._C import Tensor
from umbra._functorch import config, made, objects, subclasses
from umbra._functorch.aot_export import BackwardSignature, GraphSignature, aot_export_joint_simple, aot_export_module  # noqa: F401
from umbra._functorch.partitioners import default_partition, min_cut_rematerialization_partition, partitioner  # noqa: F401
from umbra._options import not_built
from umbra.fx.graph_module import GraphModule
from umbra.nn import Module, Parameter
from umbra.nn.utils.stateless import _standing_in
from umbra.utils import _pytree as pytree
from umbra.utils._device import DeviceContext

AOT_COUNTER = itertools.count()

# What an argument or a result may be.
KNOWN_TYPES = (Tensor, int, str, float, bool, type(None), _C.SymInt, _C.SymFloat, _C.SymBool)
# What graphs know as their inputs and outputs. Others (enumerations, integers beyond 64 bits) stay with the function, and their values tell which
# graphs to run.
_GRAPH_TYPES = (int, str, float, bool, type(None))


# What a function may give besides: nothing changes these.
_VALUES = _C.dtype, _C.device, type(_C.strided), type(_C.contiguous_format), type, enum.Enum, complex, bytes, range, slice


def _in_graph(leaf):
    if isinstance(leaf, (Tensor, _C.SymInt, _C.SymFloat, _C.SymBool)):
        return True
    return type(leaf) in _GRAPH_TYPES and not (type(leaf) is int and not -2**63 <= leaf < 2**63)


def is_finite_float(leaf):
    return type(leaf) is float and math.isfinite(leaf)


def is_known(leaf):
    """Whether an argument is its value: an object of the user's that is a number or a text may have attributes besides."""
    if not isinstance(leaf, KNOWN_TYPES):
        return False
    return type(leaf) in _GRAPH_TYPES or isinstance(leaf, Tensor) or not getattr(leaf, "__dict__", None)


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
    boxed._boxed_call, boxed._unboxed = True, function
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


class _Compilation(threading.local):
    """What a thread compiles at this moment. Compilers name their files by it."""
    graphs, model, count = (), "model", 0


_compilation = _Compilation()


def set_model_name(name):
    _compilation.model = name


def get_aot_compilation_context():
    """The graphs being compiled, such as `["0_forward"]`, the model's name, and how many graphs were compiled before."""
    return list(_compilation.graphs), _compilation.model, _compilation.count


def get_aot_graph_name():
    return f"{_compilation.model}__{'_'.join(_compilation.graphs)}_{_compilation.count}"


get_graph_being_compiled = get_aot_graph_name


def _call_compiler(compiler, name, handle):
    """Runs a user's compiler on a graph; gives what it made, whether that takes its inputs in one list, and the graph module where that is what it
    gave back."""
    module = GraphModule._wrap(handle)
    if config.functionalize_rng_ops:
        _refuse_random(module.graph)
    inputs = [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]
    with _C._While(_compilation, {"graphs": (name,)}):
        try:
            compiled = compiler(module, inputs)
        finally:
            _compilation.count += 1
    boxed = bool(getattr(compiled, "_boxed_call", False))
    given_back = getattr(compiled, "_unboxed", compiled) if boxed else compiled
    if getattr(given_back, "__func__", None) is GraphModule.forward:
        given_back = given_back.__self__
    return compiled, boxed, module if given_back is module else None


def _compiler(compiler, name):
    return None if compiler is None else functools.partial(_call_compiler, compiler, name)


def _of_list(compiler):
    """A compiler whose results are functions of a list of inputs."""
    def compile(handle):
        compiled, boxed, _ = compiler(handle)

        def run(values):
            results = compiled(list(values)) if boxed else compiled(*values)
            return list(results) if isinstance(results, (tuple, list)) else [results]
        return run
    return compile


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


KEPT_KINDS = 64  # structures of arguments, with what the function read, that one function is captured for


class _Compiled:
    """One function, compiled for each structure of arguments it is called with. `call` is what users have: calls whose graphs are known run in C++, the
    others come here. `reads(objects)` watches what else the function decides by, and objects among its arguments; without it there may be none.
    `tensors(inputs)`, which comes with it, is what checks the inputs and results of a run.
    `module` is a module whose tensors come before the arguments."""

    def __init__(self, function, forward, backward, inference, partition, decompositions, dynamic, fixed_inputs, keep_writes, reads=None,
                 tensors=None, module=None, call=None):
        self.number = next(AOT_COUNTER)
        self.function, self.partition, self.reads, self.tensors, self.module = function, partition, reads, tensors, module
        self.takes_floats = False  # as tensors, whose numbers are symbols
        self.options = (partitioner(partition), _compiler(forward, f"{self.number}_forward"), _compiler(backward, f"{self.number}_backward"),
                        _compiler(forward if inference is None else inference, f"{self.number}_inference"), decompositions, dynamic, fixed_inputs,
                        keep_writes)
        self.entries = {}  # by structure: (what was read, graphs), the oldest first
        self.outer = {}  # by number: arguments that the function reads from elsewhere, too, and is therefore given as themselves
        self.reasons = collections.Counter()
        self.dropped, self.added = 0, None
        self.call = _C._CompiledCall(self.run) if call is None else call

    def run(self, *args, **kwargs):
        """The function's result, captured if need be. Where something around it is captured the function is a part of that."""
        if _C._is_tracing() or _captures.depth:
            return self.function(*args, **kwargs) if self.module is None else self.function(self.module.named(), *args, **kwargs)
        graphs, inputs = self._find(args, kwargs)
        return self._finished(graphs, graphs(inputs), inputs, args, kwargs)

    def _finished(self, graphs, results, inputs, args, kwargs):
        """The result of a run, with the containers that it gives back, once its arguments have the attributes that it gives them. C++, which has no arguments
        by then, leaves such calls to Python."""
        result = results[-1].fill_result(results[:-1])
        if self.reads is None:
            return result
        if type(result) is made.Assigned:
            self.call._remove(graphs.plain)
            for place, name, value in result.attributes:
                setattr(inputs[place], name, value)
            result = result.result
        result_tree, _ = objects.opened(result)
        leaves, spec = pytree.tree_flatten(result_tree, is_leaf=lambda part: not isinstance(part, tuple) and type(part) not in (list, dict, objects.Opened))
        if not any(type(leaf) is _Given for leaf in leaves):
            return result
        self.call._remove(graphs.plain)
        arguments = args if self.module is None else (None, *args), kwargs
        return spec.unflatten([leaf.of(arguments) if type(leaf) is _Given else leaf for leaf in leaves])

    def run_known(self, *args, **kwargs):
        """The same in a tuple where graphs are there; else None."""
        graphs, inputs = self._find(args, kwargs, make=False)
        results = None if graphs is None else graphs.call_known(inputs)
        return None if results is None else (self._finished(graphs, results, inputs, args, kwargs),)

    def why_not(self, *args, **kwargs):
        """The condition of the last used graphs that such a call breaks."""
        graphs, inputs = self._find(args, kwargs, make=False)
        return graphs.plain.why_not(inputs) if graphs is not None else "arguments of another structure" if self.entries else "first call"

    def prepare(self, *args, **kwargs):
        """Captures and compiles what a call with such arguments would run."""
        graphs, inputs = self._find(args, kwargs)
        found = graphs.graphs(inputs)
        graphs.earlier.clear()
        return found

    def info(self):
        """What became of the calls; see `umbra.compiler.cache_info`."""
        total = {"hits": 0, "misses": 0, "evictions": self.dropped, "size": 0, "limit": KEPT_KINDS}
        reasons = collections.Counter(self.reasons)
        for kinds in self.entries.values():
            for _, graphs in kinds:
                found = graphs.plain.cache_info()
                for name in ("hits", "misses", "evictions", "size"):
                    total[name] += found[name]
                reasons.update({why: count for why, count in found["reasons"].items() if why != "first call"})
        return total, reasons

    def reset(self):
        """Lets all graphs go."""
        for kinds in self.entries.values():
            for _, graphs in kinds:
                self.call._remove(graphs.plain)
        self.entries.clear()
        self.outer.clear()
        self.reasons.clear()
        self.dropped, self.added = 0, None

    def forget(self):
        """Lets what was added last go."""
        if self.added is not None:
            kinds, plain = self.added
            self.call._remove(plain)
            kinds[:] = [kind for kind in kinds if kind[1].plain is not plain]
            self.added = None

    def _find(self, args, kwargs, make=True):
        flags = ()
        if self.module is not None:
            named, flags = self.module.named(), self.module.training()
            args = (named, *args)
        found = []
        if self.reads is not None:
            (args, kwargs), found = objects.opened((args, kwargs), self.is_outer)
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if self.reads is None:
            _check_arguments(leaves)
        first = len(args[0]) if self.module is not None else 0  # of the arguments: the module's tensors stand before them
        kept = {i: leaf for i, leaf in enumerate(leaves) if not _in_graph(leaf) or i >= first and self.is_outer(leaf)}
        floats = tuple(i for i, leaf in enumerate(leaves) if is_finite_float(leaf)) if self.takes_floats else ()
        by_value = [leaf for i, leaf in enumerate(leaves) if i not in kept]
        for i in floats:
            leaves[i] = _C._float_tensor(leaves[i])
        named = tuple((i, type(leaf), leaf if is_known(leaf) and not isinstance(leaf, Tensor) else id(leaf)) for i, leaf in kept.items())
        inputs = [leaf for i, leaf in enumerate(leaves) if i not in kept]
        key = spec, named, flags, floats, _parameters_among(inputs), _function_modes()
        for reads, graphs in self.entries.get(key, ()):
            given = [leaf for i, leaf in enumerate(leaves) if i >= first and i not in kept]
            if reads is None or reads.broken() is None and not read_among(reads, given, found):
                return graphs, inputs
        if not make:
            return None, inputs
        kinds = self.entries.setdefault(key, [])
        captured_by_value = self.entries.get((*key[:3], (), *key[4:])) if floats and not kinds else None
        self.reasons[captured_by_value[-1][1].plain.why_not(by_value) if captured_by_value else self._why_new(kinds)] += 1
        return self._add(kinds, args, kwargs, leaves, spec, kept, flags, floats), inputs

    def is_outer(self, leaf):
        """Whether an argument is given as itself, and known by being this object."""
        return id(leaf) in self.outer

    def _add(self, kinds, args, kwargs, leaves, spec, kept, flags, floats):
        # Before the function runs, which may change what it reads.
        reads = None if self.reads is None else self.reads([leaf for leaf in kept.values() if self.is_outer(leaf) or not is_known(leaf)] + objects.classes_in(spec))
        names = [name for i, name in enumerate(_names_of(self.function, args, kwargs)) if i not in kept]
        parameters = _parameters_among(leaf for i, leaf in enumerate(leaves) if i not in kept)
        earlier = []
        state = leaves[:len(args[0]) if self.module is not None else 0]
        own = {id(leaf): i for i, leaf in reversed(list(enumerate(state)))}
        same = {i: own[id(leaf)] for i, leaf in kept.items() if id(leaf) in own}
        attributes = {i: dict(vars(leaf)) for i, leaf in enumerate(state) if reads is not None and _C._has_own_attributes(leaf)}
        run = functools.partial(_run, self.function, spec, kept, same, attributes, self.tensors, parameters, floats, earlier)
        graphs = _ForKind(run, (*self.options, names), self.partition, earlier)
        self.added = kinds, graphs.plain
        kinds.append((reads, graphs))
        if sum(len(kinds) for kinds in self.entries.values()) > KEPT_KINDS:
            self._drop_oldest()
        tree = _C._Tree(spec, kept, True, [float if i in floats else leaf for i, leaf in enumerate(leaves)])
        state = self.module.state if self.module is not None else None
        if tree.usable and (self.module is None or state is not None) and not _function_modes():
            self.call._add(tree, graphs.plain, reads, state, None if state is None else (tuple(args[0]), flags))
        return graphs

    def _why_new(self, kinds):
        if kinds:
            return kinds[-1][0].broken()
        return "first call" if len(self.entries) == 1 else "arguments of another structure"

    def _drop_oldest(self):
        key = next(key for key, kinds in self.entries.items() if kinds)
        self.call._remove(self.entries[key].pop(0)[1].plain)
        if not self.entries[key]:
            del self.entries[key]
        self.dropped += 1


def read_among(reads, leaves, found=()):
    """The tensors among arguments, and the objects that were `found`, that the function reads anyway: their stand-ins would be other objects."""
    return [*filter(reads.saw, found), *(leaf for leaf in leaves if isinstance(leaf, Tensor) and reads.have(leaf))]


class ChangesArguments(Exception):
    """A function puts something into a list or dict that it is given: graphs know the tensors inside of these alone."""


def _parameters_among(inputs):
    """The places of parameters, which functions tell from other tensors."""
    return tuple(i for i, value in enumerate(inputs) if isinstance(value, Parameter))


class _Captures(threading.local):
    depth = 0  # functions that are being captured on this thread, the one inside the other


_captures = _Captures()


def _run(function, spec, kept, same, attributes, tensors, parameters, floats, earlier, inputs):
    """The function on leaves. It is what C++ holds, and has no reference to what holds that. Where its `tensors` are watched, containers that it is given
    stay what they are, and those that it gives come back as what they are."""
    for i in parameters:
        if type(inputs[i]) is Tensor:
            inputs[i].__class__ = Parameter
    for i, found in attributes.items():  # of the module's tensors, which are watched
        vars(inputs[i]).update(found)
    given = _with_kept(inputs, kept)
    for i, own in same.items():  # an argument that is one of the module's tensors
        given[i] = given[own]
    for i in floats:
        given[i] = given[i].item()
    args, kwargs = pytree.tree_unflatten(given, spec)
    watched = tensors(inputs, (args, kwargs)) if tensors is not None else None
    _captures.depth += 1
    try:
        result = function(*args, **kwargs)
    finally:
        _captures.depth -= 1
    if watched is not None:
        after, spec_after = pytree.tree_flatten(objects.opened((args, kwargs))[0])
        if spec_after != spec or any(a is not b for a, b in zip(after, given)):
            raise ChangesArguments
        result = made.taken_apart(result, watched, earlier)
    leaves, form = pytree.tree_flatten(result, is_leaf=None if watched is None else watched.is_from_outside)
    if watched is None:
        _check_results(leaves)
    else:
        for leaf in leaves:
            if not isinstance(leaf, (*KNOWN_TYPES, *_VALUES)) and not watched.stays(leaf):
                watched.stop(f"Found {type(leaf)} in output", "a graph cannot make one")
        watched.check(leaves)
    kept_results = {i: leaf for i, leaf in enumerate(leaves) if not _in_graph(leaf)}
    if watched is not None:
        kept_results = _with_given(kept_results, watched)
    # The last result is no part of the graphs: it says how the others belong together.
    return [*(leaf for i, leaf in enumerate(leaves) if i not in kept_results), _C._Tree(form, kept_results, watched is not None, None)]


class _Given:
    """Stands in a result for a list, dict or object among the arguments of the call, by the steps to it."""

    def __init__(self, steps):
        self.steps = steps

    def of(self, arguments):
        return functools.reduce(_part_of, self.steps, arguments)


def _part_of(whole, step):
    return whole[step] if isinstance(whole, (list, tuple, dict)) else vars(whole)[step]


def _with_given(kept, watched):
    """What a result keeps, with places of the arguments that it gives back."""
    places = {i: watched.place_of(leaf) for i, leaf in kept.items()}
    if any(place is not None for place in places.values()) and any(place is None and watched.is_from_outside(kept[i]) for i, place in places.items()):
        watched.stop("a result that holds a container of the arguments and one from outside", "the former is put into a result of each call")
    return {i: leaf if places[i] is None else _Given(places[i]) for i, leaf in kept.items()}


def _function_modes():
    """The function modes that are entered; those of a default device go by the device."""
    return tuple(mode.device if isinstance(mode, DeviceContext) else mode for mode in _C._torch_function_modes())


def _names_of(function, args, kwargs):
    """What users call the leaves of the arguments: `x`, `x[0]`, `x['a']`."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = []
    try:
        paths = pytree.tree_flatten_with_path((args, kwargs))[0]
    except ValueError:  # a class of the user's that does not say what its parts are called
        return [f"input {i}" for i in range(len(pytree.tree_leaves((args, kwargs))))]
    for path, _ in paths:
        first = path[1].idx if path[0].idx == 0 else path[1].key
        name = first if isinstance(first, str) else named[first] if first < len(named) else f"args[{first}]"
        names.append(name + pytree.keystr(path[2:]))
    return names


class _ForKind:
    """The graphs for one structure of arguments: by C++ where all tensors are plain, else by way of the plain tensors inside of others."""

    def __init__(self, run, options, partition, earlier):
        self.earlier = earlier  # objects that the last run made

        def run_plain(inputs):
            results = run(inputs)
            if subclasses.has_subclasses(results):
                raise subclasses.HasSubclasses
            return results
        self.plain = _C._aot_compile(run_plain, *options, unlift_tokens=config.unlift_effect_tokens)
        _, forward, backward, inference, decompositions, dynamic, fixed, keep_writes, _ = options
        # The sizes of wrappers are numbers there: what a class makes of sizes that are symbols is not known.
        static = ("default", None, None, inference, decompositions, False, 0, keep_writes)
        self.wrapped = subclasses.Compiled(run, static, partition, _of_list(forward), _of_list(backward), fixed if dynamic else None)
        self.gives_subclasses = False

    def __call__(self, inputs):
        return self._call(inputs, self.plain, self.wrapped)

    def call_known(self, inputs):
        if self.gives_subclasses or subclasses.has_subclasses(inputs):
            return self.wrapped.call_known(inputs)
        return self.plain.call_known(inputs)

    def graphs(self, inputs):
        return self._call(inputs, self.plain.prepare, self.wrapped.graphs)

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


def aot_function(fn, fw_compiler, bw_compiler=None, partition_fn=default_partition, decompositions=None, num_params_buffers=0,
                 keep_inference_input_mutations=False, inference_compiler=None, *, dynamic=False, enable_log=True,
                 disable_functionalization=False):
    """`fn` with its forward and backward captured and compiled on the first call for each kind of arguments. `num_params_buffers`, which says
    that the first arguments stay the same from call to call, matters for `dynamic` alone: the sizes of these are numbers, those of other
    arguments, and integers, are symbols of the graphs, which then serve every call that keeps their guards. `keep_inference_input_mutations`: the
    graphs carry out the writes to inputs that are no part of autograd."""
    not_built("aot_function", disable_functionalization=(disable_functionalization, False))
    return _compile(fn, fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler, dynamic, num_params_buffers,
                    keep_inference_input_mutations).call


def _compile(fn, fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler, dynamic, fixed_inputs, keep_writes, module=None,
             **watching):
    compiled = _Compiled(fn, fw_compiler, bw_compiler if bw_compiler is not None else fw_compiler, inference_compiler, partition_fn,
                         decompositions, bool(dynamic), fixed_inputs, bool(keep_writes), module=module, **watching)
    call = compiled.call
    if "call" not in watching:
        if module is None and hasattr(fn, "__name__"):
            functools.update_wrapper(call, fn)
        call._compiled = compiled
    return compiled


def _named_tensors(mod):
    return {**dict(mod.named_parameters(remove_duplicate=False)), **dict(mod.named_buffers(remove_duplicate=False))}


def _training_flags(mod):
    return tuple(part.training for part in mod.modules())


class _ModuleTensors:
    """Parameters and buffers of a module by name, looked up at each call, and its training flags."""

    def __init__(self, mod):
        self.named, self.training = functools.partial(_named_tensors, mod), functools.partial(_training_flags, mod)

        def look_up():
            named = _named_tensors(mod)
            return (tuple(named), _training_flags(mod)), list(named.values())
        # Who has lists of his own may change them without changing a dict of the module.
        listed = ("modules", "named_modules", "named_parameters", "named_buffers", "_named_members")
        plain = all(getattr(type(part), name, None) is getattr(Module, name, None) for part in mod.modules() for name in listed)
        self.state = _C._ModuleState(look_up, mod.modules) if plain else None


def _compile_module(mod, fw_compiler, bw_compiler=None, partition_fn=default_partition, decompositions=None, inference_compiler=None,
                    keep_inference_input_mutations=False, *, dynamic=False, disable_functionalization=False, **watching):
    """`mod` as a compiled function. Parameters and buffers are looked up by name at each call, and its training flags decide with the
    arguments which graphs run."""
    not_built("aot_function", disable_functionalization=(disable_functionalization, False))

    is_watched = bool(watching)  # whose objects C++ must not hold

    def functional_call(named, *args, **kwargs):
        with _standing_in(mod, named):
            result = mod(*args, **kwargs)
            if not is_watched:
                _check_tensors(mod, named)
        return result
    tensors = _ModuleTensors(mod)
    return _compile(functional_call, fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler, dynamic, len(tensors.named()),
                    keep_inference_input_mutations, module=tensors, **watching)


def _check_tensors(mod, given):
    """What the module gives itself while it is captured would be lost."""
    for name, value in _named_tensors(mod).items():
        if value is not given.get(name):
            raise NotImplementedError(f"the module gives itself another tensor as its {name}, which a compiled module cannot: write the new values to the one "
                                      "that it has")


class AOTModule(Module):
    """A module whose forward and backward are compiled ahead of time."""

    def __init__(self, mod, args, kwargs):
        super().__init__()
        self.orig_module = mod
        self.__dict__["_made_with"] = args, kwargs
        self.__dict__["forward"] = _compile_module(mod, *args, **kwargs).call

    def __reduce__(self):
        """A copy is compiled for the copied module."""
        return AOTModule, (self.orig_module, *self._made_with)


def aot_module(mod, *args, **kwargs):
    return AOTModule(mod, args, kwargs)


def _check_output(*given):
    """A forward hook: of the module, its arguments and its output."""
    if not isinstance(given[-1], (tuple, list)):
        raise RuntimeError("Graph output must be a (). This is so that we can avoid pytree processing of the outputs. Please change the module to "
                           "have tuple outputs or use aot_module instead.")


def aot_module_simplified(mod, args, fw_compiler, bw_compiler=None, partition_fn=default_partition, decompositions=None,
                          keep_inference_input_mutations=False, inference_compiler=None, ignore_shape_env=False,
                          disable_functionalization=False, pre_grad_passes=None):
    """`mod` compiled at once for `args`; the result takes flat arguments such as these. Fake tensors with symbolic sizes among them make graphs
    for every call that keeps the guards on their symbols."""
    not_built("aot_module_simplified", ignore_shape_env=(ignore_shape_env, False), pre_grad_passes=(pre_grad_passes, None))
    dynamic = any(isinstance(a, _C.SymInt) or isinstance(a, Tensor) and any(isinstance(s, _C.SymInt) for s in a.shape) for a in args)
    compiled = _compile_module(mod, fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler, keep_inference_input_mutations,
                               dynamic=dynamic, disable_functionalization=disable_functionalization)
    watched = mod.register_forward_hook(_check_output)
    try:
        found = compiled.prepare(*args)
    finally:
        watched.remove()
    if any(primal["is_fake"] for primal in found["primals"][len(set(found["arguments"])):]):
        raise AssertionError("Unexpected fake buffer _tensor_constant0 Enable TORCH_FAKE_TENSOR_DEBUG=1 to get creation stack traces on fake tensors.")
    inputs = [*compiled.module.named().values(), *args]
    assumptions = _Assumptions(compiled.number, inputs, found)

    def forward(*runtime_args):
        if config.debug_assert and not subclasses.has_subclasses(inputs):
            assumptions.check([*compiled.module.named().values(), *runtime_args])
        return compiled.call(*runtime_args)
    forward.zero_grad = mod.zero_grad
    forward.named_parameters = mod.named_parameters
    forward.named_buffers = mod.named_buffers
    return forward


compiled_function = aot_function
compiled_module = aot_module
