"""Export of modules: one run on fake inputs, recorded."""
import contextlib
import dis
import enum
import functools
import inspect
import itertools
import logging
import operator
import os
import re
import warnings

from umbra import _C
from umbra._dynamo.decorators import marked_sizes
from umbra._dynamo.exc import TorchDynamoException, Unsupported, user_error
from umbra._export.builtins import symbolic_builtins
from umbra._export.functions import NotedFunctions
from umbra._functorch import config as functorch_config
from umbra._library.examples import drafting, refuse_mismatch
from umbra.compiler import _capturing, is_exporting
from umbra.export import _custom_meta, _tree, _wrappers
from umbra.export._shapes import read_dynamic_shapes, shapes_by_leaf
from umbra.export.dynamic_shapes import AdditionalInputs, Dim, ShapesCollection, _IntWrapper
from umbra.export.exported_program import ExportedModule, ExportedProgram
from umbra.fx.graph_module import GraphModule
from umbra.nn import parameter as nn_parameter
from umbra.nn.parameter import is_lazy
from umbra.nn.modules import _capture, module as nn_module
from umbra.utils import _pytree as pytree
from umbra.utils._contextlib import uninterrupted
from umbra.utils._python_dispatch import is_traceable_wrapper_subclass


def _signature(mod):
    if isinstance(mod, nn_module.Module):
        return inspect.signature(mod.forward)
    return mod._forward_signature() if hasattr(mod, "_forward_signature") else inspect.signature(mod)


def bind_arguments(mod, args, kwargs):
    """The arguments by the names of forward's parameters, in order."""
    return dict(_signature(mod).bind(*args, **kwargs).arguments)


def _argument_names(mod, args):
    """What graphs call the positional arguments."""
    names = []
    for parameter in _signature(mod).parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{i}" for i in range(len(args) - len(names))]
    return names[:len(args)]


def _spread_arguments(mod, args, kwargs):
    """The arguments that stand in `*args` and `**kwargs` of the signature: {what graphs call one: its place there}."""
    parameters = _signature(mod).parameters.values()
    if not any(parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) for parameter in parameters):
        return {}
    spread, arguments = {}, bind_arguments(mod, args, kwargs)
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            for i in range(len(arguments.get(parameter.name, ()))):
                spread[f"{parameter.name}_{i}"] = f"{parameter.name}[{i}]"
        elif parameter.kind is parameter.VAR_KEYWORD:
            for key in arguments.get(parameter.name, {}):
                spread[key] = f"{parameter.name}[{key!r}]"
    return spread


def _paths_of_shapes(mod, args, kwargs, dynamic_shapes):
    """Dynamic shapes by the paths that C++ knows the tensors by."""
    if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    arguments = bind_arguments(mod, args, kwargs)
    shapes = read_dynamic_shapes(dynamic_shapes, arguments)
    spread = {source: name for name, source in _spread_arguments(mod, args, kwargs).items()}

    def rename(path):
        for prefix, name in spread.items():
            if path.startswith(prefix):
                return name + path[len(prefix):]
        return path
    return {rename(path): dims for path, dims in shapes.items()}


_COPIED = (list, tuple, dict)


def _parts(path, module, found):
    """A module's parts by their paths, in order, with those that stand in several places once for each."""
    if type(module).named_modules is not nn_module.Module.named_modules:
        found += module.named_modules(prefix=path, remove_duplicate=False)
        return found
    found.append((path, module))
    for name, part in module._modules.items():
        if part is not None:
            _parts(f"{path}.{name}" if path else name, part, found)
    return found


class _Attributes:
    """Puts a module's attributes back after its run on stand-ins, and says which of its buffers the run replaced."""

    _OWN = ("_parameters", "_buffers", "_modules")

    def __init__(self, modules):
        self._modules = modules

    def __enter__(self):
        self._before = [(path, module, dict(values := vars(module)), [dict(values[name]) for name in self._OWN], self._copies(values))
                        for path, module in self._modules]
        return self

    @classmethod
    def _copies(cls, values):
        """Of lists, tuples and dicts, which the run may change: what is in them."""
        return {name: cls._copy(value) for name, value in values.items() if type(value) in _COPIED and name not in cls._OWN}

    def __exit__(self, *exception):
        assigned = []
        for path, module, before, own, copies in self._before:
            values = vars(module)
            for name, entries in zip(self._OWN, own):
                if entries or values[name]:
                    self._restore_own(values[name], entries)
            same = len(values) == len(before) and all(map(operator.is_, values.values(), before.values()))
            if not same or any(copies.values()) or any(map(values.get, copies)):
                self._restore(path, values, before | copies, assigned)
        if assigned:
            noun, verb = ("attributes", "were") if len(assigned) > 1 else ("attribute", "was")
            warnings.warn(f"The tensor {noun} {', '.join(assigned)} {verb} assigned during export. Such attributes must be registered as buffers "
                          "using the `register_buffer` API "
                          "(https://pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer).", stacklevel=3)

    def assigned_buffers(self):
        """Pairs of a buffer and the tensor that took its place."""
        return [(buffer, module._buffers[name]) for _, module, _, own, _ in self._before for name, buffer in own[self._OWN.index("_buffers")].items()
                if buffer is not None and module._buffers.get(name) is not None and module._buffers[name] is not buffer]

    def _restore(self, path, values, before, assigned):
        others = [name for name, value in values.items() if before.get(name) is not value and name not in self._OWN]
        for name in others:
            self._compare(".".join(filter(None, ("self", path, name))), before.get(name), values[name], assigned)
        for name in (*others, *(before.keys() - values.keys())):
            if name in before:
                values[name] = self._restored(values.get(name), before[name])
        for name in values.keys() - before.keys():
            if pytree.tree_any(lambda leaf: isinstance(leaf, _C.Tensor), values[name]):
                del values[name]

    @staticmethod
    def _restore_own(now, before):
        if len(now) != len(before) or not all(map(operator.is_, now.values(), before.values())) or list(now) != list(before):
            now.clear()
            now.update(before)

    @classmethod
    def _copy(cls, value):
        """A value with lists and dicts of its own."""
        if type(value) in (list, tuple):
            return type(value)(map(cls._copy, value))
        return {key: cls._copy(item) for key, item in value.items()} if type(value) is dict else value

    @staticmethod
    def _restored(now, before):
        """`before`, in the list or dict that holds the value now where there is one: others may hold it too."""
        if type(before) is type(now) is list:
            now[:] = before
            return now
        if type(before) is type(now) is dict:
            now.clear()
            now.update(before)
            return now
        return before

    @classmethod
    def _compare(cls, path, before, now, assigned):
        """Adds to `assigned` the paths of tensors that are others than before."""
        if before is now:
            return
        if isinstance(now, _C.Tensor):
            assigned.append(path)
        elif isinstance(now, dict) and isinstance(before, dict):
            for key in now:
                cls._compare(f"{path}[{key!r}]", before.get(key), now[key], assigned)
        elif isinstance(now, (list, tuple)) and isinstance(before, (list, tuple)):
            for i, item in enumerate(now):
                cls._compare(f"{path}[{i}]", before[i] if i < len(before) else None, item, assigned)


class _KeptCalls:
    """While it lasts, what some of the module's parts are called with and return is noted."""

    def __init__(self, mod, paths):
        for path in paths:
            functools.reduce(getattr, path.split("."), mod)  # an error where there is none
        self.paths, self._calls = paths, []

    def __enter__(self):
        _capture.set_noted_calls({path: self._noting(path) for path in self.paths})

    def __exit__(self, *exception):
        _capture.set_noted_calls({})

    def _noting(self, path):
        number, specs = itertools.count(), {}

        def noted(forward, args, kwargs):
            i = next(number)
            name = path if i == 0 else f"{path}@{i}"
            given = self._leaves((args, kwargs))
            result = forward(*args, **kwargs)
            results = self._leaves(result)
            first = specs.setdefault("first", (given[1], results[1]))
            for what, expected, spec in zip(("in_spec", "out_spec"), first, (given[1], results[1])):
                if spec != expected:
                    raise AssertionError(f"{what} mismatch for _export_root.{path}: {expected} != {spec}")
            self._calls.append((name, *given, *results))
            return result
        return lambda forward: lambda *args, **kwargs: noted(forward, args, kwargs)

    @staticmethod
    def _leaves(tree):
        leaves, spec = pytree.tree_flatten(tree)
        for leaf in leaves:
            if type(leaf) not in _PLAIN and not isinstance(leaf, _C.Tensor):
                raise AssertionError(f"Only Tensors or scalars are supported as pytree flattened inputs, got: {leaf}")
        return leaves, spec

    def described(self):
        return [(name, given, _tree.describe(in_spec), results, _tree.describe(out_spec))
                for name, given, in_spec, results, out_spec in self._calls]

    def specs(self):
        return {name: (in_spec, out_spec) for name, _, in_spec, _, out_spec in self._calls}


class _Paths:
    """While it lasts, calls of the module's parts are noted in the graph by their paths; those of graphs are not, as in PyTorch: what they call belongs to
    their caller."""

    def __init__(self, parts, kept):
        self.paths = _capture.ModulePaths((path, part) for path, part in parts if not path or path in kept or not isinstance(part, GraphModule))

    def __enter__(self):
        self._before = _capture.set_paths(self.paths)

    def __exit__(self, *exception):
        _capture.set_paths(self._before)


def export(mod, args, kwargs=None, *, dynamic_shapes=None, strict=False, preserve_module_call_signature=(), prefer_deferred_runtime_asserts_over_guards=False):
    """Runs `mod` once on stand-ins for the arguments and records what it calls, with the sizes that `dynamic_shapes` names as symbols.

        >>> batch = torch.export.Dim("batch", max=64)
        >>> program = torch.export.export(torch.nn.Linear(4, 2), (torch.ones(3, 4),), dynamic_shapes=({0: batch},))
        >>> program.module()(torch.ones(5, 4)).shape
        torch.Size([5, 2])
    """
    try:
        return run_export(mod, args, kwargs, dynamic_shapes=dynamic_shapes, strict=strict, preserve_module_call_signature=preserve_module_call_signature,
                          prefer_deferred_runtime_asserts_over_guards=prefer_deferred_runtime_asserts_over_guards)
    except Exception as error:
        if isinstance(error, ValueError) and isinstance(dynamic_shapes, (tuple, list)) and "for dimension inputs['" in str(error):
            places = {name: place for place, name in enumerate(bind_arguments(mod, args, kwargs or {}))}
            error.args = (re.sub(r"(?<= inputs)\['(\w+)'\]", lambda match: f"[{places[match[1]]}]" if match[1] in places else match[0], str(error)),)
        if _a_draft_would_help(error):
            error.args = (f"{str(error).rstrip()}\n\n{_DRAFT}",)
        raise


_DRAFT = ("The error above occurred when calling torch.export.export. If you would like to view some more information about this error, and get a list of "
          "all other errors that may occur in your export call, you can replace your `export()` call with `draft_export()`.")


def _a_draft_would_help(error):
    """Whether it is one of the errors that `draft_export` reports instead."""
    from umbra._dynamo.exc import UserError
    from umbra._subclasses.fake_tensor import UnsupportedOperatorException
    known = (_C.GuardOnDataDependentSymNode, _C.ConstraintViolationError, UserError, UnsupportedOperatorException)
    return isinstance(error, known) or isinstance(error, RuntimeError) and "no fake impl registered" in str(error)


def run_export(mod, args, kwargs=None, *, dynamic_shapes, strict, preserve_module_call_signature, prefer_deferred_runtime_asserts_over_guards, draft=None,
               force_specializations=False):
    """`export`; with a list as `draft`, questions about data are answered by the example inputs and noted in the list as (condition, stack)."""
    if not isinstance(mod, nn_module.Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    from umbra.jit import ScriptModule
    if isinstance(mod, ScriptModule):
        raise ValueError("Exporting a ScriptModule is not supported. Maybe try converting your ScriptModule to an ExportedProgram using "
                         "`TS2EPConverter(mod, args, kwargs).convert()` instead.")
    if not isinstance(args, tuple):
        raise user_error("INVALID_INPUT", f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    for value in (*mod.parameters(), *mod.buffers()):
        if is_lazy(value):
            type(value).__torch_function__(_C.Tensor._is_view, (type(value),), (value,))  # refuses it, as any function does
    with contextlib.ExitStack() as strictly:
        if strict:
            _check_strict_inputs(mod, args, kwargs)
            strictly.enter_context(_strict_errors())
            strictly.enter_context(_without_logging())
        if draft is None and functorch_config.fake_tensor_propagate_real_tensors:
            draft = []  # questions about data are answered all the same, and wrong fake kernels are errors
            strictly.enter_context(drafting(refuse_mismatch))
        program = capture(_ModuleSource(mod, preserve_module_call_signature), tuple(args), dict(kwargs or {}), dynamic_shapes=dynamic_shapes, draft=draft,
                          defer_guards=prefer_deferred_runtime_asserts_over_guards, force_specializations=force_specializations,
                          flat_names=strict)
    if strict:
        program._program.keep_used_state()
    if isinstance(mod, ExportedModule):
        _custom_meta.carry_over(program, mod, _custom_meta.nodes_of_weights(program, mod))
    return program


class _ModuleSource:
    """What export asks of a module: its state, its signature, and the run. Others may stand for other things that run (`umbra.from_torch`)."""

    def __init__(self, mod, kept_paths):
        self._module = mod
        self._kept = _KeptCalls(mod, kept_paths)
        self._parts = _parts("", mod, [])
        first = {}
        for path, part in self._parts:
            first.setdefault(id(part), (path, part))
        self._each = list(first.values())
        self._attributes = _Attributes(self._each)
        self._signature = _signature(mod)
        self.kept_calls, self.kept_specs = self._kept.described, self._kept.specs
        self.assigned_buffers = self._attributes.assigned_buffers

    def __call__(self, *args, **kwargs):
        return self._module(*args, **kwargs)

    def _forward_signature(self):
        return self._signature

    def parameters(self):
        """Pairs of a name and a tensor."""
        if type(self._module).named_parameters is not nn_module.Module.named_parameters:
            return [pair for name, value in self._module.named_parameters(remove_duplicate=False) for pair in _inner_tensors(name, value)]
        return [pair for path, part in self._parts for name, value in part._parameters.items() if value is not None
                for pair in _inner_tensors(f"{path}.{name}" if path else name, value)]

    def trained_parts(self):
        """The names of tensors inside of wrappers that are parameters and require gradients: the wrapper says so, not they."""
        return {inner for path, part in self._parts for name, value in part._parameters.items()
                if value is not None and type(value) not in _TENSORS and value.requires_grad
                for inner, tensor in _inner_tensors(f"{path}.{name}" if path else name, value) if tensor.is_floating_point() or tensor.is_complex()}

    def buffers(self):
        """A name, a tensor, and whether it is saved."""
        if type(self._module).named_buffers is not nn_module.Module.named_buffers:
            return [(inner, tensor, _is_persistent(self._module, name)) for name, value in self._module.named_buffers(remove_duplicate=False)
                    for inner, tensor in _inner_tensors(name, value)]
        return [(inner, tensor, name not in part._non_persistent_buffers_set) for path, part in self._parts for name, value in part._buffers.items()
                if value is not None for inner, tensor in _inner_tensors(f"{path}.{name}" if path else name, value)]

    def plain_tensors(self):
        """Tensors that are attributes and neither parameters nor buffers."""
        return [(f"{path}.{name}" if path else name, value) for path, module in self._each for name, value in vars(module).items()
                if isinstance(value, _C.Tensor)]

    def module_paths(self):
        return [path for path, _ in self._parts]

    @uninterrupted
    def running(self):
        """While it lasts the source may be called once; afterwards it is what it was."""
        with self._kept, _Paths(self._parts, self._kept.paths), self._attributes, NotedFunctions():
            yield


def capture(source, args, kwargs, *, dynamic_shapes, draft=None, defer_guards=False, force_specializations=False, flat_names=False):
    """The program of a source, as `_ModuleSource` is one."""
    dynamic_shapes = dynamic_shapes or _marked_shapes(source, args, kwargs)
    shapes = _paths_of_shapes(source, args, kwargs, dynamic_shapes) if dynamic_shapes else {}
    args, kwargs = pytree.tree_map(lambda leaf: leaf.val if isinstance(leaf, _IntWrapper) else leaf, (args, kwargs))
    given_leaves, in_spec = pytree.tree_flatten((args, kwargs))
    leaves = _tree.without_enums(given_leaves)
    _check_inputs(leaves)
    out_spec, trains = None, False

    def forward(flat):
        nonlocal out_spec, trains
        flat = [leaf if isinstance(leaf, enum.Enum) and not isinstance(value, _C.SymInt) else value for leaf, value in zip(given_leaves, flat)]
        given, named = pytree.tree_unflatten(flat, in_spec)
        results, out_spec = pytree.tree_flatten(source(*given, **named))
        trains = any(map(_wrappers.is_wrapper, results))
        if trains:
            results, out_spec = pytree.tree_flatten(pytree.tree_unflatten(map(_wrappers.take_apart, results), out_spec))
        _check_results(results)
        return results, _tree.describe(out_spec)

    with source.running(), _capturing(exporting=True), _violations_as_user_errors(), symbolic_builtins():
        program = _C._export(forward, leaves, _tree.describe(in_spec), source.parameters(), source.buffers(), source.plain_tensors(),
                             source.assigned_buffers, source.module_paths(), shapes, _argument_names(source, args) + list(kwargs),
                             _spread_arguments(source, args, kwargs), source.kept_calls, draft, defer_guards, force_specializations, flat_names)
    # A result that is a wrapper has a history. What was read out of one has none, so that its parts have none in a program of plain results.
    if trains and (trained := source.trained_parts()):
        program.set_state([(name, nn_parameter.Parameter(tensor.detach()) if name in trained else tensor) for name, tensor in program.state])
    program = ExportedProgram(program, (args, kwargs), in_spec, out_spec, call_specs=source.kept_specs())
    if isinstance(dynamic_shapes, AdditionalInputs):
        dynamic_shapes.verify(program)
    return program


_TENSORS = (_C.Tensor, nn_parameter.Parameter)


def _inner_tensors(name, value):
    """A wrapper around tensors is taken apart: programs have the tensors inside, by the names that PyTorch gives them."""
    if type(value) in _TENSORS or not is_traceable_wrapper_subclass(value):
        return ((name, value),)
    owner, _, own = name.rpartition(".")
    path = ".".join(filter(None, (owner, "parametrizations", own, "original")))
    inner = [getattr(value, part) for part in value.__tensor_flatten__()[0]]
    return [pair for i, tensor in enumerate(inner) for pair in _inner_tensors(f"{path}{i}", tensor)]


_PLAIN = (int, float, bool, str, type(None))
_INPUTS = (_C.Tensor, int, float, bool, str, type(None), _C.SymInt)


def _check_inputs(leaves):
    """What is no tensor and no plain value would be fixed to the example without a word."""
    for value in leaves:
        if type(value) not in _INPUTS and not isinstance(value, _C.Tensor):
            raise ValueError(f"Unsupported input type {type(value)}. Export only supports pytree containers of basic types (Tensor, int, float, "
                             "...) as input. To register a custom dataclass, use torch.export.register_dataclass. To register a custom container "
                             "type, use torch.utils._pytree.register_pytree_node. To register a constant input, use "
                             "torch.utils._pytree.register_constant")


def _check_strict_inputs(mod, args, kwargs):
    """What strict=True says of arguments before it looks at code."""
    bind_arguments(mod, args, kwargs or {})
    for leaf in pytree.tree_leaves((args, kwargs)):
        if not isinstance(leaf, (*_INPUTS, _IntWrapper)):
            raise user_error("INVALID_INPUT", f"It looks like one of the inputs with type `{type(leaf)}` is not supported or pytree-flattenable. A program "
                             f"takes {', '.join(kind.__name__ for kind in _INPUTS)} and containers of those: register yours with "
                             "torch.utils._pytree.register_pytree_node or torch.export.register_dataclass.")


def _marked_shapes(mod, args, kwargs):
    """The sizes that torch._dynamo.mark_dynamic and the like have marked, as dynamic shapes; None where there are none."""
    arguments = bind_arguments(mod, args, kwargs)

    def hints(leaf):
        marked = marked_sizes(leaf) if isinstance(leaf, _C.Tensor) else None
        return {i: getattr(Dim, hint)(min=least, max=most) for i, (hint, least, most) in marked.items()} if marked else None
    if not pytree.tree_any(lambda leaf: hints(leaf) is not None, arguments):
        return None
    return shapes_by_leaf(hints, arguments)


_RESULTS = (_C.Tensor, int, str, float, bool, type(None), _C.SymInt, _C.SymFloat, _C.SymBool)


def _check_results(results):
    for value in results:
        if not isinstance(value, _RESULTS):
            raise RuntimeError(f"Found {type(value)} in output, which is not a known type. If this type holds tensors, you need to register a "
                               "pytree for it. See https://github.com/pytorch/functorch/issues/475 for a brief explanation why. If you don't "
                               "need to register a pytree, please leave a comment explaining your use case and we'll make this more ergonomic "
                               "to deal with")


def _is_raised_by_user(error):
    """Whether an exception comes from a `raise` in the user's code rather than from a call that failed."""
    at = error.__traceback__
    while at.tb_next:
        at = at.tb_next
    code = at.tb_frame.f_code
    return code.co_code[at.tb_lasti] == dis.opmap["RAISE_VARARGS"] and not code.co_filename.startswith(_PACKAGE)


_PACKAGE = os.path.dirname(os.path.dirname(__file__))


@contextlib.contextmanager
def _strict_errors():
    """The errors of strict=True, which captures by the same run: PyTorch analyses code there, and has names of its own for what it cannot follow."""
    try:
        yield
    except _C.GuardOnDataDependentSymNode as error:
        if re.search(r"expression (?:Eq|Ne)\(u\d+, 1\)", str(error)):  # the truth of a tensor
            raise Unsupported(f"Data-dependent branching\n  Explanation: the program branches on the value of a tensor; torch.cond expresses that.\n\n{error}") from error
        raise user_error("ANTI_PATTERN", f"Consider annotating your code using torch._check*(). {error}") from error
    except Exception as error:
        if isinstance(error, TorchDynamoException) or not _is_raised_by_user(error):
            raise
        raise Unsupported(f"Observed exception\n  Explanation: the program raises {type(error).__name__}: {error}") from error


_LOGGING = ("debug", "info", "warning", "error", "critical", "exception", "log")


@uninterrupted
def _without_logging():
    """With strict=True what a program logs is no part of it: the calls are not made. Other threads log as ever."""
    before = {name: getattr(logging.Logger, name) for name in _LOGGING}

    def unless_exporting(method):
        return lambda *args, **kwargs: None if is_exporting() else method(*args, **kwargs)
    for name, method in before.items():
        setattr(logging.Logger, name, unless_exporting(method))
    try:
        yield
    finally:
        for name, method in before.items():
            setattr(logging.Logger, name, method)


@contextlib.contextmanager
def _violations_as_user_errors():
    """Programs that do not keep what dynamic_shapes promise are the user's to mend; examples out of a Dim's range stay what they are."""
    try:
        yield
    except _C.ConstraintViolationError as error:
        if str(error).startswith(("Constraints violated", "Specializations unexpectedly required")):
            raise user_error("CONSTRAINT_VIOLATION", str(error)) from error
        raise


def _is_persistent(mod, path):
    owner, _, name = path.rpartition(".")
    return name not in mod.get_submodule(owner)._non_persistent_buffers_set


def _export(mod, args, kwargs=None, dynamic_shapes=None, *, strict=True, preserve_module_call_signature=(), pre_dispatch=None,
            prefer_deferred_runtime_asserts_over_guards=False, _disable_forced_specializations=True, _allow_complex_guards_as_runtime_asserts=False):
    """`export` under its private name; without `pre_dispatch` the program is recorded below autograd: functional, composites taken apart. (What 2.4 called
    `_disable_forced_specializations` is how export works since: without it, dimensions that no Dim can describe have to be numbers.
    `_allow_complex_guards_as_runtime_asserts` has another name now.)"""
    program = run_export(mod, args, kwargs, dynamic_shapes=dynamic_shapes, strict=strict,
                         preserve_module_call_signature=preserve_module_call_signature,
                         prefer_deferred_runtime_asserts_over_guards=(prefer_deferred_runtime_asserts_over_guards
                                                                      or _allow_complex_guards_as_runtime_asserts),
                         force_specializations=not _disable_forced_specializations)
    return program if pre_dispatch or pre_dispatch is None else program._without_composites()


_export_for_training = export
