"""TorchScript archives: `save` and `load`."""
import os

from umbra import _C
from umbra._options import not_built
from umbra.jit._script_module import ScriptModule, wrap_object
from umbra.jit._trace import ScriptFunction, _deprecated


def _module_of(m):
    """The object that an archive holds: a function is the forward of a module of its own."""
    if isinstance(m, ScriptModule):
        return m._c
    function = m._function if isinstance(m, ScriptFunction) else m
    if not isinstance(function, _C._jit_Function):
        raise AttributeError(f"'{type(m).__name__}' object has no attribute 'save': torch.jit.save takes a ScriptModule or a ScriptFunction")
    cls = _C._jit_Class.make("__torch__.PlaceholderModule", True)
    cls.add_attribute("training", _C._jit_simple_type("bool"))
    cls.add_method("forward", _C._jit_method_of(function, cls))
    made = cls.new()
    made.setattr("training", True)
    return made


def save(m, f, _extra_files=None):
    """Writes a compiled module or function, to a path or an open file, as torch.jit.load reads it."""
    _deprecated("save", "`torch.export`")
    extra = {name: contents.decode("latin1") if isinstance(contents, bytes) else contents for name, contents in (_extra_files or {}).items()}
    is_path = isinstance(f, (str, os.PathLike))
    root = os.path.splitext(os.path.basename(os.fspath(f)))[0] if is_path else "archive"
    data = _C._jit_save(_module_of(m), root or "archive", extra)
    if not is_path:
        f.write(data)
        return
    folder = os.path.dirname(os.fspath(f))
    if folder and not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    with open(f, "wb") as file:
        file.write(data)


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """Reads a module that torch.jit.save wrote, from a path or an open file."""
    _deprecated("load", "`torch.export`")
    not_built("torch.jit.load", _restore_shapes=(_restore_shapes, False))
    if isinstance(f, (str, os.PathLike)):
        label = os.fspath(f)
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {f} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {f} is a directory")
        with open(f, "rb") as file:
            data = file.read()
    else:
        label, data = "the file", f.read()
    try:
        c, files = _C._jit_load(data, label, {name: "" for name in _extra_files or {}})
    except ValueError as error:
        raise RuntimeError(str(error)) from error
    for name, contents in files.items():
        _extra_files[name] = contents
    module = wrap_object(c)
    return module if map_location is None else module.to(map_location)
