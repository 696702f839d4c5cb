"""ExportedProgram: a program captured whole, and the module it can be made into again."""
import collections
import copy
import html
import inspect
import io
import warnings

from umbra import _C
from umbra._options import not_built
from umbra.export import _tree
from umbra.export.graph_signature import argument, read_signature
from umbra.fx.graph_module import GraphModule
from umbra.nn import Parameter
from umbra.serialization import save
from umbra.utils import _pytree as pytree


class ValueRanges(collections.namedtuple("ValueRanges", "lower upper")):
    """The least and the most that a size may be."""
    __slots__ = ()

    def __repr__(self):
        lower = "-int_oo" if self.lower <= -2**127 else self.lower
        return f"VR[{lower}, {'int_oo' if self.upper is None else self.upper}]"


class Symbol(str):
    """The name of a size: "s77"."""
    name = property(str)

    def __repr__(self):
        return str(self)


class ModuleCallSignature(collections.namedtuple("ModuleCallSignature", "inputs outputs in_spec out_spec forward_arg_names")):
    """How a module was called: the trees of its arguments and of its result."""
    __slots__ = ()


class ModuleCallEntry(collections.namedtuple("ModuleCallEntry", "fqn signature")):
    __slots__ = ()


class CallSpec(collections.namedtuple("CallSpec", "in_spec out_spec")):
    __slots__ = ()


class ExportedModule(GraphModule):
    """A program as a module: inputs are checked, weights are attributes, what it writes is written."""

    @classmethod
    def _of(cls, program):
        self = cls._wrap(program._program.unlift())
        object.__setattr__(self, "_program", program)
        names = program._argument_names()
        in_spec = program.call_spec.in_spec
        keywords = list(in_spec.children_specs[1].context) if in_spec.num_children == 2 else []
        self._graph._set_pytree(names, keywords, True)
        self._in_spec, self._out_spec = in_spec, program.call_spec.out_spec
        for name in program.graph_signature.non_persistent_buffers:
            path, _, leaf = name.rpartition(".")
            self.get_submodule(path)._non_persistent_buffers_set.add(leaf)
        return self

    def forward(self, *args, **kwargs):
        program = self._program
        leaves = program._flatten_inputs(args, kwargs)
        program._program.check_inputs(leaves)
        self._update_handle()
        return pytree.tree_unflatten(self._handle.run_with_origins(leaves), program.call_spec.out_spec)

    def train(self, mode=True):
        raise NotImplementedError("Calling train() is not supported yet.")

    def eval(self):
        raise NotImplementedError("Calling eval() is not supported yet.")

    def __deepcopy__(self, memo):
        result = super().__deepcopy__(memo)
        object.__setattr__(result, "_program", self._program)
        result._graph._set_pytree(self._program._argument_names(), list(self._in_spec.children_specs[1].context), True)
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


class ExportedProgram:
    """A graph, what its inputs and outputs mean, its weights, and the ranges of its sizes."""

    def __init__(self, program, example_inputs=None, in_spec=None, out_spec=None, state=None, call_specs=None):
        self._program = program
        self._call_specs = call_specs or {}  # trees of kept calls, where the library's own description would lose classes
        self._example_inputs = example_inputs
        self.call_spec = CallSpec(in_spec or _tree.restore(program.in_spec), out_spec or _tree.restore(program.out_spec))
        self._graph_module = GraphModule._wrap(program.graph_module)
        self._state = state

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

    @property
    def graph_module(self):
        return self._graph_module

    @property
    def graph(self):
        return self._graph_module.graph

    @property
    def graph_signature(self):
        return read_signature(self._program, {node.name: node.meta.get("val") for node in self.graph.nodes})

    @property
    def state_dict(self):
        if self._state is None:
            kinds = {target: kind for kind, _, target, _, _ in self._program.inputs}
            self._state = collections.OrderedDict(
                (name, tensor if kinds.get(name) != "PARAMETER" or isinstance(tensor, Parameter)
                 else Parameter(tensor.detach(), requires_grad=tensor.requires_grad)) for name, tensor in self._program.state)
        return self._state

    @property
    def constants(self):
        return dict(self._program.constants)

    tensor_constants = constants

    @property
    def range_constraints(self):
        return {Symbol(expression): ValueRanges(lower, upper) for expression, lower, upper in self._program.ranges}

    @property
    def example_inputs(self):
        return self._example_inputs

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
            try:
                if spec.num_leaves != in_spec.num_leaves:
                    raise ValueError
                return in_spec.flatten_up_to((args, kwargs))
            except ValueError:
                raise ValueError(f"Trying to flatten user inputs with exported input tree spec: \n{in_spec}\nbut actually got inputs with tree spec of: "
                                 f"\n{spec}.\nPlease check that the inputs have the same number and type of args and kwargs as the ones you used when "
                                 "tracing.") from None
        return leaves

    def run_decompositions(self, decomp_table=None, decompose_custom_triton_ops=False):
        """The program without writes, and with operators taken apart as `decomp_table` says: the core table where there is none. Composites that
        are not in the table stay whole."""
        from umbra.export import decomp_utils
        not_built("ExportedProgram.run_decompositions", decompose_custom_triton_ops=(decompose_custom_triton_ops, False))
        table = decomp_utils.CustomDecompTable() if decomp_table is None else dict(decomp_table)
        functions, own = decomp_utils.split_table(table)
        program = self._program.decompose(functions, own, decomp_utils.kept_composites(table))
        return ExportedProgram(program, self._example_inputs, *self.call_spec, self._state, self._call_specs)

    def module(self, check_guards=True):
        """The program as a module to call, train and look into."""
        not_built("ExportedProgram.module", check_guards=(check_guards, True))
        missing = self._program.missing_operators
        if missing:
            raise NotImplementedError(f"the program calls {', '.join(missing)}, which this build does not have")
        return ExportedModule._of(self)

    def __call__(self, *args, **kwargs):
        raise RuntimeError("Unable to call ExportedProgram directly. You should use `exported_program.module()` instead.")

    def __str__(self):
        return str(self._program)

    def __repr__(self):
        return str(self)

    def _repr_html_(self):
        """What a notebook shows: the page of `umbra view`, in a frame of its own."""
        page = html.escape(self._program.page(type(self).__name__))
        return f'<iframe srcdoc="{page}" style="width:100%;height:640px;border:1px solid #ccc" title="exported program"></iframe>'

    def __deepcopy__(self, memo):
        result = ExportedProgram(self._program.copy(), copy.deepcopy(self._example_inputs, memo), *self.call_spec, call_specs=self._call_specs)
        memo[id(self)] = result
        return result

    def validate(self):
        """Raises a SpecViolationError where graph, signature and state do not fit together."""
        for verifier in self.verifiers:
            verifier().check(self)
