"""Programs as bytes, in four parts: the program as JSON, and files of its weights, its constants and its example inputs.

    artifact = serialize(program)
    json.loads(artifact.exported_program)["graph_module"]["graph"]["nodes"]
    again = deserialize(artifact)
"""
import dataclasses
import io
import json
import zipfile

from umbra import serialization
from umbra._export.serde.schema import SCHEMA_VERSION, TREESPEC_VERSION  # noqa: F401
from umbra._options import not_built
from umbra.export.exported_program import ExportedProgram
from umbra.export.pt2_archive._package import load_pt2
from umbra.utils import _pytree as pytree

DEFAULT_PICKLE_PROTOCOL = serialization.DEFAULT_PROTOCOL


class SerializeError(RuntimeError):
    """A program that cannot be written, or bytes that are none."""


@dataclasses.dataclass
class SerializedArtifact:
    """A program in parts, each as bytes."""
    exported_program: bytes
    state_dict: bytes
    constants: bytes
    example_inputs: bytes


def serialize_torch_artifact(artifact, pickle_protocol=DEFAULT_PICKLE_PROTOCOL):
    """Tensors in containers as a `torch.save` file; nothing as no bytes."""
    if artifact is None:
        return b""
    file = io.BytesIO()
    serialization.save(artifact, file, pickle_protocol=pickle_protocol)
    return file.getvalue()


def deserialize_torch_artifact(serialized):
    """What such a file holds; what is no bytes is given back as it is, and no bytes are an empty dict."""
    if isinstance(serialized, (dict, tuple)):
        return serialized
    return serialization.load(io.BytesIO(serialized), weights_only=True) if serialized else {}


def serialize(exported_program, opset_version=None, pickle_protocol=DEFAULT_PICKLE_PROTOCOL, *, serialize_state_dict=True, serialize_constants=True,
              serialize_example_inputs=True):
    """The program in parts; those that are not wanted are empty."""
    not_built("serialize", opset_version=(opset_version, None))
    if not isinstance(exported_program, ExportedProgram):
        raise TypeError(f"The 'exported_program' parameter must be an instance of 'ExportedProgram', got '{type(exported_program).__name__}' instead.")
    for spec in exported_program.call_spec:
        pytree.treespec_dumps(spec)  # containers without a name for files are refused
    text = exported_program._synchronised().json()
    part = lambda wanted, value: serialize_torch_artifact(value, pickle_protocol) if wanted else b""  # noqa: E731
    return SerializedArtifact(text, part(serialize_state_dict, dict(exported_program.state_dict)),
                              part(serialize_constants, dict(exported_program.constants)),
                              part(serialize_example_inputs, exported_program.example_inputs))


# The parts by the names that the archive of PyTorch 2.4 has for them.
_ENTRIES = {"serialized_exported_program.json": "exported_program", "serialized_state_dict.pt": "state_dict",
            "serialized_constants.pt": "constants", "serialized_example_inputs.pt": "example_inputs"}


def deserialize(artifact, expected_opset_version=None, *, _unsafe_skip_version_check=False):
    """The program of an artifact. Nothing in it is run."""
    not_built("deserialize", expected_opset_version=(expected_opset_version, None))
    parts = {name: getattr(artifact, field) for name, field in _ENTRIES.items()}
    _check_version(parts["serialized_exported_program.json"], _unsafe_skip_version_check)
    nothing = serialize_torch_artifact({})
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part or ("" if name == "serialized_example_inputs.pt" else nothing))
    return load_pt2(file).exported_programs["model"]


def _check_version(text, skipped):
    """Programs of another major version are refused; the reader itself does not know how to read them."""
    try:
        version = json.loads(text)["schema_version"]
        major, minor = version["major"], version["minor"]
    except (ValueError, KeyError, TypeError) as error:
        raise SerializeError("the artifact holds no program: its JSON cannot be read, or has no schema_version") from error
    if not skipped and major != SCHEMA_VERSION[0] and (major, minor) != (0, 0):
        raise SerializeError(f"Serialized schema version {major}.{minor} does not match our current schema version {SCHEMA_VERSION[0]}.{SCHEMA_VERSION[1]}.")
