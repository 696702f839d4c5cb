"""Programs as ONNX models.

    torch.onnx.export(model, (x,), "model.onnx", input_names=["x"], dynamic_shapes=({0: "batch"},))
"""
import contextlib
import enum
import os
import warnings

from umbra import Tensor
from umbra._options import not_built
from umbra.export import ExportedProgram
from umbra.export import export as _export_program
from umbra.nn import Module
from umbra.onnx import _sizes, errors
from umbra.onnx._program import ONNXProgram, dimension_names
from umbra.onnx.errors import OnnxExporterError  # noqa: F401

_exporting = False


def is_in_onnx_export():
    """Whether a module is being captured for ONNX."""
    return _exporting


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


# ---- export ----

def export(model, args=(), f=None, *, kwargs=None, verbose=None, input_names=None, output_names=None, opset_version=None, dynamo=True, external_data=True,
           dynamic_shapes=None, custom_translation_table=None, report=False, optimize=True, verify=False, profile=False, dump_exported_program=False,
           artifacts_dir=".", export_params=True, keep_initializers_as_inputs=False, dynamic_axes=None, training=TrainingMode.EVAL,
           operator_export_type=OperatorExportTypes.ONNX, do_constant_folding=True, custom_opsets=None, export_modules_as_functions=False, autograd_inlining=True):
    """Writes a module, captured with the example inputs, or an ExportedProgram, as an ONNX model, of opset 18 unless another is asked for. Sizes that may vary
    are named dimensions; an operator that has no counterpart is refused by name. Without `f` the model is only returned."""
    not_built("torch.onnx.export", custom_translation_table=(custom_translation_table or None, None), report=(bool(report), False), verify=(bool(verify), False),
              profile=(bool(profile), False), dump_exported_program=(bool(dump_exported_program), False))
    if isinstance(args, (str, os.PathLike)) and f is None and isinstance(model, ExportedProgram):
        args, f = (), args
    if isinstance(args, Tensor):
        args = (args,)
    if not kwargs and args and isinstance(args[-1], dict):
        args, kwargs = args[:-1], args[-1]
    older = not dynamo and not isinstance(model, ExportedProgram)
    if older:
        _check_older(f, dynamic_shapes, operator_export_type, custom_opsets, export_modules_as_functions)
    for kind, names in (("Input", input_names), ("Output", output_names)):
        if names and (twice := sorted({name for name in names if names.count(name) > 1})):
            raise ValueError(f"{kind} names cannot be duplicated: {twice}")
    with _mode_of(model, training) if older else contextlib.nullcontext():
        program, names = _captured(model, args, kwargs, dynamic_shapes, dynamic_axes, input_names, output_names, older)
    made = _written(program, opset_version, input_names=list(input_names or ()), output_names=list(output_names or ()), dimension_names=names)
    if f is not None:
        to_path = isinstance(f, (str, os.PathLike))
        made.save(f, include_initializers=export_params, keep_initializers_as_inputs=keep_initializers_as_inputs,
                  external_data=bool(external_data) and to_path and not older)
    return None if older else made


def _captured(model, args, kwargs, shapes, axes, input_names, output_names, older):
    """The program, and what its symbols are called."""
    global _exporting
    if isinstance(model, ExportedProgram):
        if shapes or axes:
            raise NotImplementedError("torch.onnx.export: the sizes of an ExportedProgram that vary are those that it was captured with; rename_axes names them")
        return model, {}
    if not isinstance(model, Module):
        raise TypeError(f"torch.onnx.export: expected a torch.nn.Module or an ExportedProgram, got {type(model)}")
    if model.training and not older:
        warnings.warn("The model is in training mode as it is exported, and may do other things than in inference. Call model.eval() before, unless it is "
                      "meant so.", stacklevel=3)
    arguments = _sizes.bound(model, args, kwargs)
    if shapes is None and axes is not None:
        try:
            shapes = _sizes.from_axes(arguments, axes, input_names, output_names)
        except ValueError as error:
            raise RuntimeError("Failed to convert 'dynamic_axes' to 'dynamic_shapes'. Please provide 'dynamic_shapes' directly.") from error
    before, _exporting = _exporting, True
    try:
        program = _export_program(model, tuple(args), kwargs, dynamic_shapes=_sizes.without_names(shapes))
    finally:
        _exporting = before
    return program, dimension_names(program, _sizes.names_of_axes(arguments, shapes))


def _written(program, opset_version, **options):
    """The model in the opset that is asked for; where it has operators that are newer, it stays in ours, with a warning, as PyTorch's does."""
    made = ONNXProgram(program, opset=opset_version or 18, **options)
    if opset_version is None or opset_version >= 18:
        made.model_bytes  # what has no counterpart is refused here
        return made
    try:
        made.model_bytes
    except NotImplementedError as error:
        made = ONNXProgram(program, opset=18, **options)
        made.model_bytes
        warnings.warn(f"the model is written in opset 18, not {opset_version}: {error}", errors.OnnxExporterWarning, stacklevel=3)
    return made


def _check_older(f, dynamic_shapes, operator_export_type, custom_opsets, export_modules_as_functions):
    """What the older exporter takes. The one here writes its models too."""
    warnings.warn("torch.onnx.export(dynamo=False) is the older exporter's call; leave out dynamo=False", DeprecationWarning, stacklevel=3)
    if f is None:
        raise TypeError("torch.onnx.export(dynamo=False) needs the path to write to")
    if dynamic_shapes:
        raise ValueError("The exporter only supports dynamic shapes through parameter dynamic_axes when dynamo=False.")
    not_built("torch.onnx.export", operator_export_type=(operator_export_type, OperatorExportTypes.ONNX), custom_opsets=(custom_opsets or None, None),
              export_modules_as_functions=(export_modules_as_functions or False, False))


@contextlib.contextmanager
def _mode_of(model, training):
    """The older exporter writes a model as it infers unless it is told otherwise."""
    modes = {} if training == TrainingMode.PRESERVE else {module: module.training for module in model.modules()}
    if modes:
        model.train(training == TrainingMode.TRAINING)
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


# ---- operators of users' own ----

def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version):
    """Says how the older exporter writes an operator. The one here writes no operators of users' own, and refuses them when it meets them."""


def unregister_custom_op_symbolic(symbolic_name, opset_version):
    """Takes that back."""


from umbra.onnx import symbolic_helper  # noqa: E402, F401  (makes the modules of operators beside it)
