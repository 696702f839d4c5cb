"""What each input and output of an exported graph is to the program's caller."""
import dataclasses
import types
from enum import Enum, auto
from typing import Any, List, Optional, Union


@dataclasses.dataclass
class TensorArgument:
    """A tensor, by the name of its node."""
    name: str


@dataclasses.dataclass
class TokenArgument:
    """A token that keeps effects in order, by the name of its node."""
    name: str


@dataclasses.dataclass
class SymIntArgument:
    """A number that the program computes or is given, by the name of its node."""
    name: str


@dataclasses.dataclass
class SymFloatArgument:
    """A float that the program computes or is given, by the name of its node."""
    name: str


@dataclasses.dataclass
class SymBoolArgument:
    """A truth value that the program computes or is given, by the name of its node."""
    name: str


@dataclasses.dataclass
class ConstantArgument:
    """A value that is the same in all calls."""
    name: str
    value: Any


@dataclasses.dataclass
class CustomObjArgument:
    """An object of a class of TorchScript's. No program has one here; signatures of others may."""
    name: str
    class_fqn: str
    fake_val: Any = None


ArgumentSpec = Union[TensorArgument, SymIntArgument, SymFloatArgument, SymBoolArgument, ConstantArgument, TokenArgument]


class InputKind(Enum):
    """What an input of the graph is to the caller."""
    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


@dataclasses.dataclass
class InputSpec:
    """An input of the graph: its kind, its name, and what it stands for."""
    kind: InputKind
    arg: ArgumentSpec
    target: Optional[str]
    persistent: Optional[bool] = None

    def __post_init__(self):
        if self.kind is InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")

    def __str__(self):
        target = "" if self.target is None else f" target='{self.target}'"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


class OutputKind(Enum):
    """What an output of the graph is to the caller."""
    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


@dataclasses.dataclass
class OutputSpec:
    """An output of the graph: its kind, its name, and what it is written to."""
    kind: OutputKind
    arg: ArgumentSpec
    target: Optional[str]

    def __str__(self):
        return f"{self.arg.name}: {self.kind.name}" + ("" if self.target is None else f" target='{self.target}'")


@dataclasses.dataclass
class ExportBackwardSignature:
    """Which outputs are the loss and the gradients."""
    gradients_to_parameters: dict
    gradients_to_user_inputs: dict
    loss_output: str


def _targets(specs):
    """What inputs or outputs stand for, by name: to read, since the specs are what counts."""
    return types.MappingProxyType({spec.arg.name: spec.target for spec in specs})


@dataclasses.dataclass
class ExportGraphSignature:
    """What each input and output of the graph is to the program's caller."""
    input_specs: List[InputSpec]
    output_specs: List[OutputSpec]

    def _inputs(self, kind):
        return [spec for spec in self.input_specs if spec.kind is kind]

    def _outputs(self, kind):
        return [spec for spec in self.output_specs if spec.kind is kind]

    @property
    def parameters(self):
        return tuple(spec.target for spec in self._inputs(InputKind.PARAMETER))

    @property
    def buffers(self):
        return tuple(spec.target for spec in self._inputs(InputKind.BUFFER))

    @property
    def non_persistent_buffers(self):
        return tuple(spec.target for spec in self._inputs(InputKind.BUFFER) if not spec.persistent)

    @property
    def lifted_tensor_constants(self):
        return tuple(spec.target for spec in self._inputs(InputKind.CONSTANT_TENSOR))

    @property
    def user_inputs(self):
        return tuple(spec.arg.value if isinstance(spec.arg, ConstantArgument) else spec.arg.name for spec in self._inputs(InputKind.USER_INPUT))

    @property
    def user_outputs(self):
        return tuple(spec.arg.value if isinstance(spec.arg, ConstantArgument) else spec.arg.name
                     for spec in self.output_specs if spec.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT))

    @property
    def inputs_to_parameters(self):
        return _targets(self._inputs(InputKind.PARAMETER))

    @property
    def inputs_to_buffers(self):
        return _targets(self._inputs(InputKind.BUFFER))

    @property
    def inputs_to_lifted_tensor_constants(self):
        return _targets(self._inputs(InputKind.CONSTANT_TENSOR))

    @property
    def buffers_to_mutate(self):
        return _targets(self._outputs(OutputKind.BUFFER_MUTATION))

    @property
    def user_inputs_to_mutate(self):
        return _targets(self._outputs(OutputKind.USER_INPUT_MUTATION))

    @property
    def parameters_to_mutate(self):
        return _targets(self._outputs(OutputKind.PARAMETER_MUTATION))

    @property
    def lifted_custom_objs(self):
        return tuple(spec.target for spec in self._inputs(InputKind.CUSTOM_OBJ))

    @property
    def inputs_to_lifted_custom_objs(self):
        return _targets(self._inputs(InputKind.CUSTOM_OBJ))

    @property
    def input_tokens(self):
        return tuple(spec.arg.name for spec in self._inputs(InputKind.TOKEN))

    @property
    def output_tokens(self):
        return tuple(spec.arg.name for spec in self._outputs(OutputKind.TOKEN))

    @property
    def assertion_dep_token(self):
        return None

    def replace_all_uses(self, old, new):
        """Gives the value that was called `old` another name, wherever the signature has it."""
        for name in (old, new):
            if not isinstance(name, str):
                raise AssertionError(f"expected names of values, got {type(name)}")
        self._rename((*self.input_specs, *self.output_specs), old, new)

    def get_replace_hook(self, replace_inputs=False):
        """A hook for a graph's node replacements that keeps the signature's names of outputs, and of inputs, in step."""
        def replace(old, new, user):
            if user.op == "output":
                self._rename(self.output_specs, old.name, new)
            if replace_inputs and old.op == "placeholder":
                self._rename(self.input_specs, old.name, new)
        return replace

    @staticmethod
    def _rename(specs, old, new):
        for spec in specs:
            if not isinstance(spec.arg, ConstantArgument) and spec.arg.name == old:
                spec.arg.name = new

    @property
    def backward_signature(self):
        losses = self._outputs(OutputKind.LOSS_OUTPUT)
        if not losses:
            return None
        return ExportBackwardSignature({s.arg.name: s.target for s in self._outputs(OutputKind.GRADIENT_TO_PARAMETER)},
                                       {s.arg.name: s.target for s in self._outputs(OutputKind.GRADIENT_TO_USER_INPUT)}, losses[0].arg.name)

    def __str__(self):
        def text(spec):
            line = f"{spec.arg.name}: {spec.kind.name}"
            if spec.target is not None:
                line += f" target={spec.target!r}"
            if getattr(spec, "persistent", None) is not None:
                line += f" persistent={spec.persistent}"
            return line
        return "\n".join(["", "# inputs", *map(text, self.input_specs), "", "# outputs", *(list(map(text, self.output_specs)) or [""]), ""])


def argument(name, value, node_value):
    """What an input or output is: the node of a name, or a plain value."""
    from umbra._C import SymBool, SymFloat, SymInt
    if not name:
        return ConstantArgument("", value)
    kinds = {SymInt: SymIntArgument, SymFloat: SymFloatArgument, SymBool: SymBoolArgument}
    return kinds.get(type(node_value), TensorArgument)(name)


def read_signature(program, values):
    """The signature of a C++ program; `values` has what each node stands for."""
    inputs = []
    for kind, name, target, persistent, value in program.inputs:
        if kind == "CONSTANT_INPUT":
            inputs.append(InputSpec(InputKind.USER_INPUT, ConstantArgument(name, value), None))
        elif kind == "TOKEN":
            inputs.append(InputSpec(InputKind.TOKEN, TokenArgument(name), None))
        else:
            inputs.append(InputSpec(InputKind[kind], argument(name, value, values.get(name)), target or None,
                                    persistent if kind == "BUFFER" else None))
    outputs = [OutputSpec(OutputKind[kind], TokenArgument(name) if kind == "TOKEN" else argument(name, value, values.get(name)), target or None)
               for kind, name, target, value in program.outputs]
    return ExportGraphSignature(inputs, outputs)


def describe_signature(signature):
    """A signature as the library takes it: (inputs, outputs)."""
    inputs = []
    for spec in signature.input_specs:
        fixed = isinstance(spec.arg, ConstantArgument)
        inputs.append(("CONSTANT_INPUT" if fixed else spec.kind.name, spec.arg.name, spec.target or "", spec.persistent is not False,
                       spec.arg.value if fixed else None))
    outputs = []
    for spec in signature.output_specs:
        fixed = isinstance(spec.arg, ConstantArgument)
        outputs.append((spec.kind.name, "" if fixed else spec.arg.name, spec.target or "", spec.arg.value if fixed else None))
    return inputs, outputs
