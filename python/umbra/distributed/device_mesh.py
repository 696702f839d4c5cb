"""Machines in a grid, of which there is one: every dimension of the grid has one place."""
import math

import umbra
from umbra.distributed import _group


class DeviceMesh:
    """A grid of processes with names for its dimensions: this process, in as many dimensions as are asked for."""

    def __init__(self, device_type, mesh=None, *, mesh_dim_names=None, backend_override=None, preserve_rank_order=False, _init_backend=True,
                 _rank=None):
        if backend_override is not None or preserve_rank_order:
            raise RuntimeError("torch.distributed.device_mesh.DeviceMesh: options of backends are not in Umbra")
        if _init_backend:
            _enter_world()
        self.device_type = device_type
        self.mesh = umbra.as_tensor(0 if mesh is None else mesh, dtype=umbra.int32, device="cpu")
        self.mesh_dim_names = tuple(mesh_dim_names) if mesh_dim_names else None
        self._rank = _rank or 0
        world_size = _group.get_world_size() if _group.is_initialized() else 1
        if self.mesh.numel() > world_size:
            raise RuntimeError(f"Mesh should not be bigger than default world size {world_size}, but found {self.mesh.numel()} ranks!")
        if self.mesh.numel() != 1:
            raise RuntimeError("torch.distributed.device_mesh.DeviceMesh: meshes of several processes are not in Umbra, which has one")

    @property
    def ndim(self):
        return self.mesh.ndim

    @property
    def shape(self):
        return tuple(self.mesh.shape)

    def size(self, mesh_dim=None):
        return self.mesh.numel() if mesh_dim is None else self.mesh.size(mesh_dim)

    def get_rank(self):
        return self._rank

    def get_local_rank(self, mesh_dim=None):
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(f"Found the DeviceMesh have {self.ndim} dimensions", "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.")
        return 0

    def get_coordinate(self):
        return tuple([0] * self.ndim)

    def get_group(self, mesh_dim=None):
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(f"Found the DeviceMesh have {self.ndim} dimensions", "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1."
                               "If you want to get the list of all the ProcessGroups in the DeviceMesh,"
                               "please use `get_all_groups()` instead.")
        return _group._get_default_group()

    def get_all_groups(self):
        return [_group._get_default_group()] * self.ndim

    def __getitem__(self, names):
        """The part with these dimensions."""
        if not self.mesh_dim_names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (names,) if isinstance(names, str) else tuple(names)
        for name in names:
            if name not in self.mesh_dim_names:
                raise KeyError(f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {list(self.mesh_dim_names)}.")
        return DeviceMesh(self.device_type, umbra.zeros([1] * len(names)), mesh_dim_names=names, _init_backend=False)

    def _flatten(self, mesh_dim_name=None):
        """The whole in one dimension."""
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ())
        return DeviceMesh(self.device_type, [0], mesh_dim_names=(name,) if name else None, _init_backend=False)

    def __eq__(self, other):
        return isinstance(other, DeviceMesh) and (self.device_type, self.shape, self.mesh_dim_names) == (other.device_type, other.shape, other.mesh_dim_names)

    def __hash__(self):
        return hash((self.device_type, self.shape, self.mesh_dim_names))

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def __repr__(self):
        sizes = map(str, self.shape)
        if self.mesh_dim_names:
            shape = "(" + ", ".join(f"{name}={size}" for name, size in zip(self.mesh_dim_names, sizes)) + ")"
        else:
            shape = str(self.shape)
        return f"DeviceMesh({shape}, '{self.device_type}', stride={((),) * self.ndim})"


def _enter_world():
    """Makes the default group where there is none yet: a mesh is one of processes."""
    if not _group.is_initialized():
        _group.init_process_group()


def init_device_mesh(device_type, mesh_shape, *, mesh_dim_names=None, backend_override=None):
    """A grid of this shape of all processes."""
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError("Each mesh_dim_name must be unique.", f"Found repeated mesh_dim_name in mesh_dim_names {mesh_dim_names}")
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError("mesh_shape and mesh_dim_names should have same length!", f"Found len(mesh_dim_names): {len(mesh_dim_names)} and "
                               f"len(mesh_shape):{len(mesh_shape)}.")
    if device_type and not device_type.isalpha():
        raise RuntimeError(f"Device type with index is not supported but got {device_type}. ", "If you maintained a 'torch.device' object, it's recommended to "
                           "pass in 'device.type'.")
    return DeviceMesh(device_type, umbra.arange(math.prod(mesh_shape)).view(mesh_shape), mesh_dim_names=mesh_dim_names, backend_override=backend_override)
