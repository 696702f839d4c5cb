"""save and load: tensors, state dicts and plain containers of them, in the files that torch.save writes.

Loading runs nothing that a file holds: it knows the few names that such files need, and refuses every other.
"""
import os
import pickle
import zipfile

from umbra import _C
from umbra._options import not_built


def save(obj, f, pickle_module=None, pickle_protocol=2, _use_new_zipfile_serialization=True, _disable_byteorder_record=False):
    """Writes `obj` to a path (atomically) or to anything with `write`, with pickle protocol 2 in the format of zip files."""
    not_built("torch.save", pickle_module=(None if pickle_module is pickle else pickle_module, None), pickle_protocol=(pickle_protocol, 2),
              _use_new_zipfile_serialization=(_use_new_zipfile_serialization, True),
              _disable_byteorder_record=(_disable_byteorder_record, False))
    try:
        if hasattr(f, "write"):
            f.write(_C._save_bytes(obj))
        elif isinstance(f, (str, os.PathLike)):
            folder = os.path.dirname(os.fspath(f))
            if folder and not os.path.isdir(folder):
                raise RuntimeError(f"Parent directory {folder} does not exist.")
            _C._save(obj, os.fspath(f))
        else:
            raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    except TypeError:
        _refuse_local_objects(obj)
        raise


def _refuse_local_objects(obj):
    """What no pickle can name gets the error that it gets from pickle."""
    if isinstance(obj, dict):
        obj = [*obj.keys(), *obj.values()]
    if isinstance(obj, (list, tuple)):
        for item in obj:
            _refuse_local_objects(item)
        return
    name = getattr(obj if callable(obj) else type(obj), "__qualname__", "")
    if "<locals>" in name or "<lambda>" in name:
        raise AttributeError(f"Can't pickle local object '{name}'")


def load(f, map_location=None, pickle_module=None, *, weights_only=True, mmap=None, encoding="utf-8"):
    """What `save`, or torch.save, wrote to a path or to anything with `read`. Tensors are on the CPU unless `map_location` names another device.

    Loading is safe whatever `weights_only` says, files at paths are always mapped, and texts are UTF-8. Inside a FakeTensorMode the tensors
    are fake.
    """
    if pickle_module is not None and weights_only:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    not_built("torch.load", pickle_module=(None if pickle_module is pickle else pickle_module, None), encoding=(encoding, "utf-8"))
    finish = _finisher(map_location if callable(map_location) else _device(map_location))
    if hasattr(f, "read"):
        if mmap:
            raise ValueError("f must be a file path in order to use the mmap argument")
        data = f.read()
        if not data:
            raise EOFError("Ran out of input")
        return _checked(lambda: _C._load_bytes(data, str(getattr(f, "name", "a file object")), finish), data[:2], lambda: _is_zip(data))
    path = os.fspath(f)
    with open(path, "rb") as file:
        start = file.read(2)
    if not start:
        raise EOFError("Ran out of input")
    if mmap and start != b"PK":
        raise RuntimeError(f"mmap can only be used with files saved with `torch.save({path}, _use_new_zipfile_serialization=True), please "
                           "torch.save your checkpoint with this option in order to use mmap.")
    return _checked(lambda: _C._load(path, finish), start, lambda: zipfile.is_zipfile(path))


def _is_zip(data):
    import io
    return zipfile.is_zipfile(io.BytesIO(data))


def _checked(read, start, is_whole):
    """A file that is broken is a RuntimeError; one that is no such file, or asks for what is not allowed, an UnpicklingError."""
    try:
        return read()
    except ValueError as error:
        kind = RuntimeError if start == b"PK" and not is_whole() else pickle.UnpicklingError
        raise kind(str(error)) from None


def _device(map_location):
    import umbra
    if map_location is None or isinstance(map_location, umbra.device):
        return map_location
    if isinstance(map_location, str):
        return umbra.device(map_location)
    if isinstance(map_location, dict):
        return umbra.device(map_location["cpu"]) if "cpu" in map_location else None
    raise TypeError(f"map_location should be None, a device, a string, a dict or a function, not {type(map_location).__name__}: tensors are "
                    "loaded on the CPU, wherever they were saved")


def _finisher(place):
    """What makes of each tensor in a file the tensor that the caller gets. `place`: a device, or a function of a storage and where it was."""
    from umbra._subclasses.fake_tensor import _mode_object
    from umbra.nn.parameter import Parameter
    fake = _mode_object(_C._active_fake_mode())

    def finish(tensor, is_parameter, requires_grad):
        if fake is not None:
            tensor = fake.from_tensor(tensor, static_shapes=True)
        device = place
        if callable(place):
            storage = place(tensor.untyped_storage(), "cpu")
            device = None if storage is None else storage.device
        if device is not None and tensor.device != device:
            tensor = tensor.to(device)
        if is_parameter:
            return Parameter(tensor, requires_grad)
        return tensor.requires_grad_() if requires_grad else tensor
    return finish
