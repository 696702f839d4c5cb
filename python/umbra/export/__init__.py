"""Export: a module and example inputs in, a program that can be saved, loaded and run out.

    batch = Dim("batch", max=4096)
    program = export(model, (x,), dynamic_shapes={"x": {0: batch}})
    save(program, "model.pt2")                  # torch.export.load reads it
"""
import io
import os
import pickle
import tempfile

from umbra import _C
from umbra._modules import lazy_submodules
from umbra._options import not_built
from umbra.export._draft_export import draft_export  # noqa: F401
from umbra.export._trace import export  # noqa: F401
from umbra.export.decomp_utils import CustomDecompTable  # noqa: F401
from umbra.export.dynamic_shapes import AdditionalInputs, Dim, ShapesCollection, dims  # noqa: F401
from umbra.export.exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature  # noqa: F401
from umbra.export.graph_signature import ExportBackwardSignature, ExportGraphSignature  # noqa: F401
from umbra.export.unflatten import FlatArgsAdapter, UnflattenedModule, unflatten  # noqa: F401
from umbra.serialization import load as _load_file

__getattr__ = lazy_submodules(__name__)

export_for_training = export


def default_decompositions():
    """The table that `run_decompositions` goes by where it is given none."""
    return CustomDecompTable()


def save(ep, f, *, extra_files=None, opset_version=None, pickle_protocol=2):
    """Writes a program, its weights and its example inputs to a path or a file object, as PyTorch 2.15 does. `extra_files`: texts by name."""
    not_built("torch.export.save", opset_version=(opset_version, None), pickle_protocol=(pickle_protocol, 2))
    if not isinstance(ep, ExportedProgram):
        raise TypeError(f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead.")
    for text in (extra_files or {}).values():
        if not isinstance(text, str):
            raise AssertionError(f"Expected string but got {type(text)}")
    extra = list((extra_files or {}).items())
    ep._keep_example_inputs()
    ep._synchronised()
    if isinstance(f, (str, os.PathLike)):
        ep._program.save(os.fspath(f), extra)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.pt2")
        ep._program.save(path, extra)
        with open(path, "rb") as source:
            f.write(source.read())


def load(f, *, extra_files=None, expected_opset_version=None):
    """Reads a program. Nothing in the file is run. `extra_files` is given the texts that were stored with it."""
    not_built("torch.export.load", expected_opset_version=(expected_opset_version, None))
    if isinstance(f, (str, os.PathLike)):
        return _load(os.fspath(f), extra_files)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.pt2")
        with open(path, "wb") as target:
            target.write(f.read())
        return _load(path, extra_files)


def _load(path, extra_files):
    program, stored = _C._load_program(path)
    if extra_files:  # an empty dict asks for nothing, as in PyTorch
        extra_files.update(stored)
    return ExportedProgram(program, _example_inputs(program.example_inputs))


def _example_inputs(file):
    """What a file of example inputs holds; None where it holds what is not known here. The program keeps the file all the same."""
    try:
        return _load_file(io.BytesIO(file)) if file else None
    except pickle.UnpicklingError:
        return None


def register_dataclass(cls, *, serialized_type_name=None):
    """Makes a dataclass a container whose fields are inputs and outputs."""
    from umbra.utils import _pytree
    _pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)
