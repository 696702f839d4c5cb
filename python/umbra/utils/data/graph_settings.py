"""Settings of a whole pipeline, found in its graph: shares of the samples, shuffling, seeds."""
import inspect
import warnings

import umbra
from umbra.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES, _ShardingIterDataPipe
from umbra.utils.data.graph import DataPipe, DataPipeGraph, traverse_dps  # noqa: F401

__all__ = ["apply_random_seed", "apply_sharding", "apply_shuffle_seed", "apply_shuffle_settings", "get_all_graph_pipes"]


def get_all_graph_pipes(graph):
    """The pipes of a graph, each once."""
    pipes = {}

    def add(graph):
        for number, (pipe, below) in graph.items():
            if number not in pipes:
                pipes[number] = pipe
                add(below)

    add(graph)
    return list(pipes.values())


def _has_methods(pipe, *names):
    return all(inspect.ismethod(getattr(pipe, name, None)) for name in names)


def _is_sharding_datapipe(datapipe):
    return isinstance(datapipe, _ShardingIterDataPipe) or _has_methods(datapipe, "apply_sharding")


def _is_shuffle_datapipe(datapipe):
    return _has_methods(datapipe, "set_shuffle", "set_seed")


def _is_random_datapipe(datapipe):
    return _has_methods(datapipe, "set_seed")


def apply_sharding(datapipe, num_of_instances, instance_id, sharding_group=SHARDING_PRIORITIES.DEFAULT):
    """Each pipe that shares samples out (`sharding_filter`) gives those of one of so many readers. Two of them on one way are an error."""

    def apply(graph, applied):
        for pipe, below in graph.values():
            if not _is_sharding_datapipe(pipe):
                apply(below, applied)
                continue
            if applied is not None:
                raise RuntimeError("Sharding twice on a single pipeline is likely unintended and will cause data loss. "
                                   f"Sharding already applied to {applied} while trying to apply to {pipe}")
            groups = {} if len(inspect.signature(pipe.apply_sharding).parameters) < 3 else {"sharding_group": sharding_group}
            pipe.apply_sharding(num_of_instances, instance_id, **groups)
            apply(below, pipe)

    apply(traverse_dps(datapipe), None)
    return datapipe


def apply_shuffle_settings(datapipe, shuffle=None):
    """Turns the pipes that shuffle on or off, and adds one at the end where none is there to be turned on."""
    if shuffle is None:
        return datapipe
    shufflers = [pipe for pipe in get_all_graph_pipes(traverse_dps(datapipe)) if _is_shuffle_datapipe(pipe)]
    if not shufflers and shuffle:
        warnings.warn("`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. Be aware that the default "
                      "buffer size might not be sufficient for your task.", stacklevel=2)
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for shuffler in shufflers:
        shuffler.set_shuffle(shuffle)
    return datapipe


def apply_shuffle_seed(datapipe, rng):
    """The older name of `apply_random_seed`."""
    warnings.warn("`apply_shuffle_seed` is deprecated since 1.12 and will be removed in the future releases. Please use `apply_random_seed` instead.",
                  FutureWarning, stacklevel=2)
    return apply_random_seed(datapipe, rng)


def apply_random_seed(datapipe, rng):
    """Gives each pipe that draws (`set_seed`) a seed from the generator."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if _is_random_datapipe(pipe):
            pipe.set_seed(int(umbra.empty((), dtype=umbra.int64).random_(generator=rng).item()))
    return datapipe
