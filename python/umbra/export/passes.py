"""Passes over whole programs."""
from umbra import _C
from umbra.fx import GraphModule
from umbra.nn import Parameter
from umbra.utils import _pytree as pytree


def move_to_device_pass(ep, location):
    """Moves a program to another device, in place: its state, constants and example inputs, and the devices that its graph names. `location` is a device,
    or says by a device's name where what is there goes ({"cuda:0": "cpu"})."""
    def place(device):
        return _C.device(location.get(str(device), device) if isinstance(location, dict) else location)

    def moved(value):
        if not isinstance(value, _C.Tensor) or value.device == place(value.device):
            return value
        there = value.detach().to(place(value.device))
        return Parameter(there, requires_grad=value.requires_grad) if isinstance(value, Parameter) else there.requires_grad_(value.requires_grad)
    ep.state_dict.update({name: moved(tensor) for name, tensor in ep.state_dict.items()})
    ep._program.set_constants([(name, moved(tensor)) for name, tensor in ep._program.constants])
    if ep.example_inputs is not None:
        ep.example_inputs = pytree.tree_map(moved, ep.example_inputs)
    for module in ep.graph_module.modules():
        if not isinstance(module, GraphModule):
            continue
        for node in module.graph.nodes:
            _move_node(node, place)
            if "val" in node.meta:
                node.meta["val"] = pytree.tree_map(lambda value: _moved_look(value, place), node.meta["val"])
        module.recompile()
    ep.validate()
    return ep


def _move_node(node, place):
    """Devices that a call names; those of operators that take one by position too."""
    if node.kwargs.get("device") is not None:
        node.kwargs = {**node.kwargs, "device": place(_C.device(node.kwargs["device"]))}
    if node.op == "call_function" and any(isinstance(argument, _C.device) for argument in node.args):
        node.args = tuple(place(argument) if isinstance(argument, _C.device) else argument for argument in node.args)


def _moved_look(value, place):
    """What stands for a tensor, on its new device."""
    if not isinstance(value, _C.Tensor) or value.device == place(value.device):
        return value
    mode = getattr(value, "fake_mode", None)
    if mode is None:
        return value.to(place(value.device))
    with mode:
        return value.to(place(value.device))
