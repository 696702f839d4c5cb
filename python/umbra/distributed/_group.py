"""The world of one process: its groups, and how it is entered and left.

Every group has one member, this process; what several would tell one another is what it has already. Of the backend "fake" a world may have any
number, none of which is there.
"""
import datetime
import enum
import os
import urllib.parse

import umbra
from umbra.distributed._stores import DEFAULT_TIMEOUT, FileStore, HashStore, PrefixStore, Store, TCPStore

_UNINITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."


class Backend(str):
    """The name of a library that processes talk by, in small letters."""
    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, FAKE = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl", "fake"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return str.__new__(cls, name.lower())


class ReduceOp(enum.Enum):
    """How values of several processes become one."""
    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)

    def __str__(self):
        return f"RedOpType.{self.name}"

    def __repr__(self):
        return f"<RedOpType.{self.name}: {self.value}>"


ReduceOp.RedOpType = ReduceOp
reduce_op = ReduceOp    # an old name of it


class Work:
    """What was asked for without waiting: it is done."""
    __module__ = "torch.distributed.distributed_c10d"

    def __init__(self, result=()):
        self._result = list(result)

    def wait(self, timeout=None):
        return True

    def is_completed(self):
        return True

    is_success = is_completed

    def exception(self):
        return None

    def synchronize(self):
        """There is nothing to wait for."""

    def result(self):
        return list(self._result)

    def get_future(self):
        future = umbra.futures.Future()
        future.set_result(self.result())
        return future

    def source_rank(self):
        return 0


class ProcessGroup:
    """Processes that work together: this one."""
    __module__ = "torch.distributed.distributed_c10d"

    def __init__(self, store, rank, size, backend, name, description, ranks):
        self._store, self._rank, self._size, self._backend, self._ranks = store, rank, size, Backend(backend), ranks
        self.group_name, self.group_desc, self.bound_device_id = name, description, None

    def rank(self):
        return self._rank

    def size(self):
        return self._size

    def name(self):
        return str(self._backend)

    def get_group_store(self):
        return self._store

    def barrier(self, *args, **kwargs):
        return Work()

    def allreduce(self, tensors, *args, **kwargs):
        return Work([tensors] if isinstance(tensors, umbra.Tensor) else tensors)

    broadcast = allreduce

    def shutdown(self):
        """Nothing runs."""

    abort = shutdown


class _World:
    """The groups there are, in the order in which they were made."""

    def __init__(self):
        self.groups, self.made = [], 0

    @property
    def default(self):
        return self.groups[0] if self.groups else None


_world = _World()


class _GroupMeta(type):
    @property
    def WORLD(cls):
        """The group of all processes, None as long as there is none."""
        return _world.default


class group(metaclass=_GroupMeta):
    """The group of all processes."""


class GroupMember(metaclass=_GroupMeta):
    """What `new_group` gives a process that is not in the group."""
    NON_GROUP_MEMBER = -100


# ---- what a build has ----

def is_available():
    """Whether there is torch.distributed: for one process."""
    return True


def is_initialized():
    return _world.default is not None


def is_gloo_available():
    return True


def is_nccl_available():
    return False


is_mpi_available = is_ucc_available = is_xccl_available = is_nccl_available


def is_backend_available(backend):
    return backend.lower() in (Backend.GLOO, Backend.FAKE)


def is_torchelastic_launched():
    """Whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def get_default_backend_for_device(device):
    kind = torch_device(device)
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def torch_device(device):
    """The kind of a device or of its name."""
    return umbra.device(device).type


# ---- entering and leaving ----

def _from_environment(name):
    value = os.environ.get(name)
    if value is None:
        raise ValueError(f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, but not set")
    return value


def _rendezvous(init_method, rank, world_size):
    """Store, rank and number of processes, by the method that a URL says."""
    url = urllib.parse.urlparse(init_method)
    if url.scheme == "env":
        rank = int(_from_environment("RANK")) if rank < 0 else rank
        world_size = int(_from_environment("WORLD_SIZE")) if world_size < 0 else world_size
        host, port = _from_environment("MASTER_ADDR"), int(_from_environment("MASTER_PORT"))
        _only_one(world_size)
        return TCPStore(host, port, world_size, True), rank, world_size
    if url.scheme not in ("tcp", "file"):
        raise RuntimeError(f"No rendezvous handler for {url.scheme}://")
    asked = dict(urllib.parse.parse_qsl(url.query))
    rank, world_size = int(asked.get("rank", rank)), int(asked.get("world_size", world_size))
    for name, value in (("rank", rank), ("world size", world_size)):
        if value < 0:
            raise ValueError(f"Error initializing torch.distributed using {url.scheme}:// rendezvous: {name} parameter missing")
    _only_one(world_size)
    if url.scheme == "file":
        return FileStore(url.netloc + url.path, world_size), rank, world_size
    return TCPStore(url.hostname, url.port, world_size, True), rank, world_size


def _only_one(world_size):
    if world_size != 1:
        raise RuntimeError(f"torch.distributed.init_process_group: a world of {world_size} processes is not in Umbra, which has one")


def _check_backend(backend):
    for part in backend.split(","):
        name = part.rpartition(":")[2]
        if name not in Backend.backend_list:
            raise AssertionError(f"Unknown backend type {name}")
        if name not in (Backend.UNDEFINED, Backend.GLOO, Backend.FAKE) and ":" not in backend:
            raise RuntimeError(f"Distributed package doesn't have {name.upper()} built in")


def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, group_name="", pg_options=None,
                       device_id=None, _ranks=None, enable_reconfigure=False):
    """Enters the world. A world of more than this process is refused, but for the backend "fake"."""
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if timeout is not None and not isinstance(timeout, datetime.timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    if device_id is not None and torch_device(device_id) != "cpu" or enable_reconfigure or pg_options is not None or _ranks is not None:
        raise RuntimeError("torch.distributed.init_process_group: options of backends are not in Umbra")
    backend = Backend(backend or Backend.UNDEFINED)
    if store is not None:
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
        if backend != Backend.FAKE:
            _only_one(world_size)
    elif backend == Backend.FAKE:
        store, rank, world_size = HashStore(), max(rank, 0), max(world_size, 1)
    else:
        store, rank, world_size = _rendezvous(init_method or "env://", rank, world_size)
        store.set_timeout(timeout or DEFAULT_TIMEOUT)
    _check_backend(backend)
    _world.groups.append(ProcessGroup(PrefixStore("default_pg", store), rank, world_size, backend, group_name or "0", "default_pg", list(range(world_size))))
    _world.made = 1


def destroy_process_group(group=None):
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    target = group if group is not None else _world.default
    if target is None:
        raise AssertionError("Process group cannot be None")
    if target not in _world.groups:
        raise ValueError("Invalid process group specified")
    if target is _world.default:
        _world.groups.clear()
    else:
        _world.groups.remove(target)


# ---- groups ----

def _get_default_group():
    if _world.default is None:
        raise ValueError(_UNINITIALIZED)
    return _world.default


def _known(group):
    """A group that is asked about, the default one for None."""
    default = _get_default_group()
    if group is None:
        return default
    if group not in _world.groups:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    return group


def _rank_not_in_group(group):
    return group == GroupMember.NON_GROUP_MEMBER


def get_rank(group=None):
    if _rank_not_in_group(group):
        return -1
    return _known(group).rank()


def get_world_size(group=None):
    if _rank_not_in_group(group):
        return -1
    return _known(group).size()


def get_backend(group=None):
    if group is not None and group not in _world.groups:
        raise ValueError("Invalid process group specified")
    return Backend(_known(group)._backend)


def get_backend_config(group=None):
    backend = str(_known(group)._backend)
    if ":" in backend:
        return backend
    kinds = Backend.default_device_backend_map.items() if backend == Backend.UNDEFINED else (("cpu", backend), ("cuda", backend))
    return ",".join(f"{kind}:{name}" for kind, name in kinds)


def get_process_group_ranks(group):
    return list(_known(group)._ranks)


def get_global_rank(group, group_rank):
    ranks = _known(group)._ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_group_rank(group, global_rank):
    ranks = _known(group)._ranks
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_node_local_rank(fallback_rank=None):
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
                       "assuming you are not running in a multi-device context and want the code to run locally instead.")


def get_pg_count():
    return len(_world.groups)


def new_group(ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization=False, group_desc=None, device_id=None, sort_ranks=True):
    """A group of some of the world's processes."""
    default = _get_default_group()
    ranks = list(default._ranks) if ranks is None else sorted(ranks) if sort_ranks else list(ranks)
    if len(ranks) > default.size():
        raise ValueError("the new group's world size should be less or equal to the world size set by init_process_group")
    for rank in ranks:
        if not 0 <= rank < default.size():
            raise ValueError(f"Rank {rank} is out of range. Valid ranks are 0 to {default.size() - 1} (world_size={default.size()})")
    if default.rank() not in ranks:
        if not ranks:
            raise AssertionError("Group rank must be specified for group members")
        return GroupMember.NON_GROUP_MEMBER
    backend = Backend(backend or default._backend)
    _check_backend(backend)
    name = str(_world.made)
    _world.made += 1
    made = ProcessGroup(PrefixStore(name, default.get_group_store()), ranks.index(default.rank()), len(ranks), backend, name, group_desc or "undefined", ranks)
    _world.groups.append(made)
    return made


def new_subgroups_by_enumeration(ranks_per_subgroup_list, timeout=None, backend=None, pg_options=None, group_desc=None):
    """Groups of the given processes, that of this one first."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    made = [new_group(ranks, timeout, backend, pg_options, group_desc=group_desc) for ranks in ranks_per_subgroup_list]
    mine = [member for member in made if not _rank_not_in_group(member)]
    return mine[0] if mine else None, made


def new_subgroups(group_size=None, group=None, timeout=None, backend=None, pg_options=None, group_desc=None):
    """The world in groups of one size, that of this process first."""
    ranks = _known(group)._ranks
    size = group_size or len(ranks)
    if len(ranks) % size:
        raise ValueError(f"The world size ({len(ranks)}) must be divisible by 'group_size={size}'")
    return new_subgroups_by_enumeration([ranks[i:i + size] for i in range(0, len(ranks), size)], timeout, backend, pg_options, group_desc)
