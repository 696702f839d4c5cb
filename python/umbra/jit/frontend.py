"""Errors about source that a program cannot be made of."""


class NotSupportedError(RuntimeError):
    """A way of writing that TorchScript does not take."""


class FrontendError(Exception):
    """The source cannot be read."""

    def __init__(self, source_range=None, msg=""):
        self.source_range, self.msg = source_range, msg
        super().__init__(msg)


class UnsupportedNodeError(NotSupportedError):
    """A kind of statement or expression that TorchScript does not have."""


class FrontendTypeError(FrontendError):
    """A type that TorchScript does not have."""
