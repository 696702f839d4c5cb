"""DLPack: tensors to and from other frameworks without copies."""
from umbra._C import _to_dlpack as to_dlpack, from_dlpack  # noqa: F401
