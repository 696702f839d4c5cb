"""From TorchScript to exported programs."""
import copy
import inspect

import umbra
from umbra._subclasses import FakeTensor
from umbra.jit import ScriptFunction, ScriptModule
from umbra.nn.modules.module import Module


class _Plain(Module):
    """The tensors and modules of a compiled module, in a module that export takes."""

    def __init__(self, compiled):
        super().__init__()
        self._parameters.update(compiled._parameters)
        self._buffers.update(compiled._buffers)
        for name, child in compiled._modules.items():
            self._modules[name] = _Plain(child)


class _Call(Module):
    def forward(self, *args, **kwargs):
        raise NotImplementedError


def _exportable(compiled):
    """A plain module that does what a compiled module or function does, with its arguments' names."""
    if isinstance(compiled, ScriptModule):
        module, function, names = _Plain(compiled), compiled, [n for n, _ in compiled._c._get_method("forward").parameters()[1:]]
    else:
        module, function, names = _Call(), compiled, [n for n, _ in compiled._function.parameters()]

    def forward(*args, **kwargs):
        return function(*args, **kwargs)

    forward.__signature__ = inspect.Signature([inspect.Parameter(n.partition(".")[0], inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None)
                                               for n in names])  # a trace's names may have a number behind them
    module.__dict__["forward"] = forward
    return module


class TS2EPConverter:
    """Makes an exported program of a compiled module or function, for arguments like the samples.

        program = TS2EPConverter(torch.jit.load("model.pt"), (x,)).convert()
    """

    def __init__(self, ts_model, sample_args, sample_kwargs=None):
        if not isinstance(ts_model, (ScriptModule, ScriptFunction)):
            raise TypeError(f"TS2EPConverter takes what torch.jit.script, trace or load gave, not {type(ts_model).__name__}")
        if not isinstance(sample_args, tuple):
            raise TypeError("sample_args has to be a tuple")
        self.ts_model, self.sample_args, self.sample_kwargs = ts_model, sample_args, sample_kwargs

    def convert(self):
        """The exported program. A program that sets attributes is refused, since exported ones have none."""
        if isinstance(self.ts_model, ScriptFunction):
            return umbra.export.export(_exportable(self.ts_model), self.sample_args, self.sample_kwargs)
        model = copy.copy(self.ts_model)  # what the run sets is set there; tensors are shared
        before = dict(_attributes(model))
        program = umbra.export.export(_exportable(model), self.sample_args, self.sample_kwargs)
        changed = [path for path, value in _attributes(model) if not _same(value, before[path])]
        if changed:
            raise NotImplementedError(f"the program sets the attribute '{changed[0]}', which an exported program cannot do")
        return program


def _attributes(module):
    """The attributes of a compiled module and of those inside, by their paths."""
    for path, m in module.named_modules():
        for name in m._c.class_().attribute_names():
            if name not in m._modules:
                yield f"{path}.{name}" if path else name, m._c.getattr(name)


def _same(a, b):
    tensors = isinstance(a, umbra.Tensor), isinstance(b, umbra.Tensor)
    if not any(tensors):
        return a == b
    return all(tensors) and not isinstance(a, FakeTensor) and a.data_ptr() == b.data_ptr() and a.shape == b.shape
