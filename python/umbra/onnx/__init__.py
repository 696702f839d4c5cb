"""Programs as ONNX models.

    program = umbra.export.export(model, (x,), dynamic_shapes=({0: Dim("batch")},))
    umbra.onnx.export(program, "model.onnx")
"""
import enum
import functools
import os

from umbra import Tensor
from umbra._options import not_built
from umbra.export import ExportedProgram
from umbra.export import export as _export_program
from umbra.nn import Module

_exporting = False


def is_in_onnx_export():
    """Whether a module is being captured for ONNX."""
    return _exporting


class ONNXProgram:
    """A model of ONNX: its bytes, and the program that it was made of."""

    def __init__(self, exported_program, external_data=False):
        self.exported_program, self._external_data = exported_program, external_data

    @functools.cached_property
    def model_bytes(self):
        return self.exported_program._synchronised().to_onnx()

    def save(self, destination, *, external_data=None):
        """Writes the model to a path or a file object. With `external_data`, and above 2 GB in any case, large constants lie in a file beside it."""
        external_data = self._external_data if external_data is None else external_data
        if isinstance(destination, (str, os.PathLike)):
            self.exported_program._synchronised().save_onnx(os.fspath(destination), external_data)
        elif external_data:
            raise ValueError("external data lie in a file beside the model: save it to a path")
        else:
            destination.write(self.model_bytes)


def export(model, args=(), f=None, *, kwargs=None, dynamic_shapes=None, opset_version=18, dynamo=True, external_data=False, verbose=None):
    """Writes a module, captured with the example inputs, or an ExportedProgram, as an ONNX model of opset 18. Sizes that may vary are named dimensions;
    an operator that has no counterpart is refused by name. Without `f` the model is only returned."""
    not_built("torch.onnx.export", opset_version=(opset_version or 18, 18), dynamo=(dynamo, True), verbose=(bool(verbose), False))
    global _exporting
    if isinstance(args, (str, os.PathLike)) and f is None and isinstance(model, ExportedProgram):
        args, f = (), args
    if isinstance(args, Tensor):
        args = (args,)
    if isinstance(model, Module):
        before, _exporting = _exporting, True
        try:
            model = _export_program(model, tuple(args), kwargs, dynamic_shapes=dynamic_shapes)
        finally:
            _exporting = before
    if not isinstance(model, ExportedProgram):
        raise TypeError(f"torch.onnx.export: expected a torch.nn.Module or an ExportedProgram, got {type(model)}")
    program = ONNXProgram(model, external_data)
    if f is not None:
        program.save(f)
    else:
        program.model_bytes  # what has no counterpart is refused here
    return program


# ---- names of torch's older exporter ----

class TensorProtoDataType(enum.IntEnum):
    """ONNX's numbers of types of elements."""
    UNDEFINED, FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE, UINT32, UINT64, COMPLEX64, COMPLEX128, BFLOAT16 = range(17)
    FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ = range(17, 21)


class TrainingMode(enum.IntEnum):
    """Whether a model is written as it infers or as it trains."""
    EVAL, PRESERVE, TRAINING = range(3)


class OperatorExportTypes(enum.IntEnum):
    """What becomes of operators that ONNX does not have."""
    ONNX, ONNX_ATEN, ONNX_ATEN_FALLBACK, ONNX_FALLTHROUGH = range(4)


def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version):
    """Says how the older exporter writes an operator. The one here writes no operators of users' own, and refuses them when it meets them."""


def unregister_custom_op_symbolic(symbolic_name, opset_version):
    """Takes that back."""


from umbra.onnx import symbolic_helper  # noqa: E402, F401  (makes the modules of operators beside it)
