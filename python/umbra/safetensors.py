"""safetensors files: named tensors behind a JSON header. Nothing in such a file can run."""
import os

from umbra import _C


def load_file(filename, device="cpu"):
    """{name: tensor}; the file is mapped, and what is never touched is never read."""
    tensors = dict(_C._load_safetensors(os.fspath(filename)))
    return tensors if str(device) == "cpu" else {name: tensor.to(device) for name, tensor in tensors.items()}


def save_file(tensors, filename, metadata=None):
    """Writes {name: tensor} atomically."""
    _C._save_safetensors(os.fspath(filename), list(tensors.items()), list((metadata or {}).items()))
