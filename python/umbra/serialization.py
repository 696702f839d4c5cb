"""save and load: tensors, state dicts and plain containers of them, in the files that torch.save writes.

Loading runs nothing that a file holds: it knows the few names that such files need, and refuses every other.
"""
import os
import pickle

from umbra import _C
from umbra._options import not_built


def save(obj, f, pickle_module=None, pickle_protocol=2, _use_new_zipfile_serialization=True, _disable_byteorder_record=False):
    """Writes `obj` to a path (atomically) or to anything with `write`."""
    not_built("torch.save", pickle_module=(None if pickle_module is pickle else pickle_module, None), pickle_protocol=(pickle_protocol, 2),
              _use_new_zipfile_serialization=(_use_new_zipfile_serialization, True),
              _disable_byteorder_record=(_disable_byteorder_record, False))
    if hasattr(f, "write"):
        f.write(_C._save_bytes(obj))
    else:
        _C._save(obj, os.fspath(f))


def load(f, map_location=None, pickle_module=None, *, weights_only=True, mmap=None, **pickle_load_args):
    """What `save`, or torch.save, wrote to a path or to anything with `read`. Tensors are on the CPU unless `map_location` names another device.

    Loading is safe whatever `weights_only` says. Inside a FakeTensorMode the tensors are fake.
    """
    if pickle_module is not None and weights_only:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    not_built("torch.load", pickle_module=(None if pickle_module is pickle else pickle_module, None),
              **{name: (value, "utf-8" if name == "encoding" else None) for name, value in pickle_load_args.items()})
    if mmap and hasattr(f, "read"):
        raise ValueError("f must be a string filename in order to use mmap argument")
    finish = _finisher(_device(map_location))
    if hasattr(f, "read"):
        return _C._load_bytes(f.read(), str(getattr(f, "name", "a file object")), finish)
    return _C._load(os.fspath(f), finish)


def _device(map_location):
    import umbra
    if map_location is None or isinstance(map_location, umbra.device):
        return map_location
    if isinstance(map_location, str):
        return umbra.device(map_location)
    if isinstance(map_location, dict):
        return umbra.device(map_location["cpu"]) if "cpu" in map_location else None
    raise TypeError(f"map_location should be None, a device, a string or a dict, not {type(map_location).__name__}: tensors are loaded on the "
                    "CPU, wherever they were saved")


def _finisher(device):
    """What makes of each tensor in a file the tensor that the caller gets."""
    from umbra._subclasses.fake_tensor import _mode_object
    from umbra.nn.parameter import Parameter
    fake = _mode_object(_C._active_fake_mode())

    def finish(tensor, is_parameter, requires_grad):
        if fake is not None:
            tensor = fake.from_tensor(tensor, static_shapes=True)
        if device is not None and tensor.device != device:
            tensor = tensor.to(device)
        if is_parameter:
            return Parameter(tensor, requires_grad)
        return tensor.requires_grad_() if requires_grad else tensor
    return finish
