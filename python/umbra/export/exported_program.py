"""ExportedProgram: a program captured whole, and the module it can be made into again."""
import ast
import collections
import copy
import html
import inspect
import io
import operator
import re
import warnings

from umbra import _C
from umbra._C import Size
from umbra._library.examples import drafted
from umbra._options import not_built
from umbra.export import _custom_meta, _tree
from umbra.export.graph_signature import (  # noqa: F401 (kinds by their names in PyTorch's module)
    ConstantArgument, InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument, argument, describe_signature, read_signature)
from umbra.fx._codegen import PytreeCodeGen
from umbra.fx._forward import forward_of_graph
from umbra.fx.graph_module import GraphModule
from umbra.fx.proxy import Proxy
from umbra.nn import Module, Parameter
from umbra.serialization import save
from umbra.utils import _pytree as pytree
from umbra.utils._sympy.value_ranges import ValueRanges


class Symbol(str):
    """The name of a size: "s77"."""
    name = property(str)

    def __repr__(self):
        return str(self)


class ModuleCallSignature(collections.namedtuple("ModuleCallSignature", "inputs outputs in_spec out_spec forward_arg_names")):
    """How a module was called: the trees of its arguments and of its result."""
    __slots__ = ()


class ModuleCallEntry(collections.namedtuple("ModuleCallEntry", "fqn signature")):
    """A call of a module in the program, and its signature where it was preserved."""
    __slots__ = ()


class CallSpec(collections.namedtuple("CallSpec", "in_spec out_spec")):
    """The structures of a program's arguments and results."""
    __slots__ = ()


class GuardsFn(Module):
    """Checks a program's inputs, flat: the first call in the graph of `ExportedProgram.module()`."""
    _is_impure = True
    _called_whole = True  # by symbolic tracing

    def __init__(self, program):
        super().__init__()
        object.__setattr__(self, "_program", program)

    def forward(self, *args):
        self._program._check_leaves(list(args))

    def __deepcopy__(self, memo):
        return GuardsFn(self._program)


class ExportedModule(GraphModule):
    """A program as a module: inputs are checked, weights are attributes, what it writes is written."""

    @classmethod
    def _of(cls, program, check_guards):
        self = cls._wrap(program._synchronised().unlift())
        object.__setattr__(self, "_program", program)
        self.validate_inputs = True  # where it is not, calls are not looked at beyond what the graph itself checks
        names = program._argument_names()
        in_spec = program.call_spec.in_spec
        keywords = list(in_spec.children_specs[1].context) if in_spec.num_children == 2 else []
        self._graph._set_pytree(names, keywords, True)
        self._graph._own_codegen = PytreeCodeGen(in_spec, program.call_spec.out_spec)
        self._in_spec, self._out_spec = in_spec, program.call_spec.out_spec
        for name in program.graph_signature.non_persistent_buffers:
            path, _, leaf = name.rpartition(".")
            self.get_submodule(path)._non_persistent_buffers_set.add(leaf)
        for name in program.graph_signature.lifted_tensor_constants:  # no part of the state
            path, _, leaf = name.rpartition(".")
            owner = self.get_submodule(path)
            constant = owner._buffers.pop(leaf) if leaf in owner._buffers else owner._parameters.pop(leaf)
            setattr(owner, leaf, constant.detach() if constant.requires_grad else constant)  # it learns nothing
        if check_guards:
            self._add_guards()
        if "custom" in program.graph_module.meta:
            self.meta["custom"] = program.graph_module.meta["custom"]
        return self

    def _add_guards(self):
        """Checks of inputs are a call of their own, which passes may look at and take out."""
        placeholders = self._graph.find_nodes(op="placeholder")
        if not placeholders:
            return
        self._guards_fn = GuardsFn(self._program)
        with self._graph.inserting_after(placeholders[-1]):
            node = self._graph.call_module("_guards_fn", tuple(placeholders))
        first = next((node for node in self._graph._find_nodes(["call_function"]) if "nn_module_stack" in node.meta), None)
        if first is not None:
            node.meta["nn_module_stack"] = dict(list(first.meta["nn_module_stack"].items())[:1])

    @forward_of_graph
    def forward(self, *args, **kwargs):
        if pytree.tree_any(lambda leaf: isinstance(leaf, Proxy), (args, kwargs)):
            return self._forward_function()(self, *args, **kwargs)
        program = self._program
        leaves = program._flatten_inputs(args, kwargs)
        if self.validate_inputs and "_guards_fn" not in self._modules:
            program._check_leaves(leaves, check_guards=False)
        self._update_handle()
        return pytree.tree_unflatten(self._handle.run_with_origins(leaves), program.call_spec.out_spec)

    _forward_of_graph = forward  # whose source symbolic tracing runs

    def train(self, mode=True):
        raise NotImplementedError("Calling train() is not supported yet.")

    def eval(self):
        raise NotImplementedError("Calling eval() is not supported yet.")

    def __deepcopy__(self, memo):
        result = super().__deepcopy__(memo)
        object.__setattr__(result, "_program", self._program)
        result._graph._set_pytree(self._program._argument_names(), list(self._in_spec.children_specs[1].context), True)
        result._graph._own_codegen = PytreeCodeGen(self._in_spec, self._out_spec)
        result._compile()
        return result

    def _forward_signature(self):
        """The signature of the module that was exported, as far as it was called."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        names = self._program._argument_names()
        keywords = list(self._in_spec.children_specs[1].context)
        count = self._in_spec.children_specs[0].num_children
        return inspect.Signature([inspect.Parameter(name, kind) for name in names[:count]]
                                 + [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in keywords])


def _differ_by_order_of_keys(a, b):
    """Whether two trees are the same but for the order of the keys of plain dicts, and for tuples that are a torch.Size."""
    if a.type is Size and b.type is tuple:
        return a.num_children == b.num_children
    if a.type is not b.type or a.num_children != b.num_children:
        return False
    if a.type is dict:
        if set(a.context) != set(b.context):
            return False
        children = dict(zip(a.context, a.children_specs))
        return all(_differ_by_order_of_keys(children[key], child) for key, child in zip(b.context, b.children_specs))
    return a.context == b.context and all(map(_differ_by_order_of_keys, a.children_specs, b.children_specs))


def _in_plain_parentheses(failure):
    """"Guard failed: (x % 2) == 0" with the parentheses that Python needs and no others."""
    head, found, condition = failure.partition("Guard failed: ")
    try:
        return head + found + ast.unparse(ast.parse(condition, mode="eval")) if found else failure
    except SyntaxError:
        return failure


def _from_bytes(file):
    """A program that was pickled."""
    from umbra.export import load
    return load(io.BytesIO(file))


def _merge_repeated_items(graph):
    """An item that is taken out of a result several times is taken once."""
    taken = {}
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target is operator.getitem:
            first = taken.setdefault(node.args, node)
            if first is not node:
                node.replace_all_uses_with(first)
                graph.erase_node(node)


class ExportedProgram:
    """A graph, what its inputs and outputs mean, its weights, and the ranges of its sizes."""

    def __init__(self, program, example_inputs=None, in_spec=None, out_spec=None, state=None, call_specs=None):
        self._program = program
        self._call_specs = call_specs or {}  # trees of kept calls, where the library's own description would lose classes
        self._example_inputs = example_inputs
        self._signature = None  # once somebody has asked for it: it may be changed
        self._call_spec = CallSpec(in_spec or _tree.restore(program.in_spec), out_spec or _tree.restore(program.out_spec))
        self._graph_module = GraphModule._wrap(program.graph_module)
        self._state = state
        self._repeated = None  # see _repeated_inputs
        self._is_draft = False

    def _keep_example_inputs(self):
        """The example inputs become part of the program's file."""
        if self._example_inputs is None:
            return
        try:
            file = io.BytesIO()
            save(self._example_inputs, file)
            self._program.example_inputs = file.getvalue()
        except (TypeError, RuntimeError, NotImplementedError) as error:
            warnings.warn(f"the example inputs are not saved: {error}", stacklevel=3)
            self._program.example_inputs = b""

    # ---- parts ----

    _FIXED = frozenset(("graph_module", "graph", "graph_signature", "state_dict", "range_constraints", "module_call_graph", "call_spec", "verifier",
                        "verifiers", "dialect", "constants", "tensor_constants"))

    def __setattr__(self, name, value):
        if name in self._FIXED:
            raise RuntimeError(f"Unable to set ExportedProgram's {name} attribute.")
        object.__setattr__(self, name, value)

    @property
    def graph_module(self):
        return self._graph_module

    @property
    def graph(self):
        return self._graph_module.graph

    @property
    def call_spec(self):
        return self._call_spec

    @property
    def graph_signature(self):
        if self._signature is None:
            self._signature = read_signature(self._program, {node.name: node.meta.get("val") for node in self.graph.nodes})
        return self._signature

    def _synchronised(self):
        """The library's program, with the signature and the state as they are now."""
        if self._signature is not None:
            self._program.set_signature(*describe_signature(self._signature))
        if self._state is not None:
            self._program.set_state(list(self._state.items()))
        return self._program

    @property
    def state_dict(self):
        if self._state is None:
            kinds = {target: kind for kind, _, target, _, _ in self._program.inputs}
            self._state = dict(
                (name, tensor if kinds.get(name) != "PARAMETER" or isinstance(tensor, Parameter)
                 else Parameter(tensor.detach(), requires_grad=tensor.requires_grad)) for name, tensor in self._program.state)
        return self._state

    @property
    def constants(self):
        stored = {name: constant.detach() if isinstance(constant, Parameter) else constant for name, constant in self._program.constants}
        lifted = self.graph_signature.lifted_tensor_constants
        return {**{name: stored[name] for name in lifted if name in stored}, **stored}

    tensor_constants = constants

    @property
    def range_constraints(self):
        ranges = {Symbol(expression): ValueRanges(lower, upper) for expression, lower, upper in self._program.ranges}
        ranges.update((Symbol(name), ValueRanges.unknown()) for name in self._program.float_symbols)
        return ranges

    @property
    def example_inputs(self):
        return self._example_inputs

    @example_inputs.setter
    def example_inputs(self, value):
        if value is not None:
            if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], tuple) and isinstance(value[1], dict)):
                raise ValueError("Example inputs should be a tuple containing example arguments (as a tuple), and example kwargs (as a dictionary).")
            self._flatten_inputs(*value)
        self._example_inputs = value

    @property
    def dialect(self):
        return self._program.dialect

    @property
    def module_call_graph(self):
        whole = ModuleCallSignature([], [], *self.call_spec, self._argument_names())
        return [ModuleCallEntry(path, self._kept_call(path, signature) if path else whole) for path, signature in self._program.modules]

    def _kept_call(self, path, signature):
        if signature is None:
            return None
        inputs, outputs, in_spec, out_spec = signature
        values = {node.name: node.meta.get("val") for node in self.graph.nodes}
        read = lambda arguments: [argument(name, value, values.get(name)) for name, value in arguments]  # noqa: E731
        specs = self._call_specs.get(path) or (_tree.restore(in_spec), _tree.restore(out_spec))
        return ModuleCallSignature(read(inputs), read(outputs), *specs, None)

    @property
    def verifiers(self):
        from umbra._export.verifier import TrainingIRVerifier, Verifier
        return [TrainingIRVerifier if self.dialect == "TRAINING" else Verifier]

    @property
    def verifier(self):
        return self.verifiers[0]

    def parameters(self):
        for _, parameter in self.named_parameters():
            yield parameter

    def named_parameters(self):
        for name in self.graph_signature.parameters:
            yield name, self.state_dict[name]

    def buffers(self):
        for _, buffer in self.named_buffers():
            yield buffer

    def named_buffers(self):
        state, constants = self.state_dict, self.constants
        for name in self.graph_signature.buffers:
            yield name, state[name] if name in state else constants[name]

    # ---- use ----

    def _argument_names(self):
        names = self._program.argument_names
        positional = self.call_spec.in_spec.children_specs[0].num_children if self.call_spec.in_spec.num_children == 2 else 0
        keywords = list(self.call_spec.in_spec.children_specs[1].context) if self.call_spec.in_spec.num_children == 2 else []
        names = list(names[:positional]) + [f"arg{i}" for i in range(len(names), positional)]
        return names + keywords

    def _flatten_inputs(self, args, kwargs):
        """The leaves of a call's arguments, keyword ones in the order of the program."""
        in_spec = self.call_spec.in_spec
        if in_spec.num_children == 2:
            order = list(in_spec.children_specs[1].context)
            if set(order) != set(kwargs):
                raise ValueError(f"Ran into a kwarg keyword mismatch: Got the following keywords {list(kwargs)} but expected {order}")
            kwargs = {name: kwargs[name] for name in order}
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != in_spec:
            if not _differ_by_order_of_keys(spec, in_spec):
                raise ValueError(f"Trying to flatten user inputs with exported input tree spec: \n{in_spec}\nbut actually got inputs with tree spec of: "
                                 f"\n{spec}.\nPlease check that the inputs have the same number and type of args and kwargs as the ones you used when "
                                 "tracing.")
            leaves = in_spec.flatten_up_to(pytree.tree_map_only(Size, tuple, (args, kwargs), is_leaf=lambda value: type(value) is Size))
        return _tree.without_enums(leaves)

    def _repeated_inputs(self):
        """The places of inputs that were one tensor when the program was captured, which reads the last of them and no other."""
        if self._repeated is None:
            read = [bool(node.users) for node in self.graph.nodes if node.op == "placeholder"][-len(self.graph_signature.user_inputs):]
            places = {}
            if not all(read) and self.example_inputs is not None:
                for place, leaf in enumerate(pytree.tree_leaves(self.example_inputs)):
                    if isinstance(leaf, _C.Tensor):
                        places.setdefault(id(leaf), []).append(place)
            self._repeated = [group for group in places.values() if len(group) > 1 and read[group[-1]] and not any(read[place] for place in group[:-1])]
        return self._repeated

    def _check_leaves(self, leaves, check_guards=True):
        """Raises where the inputs do not fit: with guards the guard that does not hold, else what was expected. The types are PyTorch's."""
        for group in self._repeated_inputs():
            if any(leaves[place] is not leaves[group[0]] for place in group):
                names = " and ".join(repr(self.graph_signature.user_inputs[place]) for place in group)
                warnings.warn(f"The program was exported with one tensor for {names}, and reads the last of them alone, as PyTorch's programs do: the "
                              "others make no difference here. To have them read, export with tensors of their own.", stacklevel=4)
        try:
            self._program.check_inputs(leaves)
        except AssertionError as error:
            guard, _, expected = str(error).partition("\n")
            if ".dtype == " in guard:  # no guard of PyTorch's: the program computes with what it is given
                return self._check_leaves(self._with_own_dtypes(leaves), check_guards)
            if not check_guards:
                told = re.search(r"^(Une|E)xpected .*", expected, re.MULTILINE | re.DOTALL)
                raise RuntimeError(told[0] if told else "\n".join(filter(None, (_in_plain_parentheses(guard), expected)))) from error
            if re.search(r"len\(.*\) > \d+$", guard):  # guards ask for a size that is not there
                raise IndexError(f"tuple index out of range\n{expected}") from error
            raise type(error)("\n".join(filter(None, (_in_plain_parentheses(guard), expected)))) from None
        except TypeError as error:
            given = re.search(r"should be a tensor, got (\w+)", str(error))
            if given and check_guards:  # guards ask for sizes first
                name = "NoneType" if given[1] == "None" else given[1]
                raise AttributeError(f"'{name}' object has no attribute 'size'") from error
            raise RuntimeError(str(error)) from error

    def _with_own_dtypes(self, leaves):
        """Inputs without data that differ from those given by their types alone: they have those of the example."""
        inputs = [node.meta.get("val") for node in self.graph.find_nodes(op="placeholder")][-len(leaves):]
        return [_C._find_overload("aten::empty_like")(leaf, dtype=known.dtype, device="meta") if isinstance(leaf, _C.Tensor) and isinstance(known, _C.Tensor)
                else leaf for leaf, known in zip(leaves, inputs)]

    def __reduce__(self):
        from umbra.export import save
        file = io.BytesIO()
        save(self, file)
        return _from_bytes, (file.getvalue(),)

    def run_decompositions(self, decomp_table=None, decompose_custom_triton_ops=False):
        """The program without writes, and with operators taken apart as `decomp_table` says: the core table where there is none. Composites that
        are not in the table stay whole."""
        from umbra.export import decomp_utils
        not_built("ExportedProgram.run_decompositions", decompose_custom_triton_ops=(decompose_custom_triton_ops, False))
        table = decomp_utils.CustomDecompTable() if decomp_table is None else decomp_table
        table = table._with_later_composites() if isinstance(table, decomp_utils.CustomDecompTable) else dict(table)
        functions, own = decomp_utils.split_table(table)
        program = self._as_drafted(lambda: self._synchronised().decompose(functions, own, decomp_utils.kept_composites(table)))
        result = ExportedProgram(program, self._example_inputs, *self.call_spec, self._state, self._call_specs)
        _custom_meta.carry_over(result, self.graph_module)
        result._is_draft = self._is_draft
        return result

    def _as_drafted(self, run):
        """What `run()` gives. What a draft calls without knowing what it gives for fakes runs on the example's tensors; the report has said so."""
        return drafted(run, lambda kind, data: None) if self._is_draft else run()

    def _without_composites(self):
        """The program as autograd sees it from below: without writes, and with composites in their parts."""
        program = self._as_drafted(lambda: self._synchronised().decompose({}, [], None))
        return ExportedProgram(program, self._example_inputs, *self.call_spec, self._state, self._call_specs)

    def module(self, check_guards=True):
        """The program as a module to call, train and look into. Inputs are checked in any case; without `check_guards` what does not fit is a RuntimeError."""
        missing = self._program.missing_operators
        if missing:
            raise NotImplementedError(f"the program calls {', '.join(missing)}, which this build does not have")
        return ExportedModule._of(self, check_guards)

    def __call__(self, *args, **kwargs):
        raise RuntimeError("Unable to call ExportedProgram directly. You should use `exported_program.module()` instead.")

    def __str__(self):
        return str(self._synchronised())

    def __repr__(self):
        return str(self)

    def _repr_html_(self):
        """What a notebook shows: the page of `umbra view`, in a frame of its own."""
        page = html.escape(self._program.page(type(self).__name__))
        return f'<iframe srcdoc="{page}" style="width:100%;height:640px;border:1px solid #ccc" title="exported program"></iframe>'

    def __deepcopy__(self, memo):
        program = self._synchronised().copy()
        state = copy.deepcopy(self.state_dict, memo)  # of one memo with the constants: tensors that share memory share it in the copy
        program.set_state(list(state.items()))
        program.set_constants(list(copy.deepcopy(dict(self._program.constants), memo).items()))
        result = ExportedProgram(program, copy.deepcopy(self._example_inputs, memo), *self.call_spec, state, self._call_specs)
        memo[id(self)] = result
        return result

    def _transform_do_not_use(self, *passes):
        """The program after passes over its graph module. What a pass changes in place is changed here too."""
        module = self.graph_module
        for step in passes:
            result = step(module)
            if result is None:
                raise RuntimeError("Pass returned None instead of a PassResult")
            module = result.graph_module
        module.recompile()
        program = self._synchronised().with_graph(module._handle)
        return ExportedProgram(program, self._example_inputs, *self.call_spec, self._state, self._call_specs)

    _transform = _transform_do_not_use

    def _update(self, graph_module, graph_signature, *, state_dict=None, constants=None, verifiers=None):
        """The program with another graph, and a signature that fits it."""
        not_built("ExportedProgram._update", verifiers=(verifiers, None))
        module = copy.deepcopy(graph_module)
        _merge_repeated_items(module.graph)
        module.recompile()
        program = self._synchronised().copy()
        program.set_signature(*describe_signature(graph_signature))
        result = ExportedProgram(program.with_graph(module._handle), self._example_inputs, *self.call_spec,
                                 self._state if state_dict is None else dict(state_dict), self._call_specs)
        if constants is not None:
            result._program.set_constants(list(constants.items()))
        result.graph_module.meta.update(graph_module.meta)
        result._validate()
        return result

    def validate(self):
        """Raises a SpecViolationError where graph, signature and state do not fit together."""
        for verifier in self.verifiers:
            verifier().check(self)

    _validate = validate
