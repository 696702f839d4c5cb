"""Export: a module and example inputs in, a program that can be saved, loaded and run out.

    batch = Dim("batch", max=4096)
    program = export(model, (x,), dynamic_shapes={"x": {0: batch}})
    save(program, "model.pt2")                  # torch.export.load reads it
"""
from umbra._modules import lazy_submodules
from umbra.export._draft_export import draft_export  # noqa: F401
from umbra.export._trace import export  # noqa: F401
from umbra.export.decomp_utils import CustomDecompTable  # noqa: F401
from umbra.export.dynamic_shapes import AdditionalInputs, Constraint, Dim, ShapesCollection, dims, dynamic_dim  # noqa: F401
from umbra.export.exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature  # noqa: F401
from umbra.export.graph_signature import ExportBackwardSignature, ExportGraphSignature  # noqa: F401
from umbra.export.unflatten import FlatArgsAdapter, UnflattenedModule, unflatten  # noqa: F401
from umbra.export.pt2_archive._package import check_protocol, load_pt2, package_pt2

__all__ = ["AdditionalInputs", "Constraint", "CustomDecompTable", "Dim", "ExportBackwardSignature", "ExportGraphSignature", "ExportedProgram",
           "FlatArgsAdapter", "ModuleCallEntry", "ModuleCallSignature", "ShapesCollection", "UnflattenedModule", "default_decompositions", "dims",
           "draft_export", "export", "load", "register_dataclass", "save", "unflatten"]

__getattr__ = lazy_submodules(__name__)

export_for_training = export  # its name in PyTorch 2.5 to 2.8


def default_decompositions():
    """The table that `run_decompositions` goes by where it is given none."""
    return CustomDecompTable()


def save(ep, f, *, extra_files=None, opset_version=None, pickle_protocol=2):
    """Writes a program, its weights and its example inputs to a path or a file object, as PyTorch 2.15 does. `extra_files`: texts by name. (`opset_version` is
    not looked at, nor is it there; `pickle_protocol` has to be one, for example inputs, which are written with the same in any case.)"""
    check_protocol(pickle_protocol)
    if not isinstance(ep, ExportedProgram):
        raise TypeError(f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead.")
    package_pt2(f, exported_programs={"model": ep}, extra_files=extra_files)


def load(f, *, extra_files=None, expected_opset_version=None):
    """Reads a program. Nothing in the file is run. `extra_files` is given the texts that were stored with it. `expected_opset_version`: a dict, which
    refuses nothing, as in PyTorch."""
    dict(expected_opset_version or {})
    contents = load_pt2(f)
    if extra_files:  # an empty dict asks for nothing, as in PyTorch
        extra_files.update(contents.extra_files)
    programs = contents.exported_programs
    if len(programs) != 1 and "model" not in programs:
        raise KeyError(f"model: the file holds {len(programs)} programs ({', '.join(programs)}): torch.export.pt2_archive._package.load_pt2 reads them all")
    return programs["model"] if "model" in programs else next(iter(programs.values()))


def register_dataclass(cls, *, serialized_type_name=None):
    """Makes a dataclass a container whose fields are inputs and outputs."""
    from umbra.utils import _pytree
    if cls not in _pytree.SUPPORTED_NODES:
        _pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)
