"""Modules of PyTorch as programs of Umbra: `umbra.from_torch(module, args, dynamic_shapes=...)`.

The module runs once, in the user's torch, on tensors that have no data and hand each call of an aten operator to Umbra. PyTorch is imported
here and nowhere else in the package.
"""
from umbra._from_torch import _capture
from umbra.export._trace import capture


def from_torch(module, args, kwargs=None, *, dynamic_shapes=None):
    """An ExportedProgram of a torch.nn.Module. `args`, `kwargs`: example inputs, torch's tensors in containers of any kind. Weights are shared with
    the module, not copied.

        program = umbra.from_torch(torchvision.models.resnet18().eval(), (torch.randn(2, 3, 64, 64),), dynamic_shapes=({0: Dim("batch")},))
    """
    torch = _capture.real_torch()
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"from_torch: expected a torch.nn.Module, got {type(module)}")
    if not isinstance(args, tuple):
        raise TypeError(f"from_torch: expected `args` to be a tuple of example inputs, got {type(args)}")
    bridge = _capture.Bridge(torch)
    given, named = bridge.plain((args, dict(kwargs or {})))
    return capture(_capture.TorchSource(bridge, module), given, named, dynamic_shapes=dynamic_shapes)
