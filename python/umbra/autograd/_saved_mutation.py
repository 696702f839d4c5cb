"""Backward passes through tensors that were changed after they had been saved: what is saved is copied before it is written."""
import contextlib
import weakref

import umbra
from umbra.autograd.graph import saved_tensors_hooks
from umbra.utils._python_dispatch import TorchDispatchMode

_active = None  # the context that is entered


class _Saved:
    """A tensor that the graph needs, as it was: itself while nobody writes to its memory, a copy afterwards."""

    def __init__(self, tensor):
        self.tensor, self.version, self.copy = tensor, tensor._version, None

    def keep(self):
        if self.copy is None and self.tensor._version == self.version:
            self.copy, self.tensor = self.tensor.detach().clone(), None


class _CopyBeforeWrite(TorchDispatchMode):
    def __init__(self, context):
        super().__init__()
        self.context = context

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        for position, argument in enumerate(function._schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            written = args[position] if position < len(args) else kwargs.get(argument.name)
            for tensor in written if isinstance(written, (list, tuple)) else (written,):
                if isinstance(tensor, umbra.Tensor):
                    self.context.about_to_write(tensor)
        return function(*args, **kwargs)


class _Context:
    def __init__(self):
        self.saved = {}  # by the address of their memory

    def pack(self, tensor):
        saved, address = _Saved(tensor), tensor.untyped_storage().data_ptr()
        self.saved.setdefault(address, weakref.WeakSet()).add(saved)
        return address, saved

    def unpack(self, packed):
        address, saved = packed
        if _active is not self or saved not in self.saved.get(address, ()):
            raise AssertionError("Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
                                 "in which the graph was originally recorded.")
        return saved.tensor if saved.copy is None else saved.copy

    def about_to_write(self, tensor):
        for saved in list(self.saved.get(tensor.untyped_storage().data_ptr(), ())):
            saved.keep()

    def clear(self):
        self.saved.clear()


@contextlib.contextmanager
def allow_mutation_on_saved_tensors():
    """Inside, tensors that are saved for a backward pass may be changed in place: the pass sees them as they were.

        with torch.autograd.graph.allow_mutation_on_saved_tensors():
            y = (x ** 2).sum()
            x.sin_()
            y.backward()
    """
    global _active
    if _active is not None:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _Context()
    with saved_tensors_hooks(context.pack, context.unpack), _CopyBeforeWrite(context):
        _active = context
        try:
            yield context
        finally:
            _active = None
            context.clear()
