"""Export: a module and example inputs in, a program that can be saved, loaded and run out.

    batch = Dim("batch", max=4096)
    program = export(model, (x,), dynamic_shapes={"x": {0: batch}})
    save(program, "model.pt2")                  # torch.export.load reads it
"""
import os
import tempfile

from umbra import _C
from umbra._modules import lazy_submodules
from umbra._options import not_built
from umbra.export._trace import export  # noqa: F401
from umbra.export.dynamic_shapes import Dim, ShapesCollection, dims  # noqa: F401
from umbra.export.exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature  # noqa: F401
from umbra.export.graph_signature import ExportBackwardSignature, ExportGraphSignature  # noqa: F401

__getattr__ = lazy_submodules(__name__)

export_for_training = export


def save(ep, f, *, extra_files=None, opset_version=None, pickle_protocol=2):
    """Writes a program and its weights to a path or a file object, as PyTorch 2.15 does."""
    not_built("torch.export.save", extra_files=(extra_files or None, None), opset_version=(opset_version, None),
              pickle_protocol=(pickle_protocol, 2))
    if not isinstance(ep, ExportedProgram):
        raise TypeError(f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead.")
    if isinstance(f, (str, os.PathLike)):
        ep._program.save(os.fspath(f))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.pt2")
        ep._program.save(path)
        with open(path, "rb") as source:
            f.write(source.read())


def load(f, *, extra_files=None, expected_opset_version=None):
    """Reads a program. Nothing in the file is run."""
    not_built("torch.export.load", extra_files=(extra_files or None, None), expected_opset_version=(expected_opset_version, None))
    if isinstance(f, (str, os.PathLike)):
        return ExportedProgram(_C._load_program(os.fspath(f)))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.pt2")
        with open(path, "wb") as target:
            target.write(f.read())
        return ExportedProgram(_C._load_program(path))


def register_dataclass(cls, *, serialized_type_name=None):
    """Makes a dataclass a container whose fields are inputs and outputs."""
    from umbra.utils import _pytree
    _pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)
