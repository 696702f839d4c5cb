"""Small helpers under torch's private names."""
from umbra.compiler import is_compiling  # noqa: F401


def _flatten_dense_tensors(tensors):
    import umbra
    return umbra.cat([t.reshape(-1) for t in tensors])
