"""Whether a program holds together: its graph, its signature and its state."""
from umbra._C import OpOverload
from umbra._higher_order_ops.dispatch import HigherOrderOperator
from umbra.fx.graph_module import GraphModule
from umbra.export.graph_signature import ConstantArgument, InputKind, OutputKind
from umbra.nn import Parameter


class SpecViolationError(Exception):
    """A program that is none: what is wrong with it."""


def _check_kind(op):
    """Programs call operators, arithmetic on sizes, and switches of modes; other functions have no form in files."""
    is_arithmetic = getattr(op, "__module__", None) in ("_operator", "math", "builtins") or getattr(op, "__name__", "").lstrip("_").startswith("sym_")
    is_switch = getattr(op, "__name__", "") in ("_set_grad_enabled", "_enter_autocast", "_exit_autocast")
    if not (isinstance(op, (OpOverload, HigherOrderOperator)) or is_arithmetic or is_switch):
        raise SpecViolationError(f"Operator '{op}' is not an allowed operator type: (<class 'torch._ops.OpOverload'>, "
                                 "<class 'torch._ops.HigherOrderOperator'>)\n")


class Verifier:
    """Checks programs of the dialect ATEN: graphs without writes."""

    dialect = "ATEN"

    def check(self, ep):
        """Raises a SpecViolationError where the program does not hold together."""
        self.check_graph_module(ep.graph_module)
        self._check_inputs(ep)
        self._check_outputs(ep)

    def check_graph_module(self, gm):
        """Checks a graph, and those of the branches and bodies that it calls."""
        for module in gm.modules():
            if isinstance(module, GraphModule):
                self._check_one(module)

    _check_graph_module = check_graph_module  # its name in PyTorch

    def _check_one(self, gm):
        gm.graph.lint()
        for node in gm.graph.nodes:
            if node.op in ("call_module", "call_method"):
                raise SpecViolationError(f"call_{node.op.removeprefix('call_')} is not valid: got a {'class' if node.op == 'call_module' else 'method'} "
                                         f"'{node.target}'")
            if node.op == "call_function":
                self.check_valid_op(node.target)
                if "val" not in node.meta and node.users:
                    raise SpecViolationError(f"Node.meta {node.name} is missing val field.")

    def check_valid_op(self, op):
        """Raises where an operator may not be in a program of this dialect."""
        _check_kind(op)
        if isinstance(op, OpOverload) and op._schema.is_mutable and not op.name().startswith(("aten::sym_", "prims::")):
            raise SpecViolationError(f"operator '{op}' is not functional")

    @staticmethod
    def _check_inputs(ep):
        specs = ep.graph_signature.input_specs
        inputs = [node.name for node in ep.graph.nodes if node.op == "placeholder"]
        if len(specs) != len(inputs):
            raise SpecViolationError(f"Number of graph inputs ({len(inputs)}) does not match number of inputs in the graph signature ({len(specs)})")
        for spec, name in zip(specs, inputs):
            if not isinstance(spec.arg, ConstantArgument) and spec.arg.name != name:
                raise SpecViolationError(f"Input spec {spec.arg.name} does not match node name {name}")
            if spec.kind is InputKind.PARAMETER and spec.target not in ep.state_dict:
                raise SpecViolationError(f"Parameter {spec.target} is not in the state dict.")
            if spec.kind is InputKind.PARAMETER and not isinstance(ep.state_dict[spec.target], Parameter):
                raise SpecViolationError(f"State dict entry for parameter {spec.target} is not an instance of torch.nn.Parameter.")
            if spec.kind is InputKind.BUFFER and spec.target not in (ep.state_dict if spec.persistent else ep.constants):
                raise SpecViolationError(f"Buffer {spec.target} is not in the {'state dict' if spec.persistent else 'constants dictionary'}.")
            if spec.kind is InputKind.CONSTANT_TENSOR and spec.target not in ep.constants:
                raise SpecViolationError(f"Constant tensor {spec.target} is not in the constants dictionary.")

    @staticmethod
    def _check_outputs(ep):
        output = next(node for node in reversed(ep.graph.nodes) if node.op == "output")
        specs, results = ep.graph_signature.output_specs, output.args[0]
        if len(specs) != len(results):
            raise SpecViolationError(f"Number of output nodes {len(results)} is different from the number of outputs in the signature {len(specs)}")
        buffers = ep.graph_signature.buffers
        for spec, result in zip(specs, results):
            if not isinstance(spec.arg, ConstantArgument) and spec.arg.name != getattr(result, "name", None):
                raise SpecViolationError(f"User output {spec.arg.name} is not in the correct order or is not found in the exported program's user_output list")
            if spec.kind is OutputKind.BUFFER_MUTATION and spec.target not in buffers:
                raise SpecViolationError(f"Buffer output {spec.target} does not point to a buffer that exists.")


class TrainingIRVerifier(Verifier):
    """Checks programs of the dialect TRAINING: they may write."""

    dialect = "TRAINING"

    def check_valid_op(self, op):
        _check_kind(op)


def load_verifier(dialect):
    """The class that checks programs of a dialect."""
    return {kind.dialect: kind for kind in (Verifier, TrainingIRVerifier)}[dialect]
