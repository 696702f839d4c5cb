"""Archives of one or several programs by name.

    package_pt2("both.pt2", exported_programs={"prefill": a, "decode": b})
    load_pt2("both.pt2").exported_programs["decode"].module()(x)
"""
import contextlib
import dataclasses
import io
import operator
import os
import pickle
import tempfile
import zipfile

from umbra import _C
from umbra._options import not_built
from umbra.export.exported_program import ExportedProgram
from umbra.export.pt2_archive._archive import PT2ArchiveReader, PT2ArchiveWriter, is_pt2_package  # noqa: F401
from umbra.serialization import load as _load_file, safe_globals
from umbra.utils import _pytree as pytree


@dataclasses.dataclass
class PT2ArchiveContents:
    """What an archive holds."""
    exported_programs: dict
    aoti_runners: dict
    extra_files: dict


def check_protocol(number):
    """Whether it is a version of pickle's format; example inputs, the one part that is pickled, are written in the version that all readers know."""
    if operator.index(number) > pickle.HIGHEST_PROTOCOL:
        raise ValueError(f"pickle protocol must be <= {pickle.HIGHEST_PROTOCOL}")


def package_pt2(f, *, exported_programs=None, aoti_files=None, extra_files=None, opset_version=None, pickle_protocol=2, executorch_files=None):
    """Writes programs (one, or several by name) and texts to a path or a file object; gives it back."""
    not_built("package_pt2", aoti_files=(aoti_files, None), executorch_files=(executorch_files, None))
    check_protocol(pickle_protocol)
    programs = {"model": exported_programs} if isinstance(exported_programs, ExportedProgram) else dict(exported_programs or {})
    for text in (extra_files or {}).values():
        if not isinstance(text, str):
            raise AssertionError(f"Expected string but got {type(text)}")
    for program in programs.values():
        for spec in program.call_spec:
            pytree.treespec_dumps(spec)  # containers without a name for files are refused
        program._keep_example_inputs()
    stored = [(name, program._synchronised()) for name, program in programs.items()]
    extra = list((extra_files or {}).items())
    if isinstance(f, (str, os.PathLike)):
        folder = os.path.dirname(os.fspath(f))
        if folder and not os.path.isdir(folder):
            raise RuntimeError(f"Parent directory {folder} does not exist.")
        _C._save_programs(os.fspath(f), stored, extra)
        return f
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "archive.pt2")  # its name is the folder in the archive
        _C._save_programs(path, stored, extra)
        with open(path, "rb") as source:
            f.write(source.read())
    return f


def load_pt2(f, *, expected_opset_version=None, run_single_threaded=False, num_runners=1, device_index=-1, load_weights_from_disk=False,
             use_stream_affinity=False):
    """Reads all programs of an archive. Nothing in the file is run."""
    not_built("load_pt2", run_single_threaded=(run_single_threaded, False),
              num_runners=(num_runners, 1), device_index=(device_index, -1), load_weights_from_disk=(load_weights_from_disk, False),
              use_stream_affinity=(use_stream_affinity, False))
    with _as_path(f) as path:
        try:
            programs, extra = _C._load_programs(path)
        except ValueError as error:
            if not zipfile.is_zipfile(path):
                raise zipfile.BadZipFile(f"File is not a zip file: {error}") from None
            raise
    made = {name: ExportedProgram(program, _example_inputs(program.example_inputs)) for name, program in programs}
    return PT2ArchiveContents(made, {}, dict(extra))


@contextlib.contextmanager
def _as_path(f):
    if isinstance(f, (str, os.PathLike)):
        yield os.fspath(f)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.pt2")
        if f.seekable():
            f.seek(0)  # an archive is read by its end, wherever the file stands: after it was written, say
        with open(path, "wb") as target:
            target.write(f.read())
        yield path


def _example_inputs(file):
    """What a file of example inputs holds; None where it holds what is not known here. The program keeps the file all the same. Containers that the
    caller's program has registered are known."""
    containers = [cls for cls in pytree.SUPPORTED_NODES if isinstance(cls, type)]
    try:
        with safe_globals(containers):
            return _load_file(io.BytesIO(file)) if file else None
    except pickle.UnpicklingError:
        return None
