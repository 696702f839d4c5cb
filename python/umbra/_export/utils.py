"""Questions about nodes of exported programs."""
from umbra.utils._pytree import register_dataclass as register_dataclass_as_pytree_node  # noqa: F401


def is_param(program, node):
    return node.name in program.graph_signature.inputs_to_parameters


def get_param(program, node):
    name = program.graph_signature.inputs_to_parameters.get(node.name)
    return None if name is None else program.state_dict[name]


def is_buffer(program, node):
    return node.name in program.graph_signature.inputs_to_buffers


def get_buffer(program, node):
    name = program.graph_signature.inputs_to_buffers.get(node.name)
    if name is None:
        return None
    return program.constants[name] if name in program.graph_signature.non_persistent_buffers else program.state_dict[name]


def is_lifted_tensor_constant(program, node):
    return node.name in program.graph_signature.inputs_to_lifted_tensor_constants


def get_lifted_tensor_constant(program, node):
    name = program.graph_signature.inputs_to_lifted_tensor_constants.get(node.name)
    return None if name is None else program.constants[name]
