"""save and load: any object that pickle can write, with tensors beside it, in the files of torch.save.

Unless it is told that a file can be trusted (`weights_only=False`), loading runs nothing that a file holds: it knows the few names that files
of tensors need and those that the user allows, and refuses every other by name.
"""
import contextlib
import copyreg
import enum
import io
import os
import pickle
import threading
import warnings
from typing import Callable, Union

import umbra
from umbra import _C, _checkpoint, _weights_only_unpickler

DEFAULT_PROTOCOL = 2
MAP_PRIVATE, MAP_SHARED = 2, 1
MAP_LOCATION = Union[Callable, umbra.device, str, dict, None]  # what `load` takes for it

_TRUST = ("In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to `True`. Re-running `torch.load` "
          "with `weights_only` set to `False` will likely succeed, but it can result in arbitrary code execution. Do it only if you got the file "
          "from a trusted source.")


class _SerializationLocal(threading.local):
    skip_data = False
    materialize_fake_tensors = False
    checks_of_data = None  # a list, where storages are filled after the pickle is read: what is to be called then


_serialization_tls = _SerializationLocal()


# ---- settings ----

class LoadEndianness(enum.Enum):
    """The byte order of a file that does not say."""
    NATIVE, LITTLE, BIG = 1, 2, 3


def _config():
    from umbra.utils.serialization import config
    return config


def get_default_load_endianness():
    return _config().load.endianness


def set_default_load_endianness(endianness):
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _config().load.endianness = endianness


def get_crc32_options():
    return _config().save.compute_crc32


def set_crc32_options(compute_crc32):
    """Whether files need checksums. They cost little, and are written in any case."""
    _config().save.compute_crc32 = compute_crc32


def get_default_mmap_options():
    return _config().load.mmap_flags


class set_default_mmap_options:
    """How `load(mmap=True)` maps files: what is written to the tensors stays in memory (MAP_PRIVATE) or goes to the file (MAP_SHARED)."""

    def __init__(self, flags):
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(f"Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}")
        self._before, _config().load.mmap_flags = _config().load.mmap_flags, flags

    def __enter__(self):
        return None

    def __exit__(self, *exception):
        _config().load.mmap_flags = self._before


@contextlib.contextmanager
def skip_data(materialize_fake_tensors=False):
    """Inside, `save` writes zeros for the bytes of tensors, and `load` leaves them out: the rest of a file is made first, or read alone.

    With `materialize_fake_tensors`, fake tensors are written as well, as tensors with data.
    """
    local = _serialization_tls
    before = local.skip_data, local.materialize_fake_tensors
    local.skip_data, local.materialize_fake_tensors = True, materialize_fake_tensors
    try:
        yield
    finally:
        local.skip_data, local.materialize_fake_tensors = before


# ---- names that are safe to load ----

def add_safe_globals(safe_globals):
    """From now on `load(weights_only=True)` makes and calls these classes and functions, or (class, "its.full.name") pairs."""
    _weights_only_unpickler._add_safe_globals(safe_globals)


def get_safe_globals():
    return _weights_only_unpickler._get_safe_globals()


def clear_safe_globals():
    _weights_only_unpickler._clear_safe_globals()


def get_unsafe_globals_in_checkpoint(f):
    """The names in a file of `save`, at a path or in anything with `read` and `seek`, that `load(weights_only=True)` would refuse."""
    with contextlib.ExitStack() as scope:
        file = scope.enter_context(open(f, "rb")) if isinstance(f, (str, os.PathLike)) else f
        if not _is_zipfile(file):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        archive = _checkpoint.ArchiveReader(file)
        if archive.has("constants.pkl"):
            raise ValueError("Expected input to be a checkpoint returned by torch.save but got a torchscript checkpoint")
        return _weights_only_unpickler.unsafe_names(archive.read("data.pkl"))


class safe_globals:
    """Allows classes and functions in a `with` block."""

    def __init__(self, safe_globals):
        self.safe_globals = safe_globals

    def __enter__(self):
        add_safe_globals(self.safe_globals)

    def __exit__(self, *exception):
        _weights_only_unpickler._remove_safe_globals(self.safe_globals)


# ---- where storages are ----

_package_registry = []


def register_package(priority, tagger, deserializer):
    """`tagger(storage)` names the place of a storage, `deserializer(storage, place)` brings it there; each gives None for what it does not know."""
    _package_registry.append((priority, tagger, deserializer))
    _package_registry.sort(key=lambda item: item[0])


def location_tag(storage):
    for _, tagger, _ in _package_registry:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError("don't know how to determine data location of torch.storage.UntypedStorage")


def default_restore_location(storage, location):
    """A storage at the place that a name says."""
    for _, _, deserializer in _package_registry:
        result = deserializer(storage, location)
        if result is not None:
            return result
    raise RuntimeError(f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {location})")


def _restore_cuda(_, location):
    if location.startswith("cuda"):
        raise RuntimeError("Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a CPU-only "
                           "machine, please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU.")


register_package(10, lambda storage: "cpu" if storage.device.type == "cpu" else None, lambda storage, location: storage if location == "cpu" else None)
register_package(20, lambda storage: None, _restore_cuda)
register_package(22, lambda storage: "meta" if storage.device.type == "meta" else None,
                 lambda storage, location: umbra.UntypedStorage(storage.nbytes(), device="meta") if location == "meta" else None)


class _Restorer:
    """Gives a storage at its place here, from what `map_location` says and its place in the file."""

    def __init__(self, map_location):
        self._map_location = map_location

    def place(self, location):
        """The name of the place, for a place in the file; a function that is given storages has no say in it."""
        mapped = self._map_location
        if isinstance(mapped, dict):
            place = mapped.get(location, location)
            if not isinstance(place, str):
                raise TypeError(f"map_location gives names of places by names of places, got {type(place).__name__} for {location}")
            return place
        if isinstance(mapped, (str, bytes, umbra.device)):
            return mapped.decode() if isinstance(mapped, bytes) else str(mapped)
        return location

    def __call__(self, storage, location):
        named = self._map_location is None or isinstance(self._map_location, (dict, str, bytes, umbra.device))
        result = None if named else self._map_location(storage, location)
        if result is not None and not umbra.is_storage(result):
            raise TypeError(f"map_location gives a storage or None, got {type(result).__name__}")
        return default_restore_location(storage, self.place(location)) if result is None else result


class StorageType:
    """Stands for a class of storages while a file is read."""

    def __init__(self, name):
        self.dtype = umbra.storage._STORAGE_TYPES[name]

    def __str__(self):
        return f"StorageType(dtype={self.dtype})"


def _get_layout(name):
    for value in vars(umbra).values():
        if isinstance(value, umbra.layout) and str(value) == name:
            return value
    raise KeyError(name)


copyreg.pickle(umbra.layout, lambda layout: (_get_layout, (str(layout),)))


# ---- save ----

def save(obj, f, pickle_module=pickle, pickle_protocol=DEFAULT_PROTOCOL, _use_new_zipfile_serialization=True, _disable_byteorder_record=False):
    """Writes `obj`, and the tensors in it, to a path or to anything with `write`. Tensors that share memory share it in the file.

        torch.save({"model": model.state_dict(), "step": 3}, "checkpoint.pt")

    A file at a path is replaced when the new one is whole, not before.
    """
    is_path = isinstance(f, (str, os.PathLike))
    if not is_path and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if not _use_new_zipfile_serialization:
        if _serialization_tls.skip_data:
            raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")

        def write(file):
            _checkpoint.write_stream(file, obj, pickle_module, pickle_protocol)
    else:
        data, storages = _checkpoint.pickled(obj, pickle_module, pickle_protocol)
        root = os.path.splitext(os.path.basename(os.fspath(f)))[0] if is_path else "archive"

        def write(file):
            _checkpoint.write_archive(file, root or "archive", data, storages, byte_order=not _disable_byteorder_record,
                                      alignment=_config().save.storage_alignment, skip_data=_serialization_tls.skip_data)
    if is_path:
        _write_path(os.fspath(f), write)
    else:
        _write_object(f, write)
        if hasattr(f, "flush"):
            f.flush()


def _write_object(target, write):
    """An archive is written at places that are looked up; what cannot say where it stands gets it whole."""
    try:
        target.seek(target.tell())
    except (AttributeError, OSError, NotImplementedError):
        whole = io.BytesIO()
        write(whole)
        target.write(whole.getvalue())
    else:
        write(target)


def _write_path(path, write):
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    if os.path.lexists(path) and (os.path.islink(path) or not os.path.isfile(path)):  # a device or a link keeps its place
        with open(path, "wb") as file:
            return write(file)
    beside = f"{path}.{os.getpid()}.{threading.get_ident()}.part"
    try:
        with open(beside, "xb") as file:
            write(file)
        os.replace(beside, path)
    except BaseException:
        if os.path.exists(beside):
            os.unlink(beside)
        raise


# ---- load ----

def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args):
    """What `save` wrote to a path or to anything with `read` and `seek`.

    `weights_only`: whether files may hold nothing but tensors, plain containers and what `add_safe_globals` allows; it is True unless it is said
    otherwise, or a `pickle_module` is given. Only a trusted file should be loaded with False: a pickle can call any function.
    `map_location`: where tensors go: a device, a dict of places by places, or a function of a storage and its place. `mmap`: tensors are parts of
    the file at a path, read when they are used. Inside a FakeTensorMode tensors are fake.
    """
    weights_only = _wants_weights_only(weights_only, pickle_module)
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if weights_only and pickle_load_args:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
    options = {"encoding": "utf-8", **pickle_load_args}
    mmap = _config().load.mmap if mmap is None else mmap
    if isinstance(f, (str, os.PathLike)):
        if os.fspath(f).endswith(".safetensors"):
            return _load_safetensors(os.fspath(f), map_location)
        with open(f, "rb") as file:
            return _load_file(file, os.fspath(f), map_location, pickle_module, weights_only, mmap, options)
    try:
        f.seek(f.tell())
    except (io.UnsupportedOperation, AttributeError) as error:
        raise type(error)(f"{error}. You can only torch.load from a file that is seekable. Please pre-load the data into a buffer like io.BytesIO and "
                          "try to load from it instead.") from None
    file = f if hasattr(f, "seekable") else _SaysSeekable(f)
    return _load_file(file, None, map_location, pickle_module, weights_only, mmap, options)


class _SaysSeekable:
    """A file that can be read and sought, and does not say so, which readers of archives ask."""

    def __init__(self, file):
        self._file = file

    def seekable(self):
        return True

    def __getattr__(self, name):
        return getattr(self._file, name)


def _wants_weights_only(weights_only, pickle_module):
    def is_set(name):
        return os.environ.get(name, "0").lower() in ("1", "y", "yes", "true")
    forced, unforced = is_set("TORCH_FORCE_WEIGHTS_ONLY_LOAD"), is_set("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    if forced and unforced:
        raise RuntimeError("Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both were set.")
    if forced:
        return True
    if weights_only is None and unforced:
        warnings.warn("Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the`weights_only` argument was not explicitly passed to "
                      "`torch.load`, forcing weights_only=False.", stacklevel=3)
        return False
    return pickle_module is None if weights_only is None else weights_only


def _load_safetensors(path, map_location):
    if isinstance(map_location, dict) or callable(map_location):
        kind = "dict" if isinstance(map_location, dict) else "callable"
        raise RuntimeError(f"Loading safetensors file with {kind} map_location is not supported. Use a device string or torch.device instead.")
    from umbra import safetensors
    tensors = safetensors.load_file(path)
    return tensors if map_location is None else {name: tensor.to(map_location) for name, tensor in tensors.items()}


def _is_zipfile(file):
    """Whether an archive begins where a file stands."""
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    return head == b"PK\x03\x04"


def _load_file(file, path, map_location, pickle_module, weights_only, mmap, options):
    start = file.tell()
    if _is_zipfile(file):
        archive = _checkpoint.ArchiveReader(file if start == 0 else io.BytesIO(file.read()))
        if archive.has("constants.pkl"):
            file.seek(start)
            return _load_script(file, weights_only, map_location)
        if mmap and path is None:
            raise ValueError("f must be a file path in order to use the mmap argument")
        read = _ArchiveLoad(archive, _Restorer(map_location), path if mmap else None).load
    elif mmap:
        name = f"{path}, " if path is not None else ""
        raise RuntimeError(f"mmap can only be used with files saved with `torch.save({name}_use_new_zipfile_serialization=True), please torch.save your "
                           "checkpoint with this option in order to use mmap.")
    else:
        read = _StreamLoad(file, _Restorer(map_location)).load
    if not weights_only:
        return read(pickle_module or pickle, options)
    try:
        return read(None, options)
    except pickle.UnpicklingError as error:
        raise pickle.UnpicklingError(_refusal(str(error))) from None


def _load_script(file, weights_only, map_location):
    warnings.warn("'torch.load' received a zip file that looks like a TorchScript archive dispatching to 'torch.jit.load' (call 'torch.jit.load' "
                  "directly to silence this warning)", UserWarning, stacklevel=4)
    if weights_only:
        raise RuntimeError(f"Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. {_TRUST}")
    from umbra.jit import load as load_script
    return load_script(file, map_location)


def _refusal(message):
    """Why a file was not loaded, and what to do."""
    documentation = ("\n\nCheck the documentation of torch.load to learn more about types accepted by default with weights_only "
                     "https://pytorch.org/docs/stable/generated/torch.load.html.")
    if "was not an allowed global by default" in message:
        return ("Weights only load failed. This file can still be loaded, to do so you have two options, \033[1mdo those steps only if you trust the "
                f"source of the checkpoint\033[0m. \n\t(1) {_TRUST}\n\t(2) Alternatively, to load with `weights_only=True` please check the recommended "
                f"steps in the following error message.\n\tWeightsUnpickler error: {message}{documentation}")
    return f"Weights only load failed. {_TRUST}\nWeightsUnpickler error: \n\n{message}{documentation}"


def _unpickler(file, pickle_module, persistent_load, options):
    if pickle_module is not None:
        return _checkpoint.unpickler(pickle_module, file, persistent_load, **options)
    made = _weights_only_unpickler.Unpickler(file, **options)
    made.persistent_load = persistent_load
    return made


class _Load:
    """Gives the unpickler storages, each of them once."""

    def __init__(self, restore):
        self._restore, self._storages = restore, {}

    def storage(self, saved):
        """The storage that a pickle describes."""
        kind, key, location, count = (part.decode("ascii") if isinstance(part, bytes) else part for part in saved[1:5])
        dtype = umbra.uint8 if kind is umbra.UntypedStorage else getattr(kind, "dtype", None)
        if not isinstance(dtype, umbra.dtype) or not isinstance(key, str) or type(count) is not int or count < 0:
            raise pickle.UnpicklingError(f"not the description of a storage: {saved!r}")
        nbytes = count * dtype.itemsize
        if key not in self._storages:
            self._storages[key] = self._make(key, nbytes, dtype, location), dtype
        storage, _ = self._storages[key]
        if storage.nbytes() != nbytes:
            raise pickle.UnpicklingError(f"the storage {key} has {storage.nbytes()} bytes in one place of the file and {nbytes} in another")
        return umbra.storage.TypedStorage(wrap_storage=storage, dtype=dtype)

    def _make(self, key, nbytes, dtype, location):
        if _C._active_fake_mode() is not None:
            return umbra.empty(nbytes, dtype=umbra.uint8, device=self._restore.place(location)).untyped_storage()
        return self._restore(self._read(key, nbytes, dtype), location)


class _ArchiveLoad(_Load):
    """Reads an archive; `mapped`: the path whose memory the tensors share."""

    def __init__(self, archive, restore, mapped):
        super().__init__(restore)
        self._archive = archive
        self._mapped = None if mapped is None else _map(mapped)
        self._swap = _byte_order(archive) == "big"

    def load(self, pickle_module, options):
        return _unpickler(io.BytesIO(self._archive.read("data.pkl")), pickle_module, self._described, options).load()

    def _described(self, saved):
        if not isinstance(saved, tuple) or len(saved) != 5 or saved[0] not in ("storage", b"storage"):
            raise pickle.UnpicklingError(f"Unknown typename for persistent_load, expected 'storage' but got {saved!r}")
        return self.storage(saved)

    def _read(self, key, nbytes, dtype):
        name = f"data/{key}"
        if self._archive.size(name) != nbytes:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: it has {self._archive.size(name)} bytes, and tensors need {nbytes}")
        if self._mapped is not None and nbytes:
            start = self._archive.offset(name)
            if start + nbytes > len(self._mapped):
                raise RuntimeError(f"PytorchStreamReader failed reading file {name}: it ends behind the end of the file")
            storage = umbra.frombuffer(self._mapped, dtype=umbra.uint8, offset=start, count=nbytes).untyped_storage()
        else:
            storage = umbra.UntypedStorage(nbytes)
            if nbytes and not _serialization_tls.skip_data:
                self._archive.read_into(name, memoryview(storage._buffer()))
        if self._swap:
            _swap_bytes(storage, dtype)
        return storage


def _map(path):
    import mmap
    shared = get_default_mmap_options() == MAP_SHARED
    with open(path, "r+b" if shared else "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)


def _byte_order(archive):
    """The order that an archive's numbers have. Umbra runs on little-endian machines."""
    if not archive.has("byteorder"):
        return "big" if get_default_load_endianness() == LoadEndianness.BIG else "little"
    order = archive.read("byteorder").decode(errors="replace")
    if order not in ("little", "big"):
        raise ValueError(f"Unknown endianness type: {order}")
    return order


def _swap_bytes(storage, dtype):
    size = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    if size > 1:
        bytes_of = umbra.storage._flat(storage, umbra.uint8).view(-1, size)
        bytes_of.copy_(bytes_of.flip(1))


class _StreamLoad(_Load):
    """Reads a file of the old format, whose storages come after the pickle."""

    def __init__(self, file, restore):
        super().__init__(restore)
        self._file, self._parts = file, {}

    def load(self, pickle_module, options):
        def next_pickle():
            return _unpickler(self._file, pickle_module, self._described, options).load()

        _checkpoint.read_stream_head(next_pickle)
        before, _serialization_tls.checks_of_data = _serialization_tls.checks_of_data, []
        try:
            result = next_pickle()
            checks = _serialization_tls.checks_of_data
        finally:
            _serialization_tls.checks_of_data = before
        for key in next_pickle():
            key = key.decode("ascii") if isinstance(key, bytes) else key
            if key not in self._storages:
                raise RuntimeError(f"the file has a storage {key!r} that no tensor has")
            _checkpoint.fill_from_stream(self._file, *self._storages[key])
        for check in checks:
            check()
        return result

    def _described(self, saved):
        if not isinstance(saved, tuple) or len(saved) < 2:
            raise pickle.UnpicklingError(f"Unknown saved id: {saved!r}")
        if saved[0] in ("module", b"module"):  # a class, and its source in the file, which is not compared
            return saved[1]
        if saved[0] not in ("storage", b"storage") or len(saved) != 6:
            raise RuntimeError(f"Unknown saved id type: {saved[0]}")
        storage = self.storage(saved)
        return storage if saved[5] is None else self._part(storage, *saved[5])

    def _part(self, storage, key, offset, count):
        """A storage that is a part of another one, as files of long ago have them."""
        if key not in self._parts:
            if not all(type(n) is int and n >= 0 for n in (offset, count)) or offset + count > len(storage):
                raise pickle.UnpicklingError(f"not a part of a storage of {len(storage)} elements: {count} elements from {offset} on")
            size = storage.element_size()
            self._parts[key] = storage.untyped()[offset * size:(offset + count) * size]
        return umbra.storage.TypedStorage(wrap_storage=self._parts[key], dtype=storage.dtype)

    def _read(self, _, nbytes, __):
        return umbra.UntypedStorage(nbytes)
