"""What pipes are: streams (IterDataPipe) and collections by index (MapDataPipe) whose further steps are methods.

    IterableWrapper(range(10)).filter(is_even).shuffle().batch(2)
"""
import functools
import pickle
from typing import TypeVar

from umbra.utils.data.datapipes._hook_iterator import _SnapshotState
from umbra.utils.data.datapipes._typing import _DataPipeMeta, _IterDataPipeMeta
from umbra.utils.data.dataset import Dataset, IterableDataset

try:
    import dill
    dill.extend(use_dill=False)  # plain pickles stay what they are
except ImportError:
    dill = None
HAS_DILL = dill is not None

__all__ = ["DataChunk", "DFIterDataPipe", "IterDataPipe", "MapDataPipe"]

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class DataChunk(list[_T]):
    """A batch of samples that are not collated yet: a list, which also keeps them as they were given."""

    def __init__(self, items):
        super().__init__(items)
        self.items = list(super().__iter__())

    def as_str(self, indent=""):
        return f"{indent}[{', '.join(map(str, self))}]"

    def __iter__(self):
        yield from super().__iter__()

    def raw_iterator(self):
        yield from self.items


class _Steps:
    """What both kinds of pipes have: steps that are registered by name, and hooks of those who look through a pipeline.

    Each kind has a table of steps and hooks of its own, on the class that `_kind` finds.
    """

    def __getattr__(self, name):
        step = self._kind().functions.get(name)
        if step is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}")
        bound = functools.partial(step, self)
        bound.__doc__ = step.__doc__
        return bound

    @classmethod
    def _kind(cls):
        return IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe

    @classmethod
    def register_function(cls, function_name, function):
        """Makes a function of (pipe, ...) a method of all pipes."""
        cls.functions[function_name] = function

    @classmethod
    def _register_class(cls, name, step):
        if name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {name} as it is already taken")

        def apply(source, *args, **kwargs):
            return step(source, *args, **kwargs)

        apply.__doc__ = step.__doc__
        cls.functions[name] = apply

    def __getstate__(self):
        hook = self._kind().getstate_hook
        return self.__dict__ if hook is None else hook(self.__dict__)

    def __reduce_ex__(self, *args, **kwargs):
        hook = self._kind().reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:  # the hook has nothing to say about this pipe
                pass
        return super().__reduce_ex__(*args, **kwargs)

    @classmethod
    def set_getstate_hook(cls, hook_fn):
        """A function of the state that pickles are made of; None takes it away."""
        cls._set_hook("getstate_hook", hook_fn)

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn):
        """A function that reduces pipes for pickles; None takes it away."""
        cls._set_hook("reduce_ex_hook", hook_fn)

    @classmethod
    def _set_hook(cls, name, hook):
        kind = cls._kind()
        if getattr(kind, name) is not None and hook is not None:
            raise RuntimeError(f"Attempt to override existing {name}")
        setattr(kind, name, hook)

    def __repr__(self):
        return self.repr_hook(self) if self.repr_hook is not None else type(self).__qualname__

    def __str__(self):
        return self.str_hook(self) if self.str_hook is not None else type(self).__qualname__

    def __dir__(self):
        return [*super().__dir__(), *self._kind().functions]


class IterDataPipe(_Steps, IterableDataset[_T_co], metaclass=_IterDataPipeMeta):
    """A stream of samples as a step of a pipeline. Subclasses have `__iter__`, and `reset` where they keep something between samples.

    A pipe has one iterator at a time; `fork` gives several readers one source.
    """

    functions = {}
    reduce_ex_hook = getstate_hook = str_hook = repr_hook = None
    _valid_iterator_id = None
    _number_of_samples_yielded = 0
    _snapshot_state = _SnapshotState.NotStarted
    _fast_forward_iterator = None

    def __iter__(self):
        return self

    @classmethod
    def register_datapipe_as_function(cls, function_name, cls_to_register, enable_df_api_tracing=False):
        """Makes a class of pipes a method of all streams."""
        if enable_df_api_tracing:
            raise NotImplementedError("pipes that trace what is done to data frames (enable_df_api_tracing) are not in Umbra")
        cls._register_class(function_name, cls_to_register)

    def reset(self):
        """Called before each pass. What a step keeps between samples is made anew here."""


class DFIterDataPipe(IterDataPipe):
    """A stream of data frames."""

    def _is_dfpipe(self):
        return True


class MapDataPipe(_Steps, Dataset[_T_co], metaclass=_DataPipeMeta):
    """Samples by index as a step of a pipeline. Subclasses have `__getitem__`, and `__len__` as a rule."""

    functions = {}
    reduce_ex_hook = getstate_hook = str_hook = repr_hook = None

    @classmethod
    def register_datapipe_as_function(cls, function_name, cls_to_register):
        """Makes a class of pipes a method of all pipes that are read by index."""
        cls._register_class(function_name, cls_to_register)


class _DataPipeSerializationWrapper:
    """A pipe on its way to another process: pickled, or by dill where pickle cannot and dill is there."""

    def __init__(self, datapipe):
        self._datapipe = datapipe

    def __getstate__(self):
        try:
            return pickle.dumps(self._datapipe), False
        except Exception:
            if dill is None:
                raise
            return dill.dumps(self._datapipe), True

    def __setstate__(self, state):
        value, by_dill = state
        self._datapipe = (dill if by_dill else pickle).loads(value)

    def __len__(self):
        try:
            return len(self._datapipe)
        except Exception as error:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length") from error


class _IterDataPipeSerializationWrapper(_DataPipeSerializationWrapper, IterDataPipe):

    def __init__(self, datapipe):
        super().__init__(datapipe)
        self._datapipe_iter = None

    def __iter__(self):
        self._datapipe_iter = iter(self._datapipe)
        return self

    def __next__(self):
        if self._datapipe_iter is None:
            raise AssertionError("Iterator has not been initialized; call __iter__() before __next__()")
        return next(self._datapipe_iter)


class _MapDataPipeSerializationWrapper(_DataPipeSerializationWrapper, MapDataPipe):

    def __getitem__(self, index):
        return self._datapipe[index]
