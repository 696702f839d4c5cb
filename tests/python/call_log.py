"""A mode that writes down which operators are called below autograd."""
from umbra.utils._python_dispatch import TorchDispatchMode


class CallLog(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))
