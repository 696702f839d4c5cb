"""What goes wrong when a model is written for ONNX."""


class OnnxExporterWarning(UserWarning):
    """Warnings of the exporter."""


class OnnxExporterError(RuntimeError):
    """The root of the exporter's errors."""
