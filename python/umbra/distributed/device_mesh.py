"""Machines in a grid, of which there is one."""


class DeviceMesh:
    """Cannot be made: there is no torch.distributed here. The class is there to be asked for."""

    def __init__(self, *args, **kwargs):
        raise RuntimeError("torch.distributed.device_mesh.DeviceMesh: torch.distributed is not available in Umbra")


def init_device_mesh(*args, **kwargs):
    raise RuntimeError("torch.distributed.device_mesh.init_device_mesh: torch.distributed is not available in Umbra")
