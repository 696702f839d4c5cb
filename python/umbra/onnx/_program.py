"""A model of ONNX: what torch.onnx.export returns."""
import os
import re

from umbra import Tensor, from_numpy
from umbra.utils import _pytree

_SYMBOL = re.compile(r"[A-Za-z_]\w*\Z")


class ONNXProgram:
    """A model of ONNX: its bytes, and the program that it was made of."""

    def __init__(self, exported_program, **options):
        self.exported_program, self._options = exported_program, options
        self._bytes = self._session = self._model = None

    @property
    def model_bytes(self):
        if self._model is not None:
            return _to_proto(self._model).SerializeToString()
        if self._bytes is None:
            self._bytes = self.exported_program._synchronised().to_onnx(self._options)
        return self._bytes

    @property
    def model_proto(self):
        """The model as the package `onnx` has it; a copy of its own at each call."""
        import onnx
        return onnx.ModelProto.FromString(self.model_bytes)

    @property
    def model(self):
        """The model as the package `onnx_ir` edits it. What is changed in it is what is saved and run from then on."""
        if self._model is None:
            import onnx_ir
            self._model = onnx_ir.from_proto(self.model_proto)
        return self._model

    @model.setter
    def model(self, value):
        self._model = value
        self.release()

    def save(self, destination, *, include_initializers=True, keep_initializers_as_inputs=False, external_data=None):
        """Writes the model to a path or a file object. With `external_data`, and above 2 GB in any case, large constants lie in a file beside it.
        Parameters may stay outside the model, and may be inputs that a caller can give."""
        if self._model is not None:
            return self._save_edited(destination, include_initializers, keep_initializers_as_inputs, external_data)
        options = {**self._options, "parameters": include_initializers, "parameters_are_inputs": keep_initializers_as_inputs}
        program = self.exported_program._synchronised()
        if isinstance(destination, (str, os.PathLike)):
            program.save_onnx(os.fspath(destination), {**options, "external_data": bool(external_data)})
        elif external_data:
            raise ValueError("external data lie in a file beside the model: save it to a path")
        else:
            destination.write(program.to_onnx(options))

    def _save_edited(self, destination, include_initializers, keep_initializers_as_inputs, external_data):
        if not include_initializers or keep_initializers_as_inputs:
            raise NotImplementedError("ONNXProgram.save(include_initializers=False) and keep_initializers_as_inputs=True of a model that was edited through "
                                      "ONNXProgram.model: change its initializers there")
        if isinstance(destination, (str, os.PathLike)):
            import onnx_ir
            path = os.fspath(destination)
            onnx_ir.save(self._model, path, external_data=os.path.basename(path) + ".data" if external_data else None)
        elif external_data:
            raise ValueError("external data lie in a file beside the model: save it to a path")
        else:
            destination.write(self.model_bytes)

    def optimize(self):
        """Folds constants. What is written here is folded already: nothing changes."""

    def rename_axes(self, rename_mapping):
        """Gives sizes that vary other names, by those that they have."""
        if self._model is not None:
            raise NotImplementedError("ONNXProgram.rename_axes of a model that was edited through ONNXProgram.model: rename them before")
        names = dict(self._options.get("dimension_names", {}))
        for old, new in rename_mapping.items():
            known = [symbol for symbol, name in names.items() if name == str(old)]
            names.update(dict.fromkeys(known or [str(old)], new))
        self._options["dimension_names"] = names
        self.release()
        self._bytes = None

    # ---- running it ----

    def initialize_inference_session(self, initializer=None):
        """Makes the session of ONNX Runtime that calls run in."""
        if initializer is None:
            import onnxruntime
            initializer = lambda model: onnxruntime.InferenceSession(model, providers=onnxruntime.get_available_providers())  # noqa: E731
        self._session = initializer(self.model_bytes)

    def release(self):
        """Lets go of the session."""
        self._session = None

    def __call__(self, *args, **kwargs):
        """Runs the model in ONNX Runtime with the arguments that the module takes; gives its results in a tuple."""
        if self._session is None:
            self.initialize_inference_session()
        arrays = [leaf.detach().numpy() for leaf in _pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        inputs = self._session.get_inputs()
        if len(arrays) != len(inputs):
            raise ValueError(f"the model has {len(inputs)} inputs, got {len(arrays)} tensors")
        results = self._session.run(None, {put.name: array for put, array in zip(inputs, arrays)})
        return tuple(from_numpy(result) for result in results)

    def __repr__(self):
        return f"ONNXProgram(exported_program={self.exported_program})"


def _to_proto(model):
    import onnx_ir
    return onnx_ir.to_proto(model)


def dimension_names(program, shapes):
    """Which symbol each name of a size stands for; `shapes` are those of the program's inputs, flat."""
    names = {}
    inputs = [node.meta.get("val") for node, spec in zip((n for n in program.graph.nodes if n.op == "placeholder"), program.graph_signature.input_specs)
              if spec.kind.name == "USER_INPUT"]
    for value, axes in zip(inputs, shapes):
        for axis, name in axes.items() if isinstance(value, Tensor) else ():
            symbol = str(value.shape[axis])
            if _SYMBOL.match(symbol):  # neither a number nor made of other sizes
                names.setdefault(symbol, name)
    return names
