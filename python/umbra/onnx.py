"""torch.onnx's question; export to ONNX is refused."""


def is_in_onnx_export():
    """Whether a program is being exported to ONNX: it is not."""
    return False


def export(*args, **kwargs):
    raise NotImplementedError("torch.onnx.export is not in Umbra yet")
