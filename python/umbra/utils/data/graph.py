"""Which pipes a pipeline is made of: {id: (pipe, the same of its sources)}."""
import io
import pickle
import warnings
from collections.abc import Collection

from umbra.utils.data.datapipes.datapipe import HAS_DILL, IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]

DataPipe = IterDataPipe | MapDataPipe
DataPipeGraph = dict[int, tuple[DataPipe, "DataPipeGraph"]]


def _pipes_only(state):
    """Of a pipe's state what may lead to other pipes: pipes and collections."""
    if isinstance(state, dict):
        return {name: value for name, value in state.items() if isinstance(value, (DataPipe, Collection))}
    if isinstance(state, (tuple, list)):
        return [value for value in state if isinstance(value, (DataPipe, Collection))]
    return state if isinstance(state, (DataPipe, Collection)) else None


def _nothing():
    """What stands for a pipe in the pickles that are made here, which nobody reads."""


def _pickle(pipe):
    """Pickles a pipe into nothing, as dill can where pickle cannot."""
    try:
        pickle.Pickler(io.BytesIO()).dump(pipe)
    except (pickle.PickleError, AttributeError, TypeError):
        if not HAS_DILL:
            raise
        import dill
        dill.Pickler(io.BytesIO()).dump(pipe)


def _sources(pipe, only_pipes, path):
    """The pipes that a pipe leads to at once: pickles go through all that it has, and ask here about each pipe that they meet."""
    found = {}

    def note(met):
        if met is pipe or id(met) in path:
            raise NotImplementedError  # it is gone through as any object
        found[id(met)] = met
        return _nothing, ()

    try:
        for kind in (IterDataPipe, MapDataPipe):
            kind.set_reduce_ex_hook(note)
            if only_pipes:
                kind.set_getstate_hook(_pipes_only)
        _pickle(pipe)
    finally:
        for kind in (IterDataPipe, MapDataPipe):
            kind.set_reduce_ex_hook(None)
            if only_pipes:
                kind.set_getstate_hook(None)
    return list(found.values())


def _graph_of(pipe, only_pipes, path):
    """`path`: the pipes on the way here. One that leads back to itself ends there; one on two ways is in both."""
    if not isinstance(pipe, DataPipe):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(pipe)} is found")
    if id(pipe) in path:
        return {}
    path = path | {id(pipe)}
    below = {}
    for source in _sources(pipe, only_pipes, path):
        below.update(_graph_of(source, only_pipes, path))
    return {id(pipe): (pipe, below)}


def traverse_dps(datapipe):
    """The pipes that lead to this one: {id(pipe): (pipe, the pipes that lead to it)}. Attributes that are pipes or collections are looked through."""
    return _graph_of(datapipe, True, frozenset())


def traverse(datapipe, only_datapipe=None):
    """As `traverse_dps`, through all attributes unless `only_datapipe`. Deprecated."""
    note = "`traverse` function is deprecated and will be removed after 1.13. Please use `traverse_dps` instead."
    if not only_datapipe:
        note += " And, the behavior will be changed to the equivalent of `only_datapipe=True`."
    warnings.warn(note, FutureWarning, stacklevel=2)
    return _graph_of(datapipe, bool(only_datapipe), frozenset())
