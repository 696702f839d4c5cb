"""Pipelines that go on where they were."""
from umbra.utils.data.datapipes._hook_iterator import _SnapshotState
from umbra.utils.data.graph_settings import apply_random_seed


def _simple_graph_snapshot_restoration(datapipe, n_iterations, rng=None):
    """Brings a pipeline to where it was after so many samples, by reading them again. `rng`: the generator of the seeds, as it was then."""
    if datapipe._snapshot_state is _SnapshotState.Restored:
        raise RuntimeError("Snapshot restoration cannot be applied. You can only restore simple snapshot to the graph if your graph has not been "
                           "restored.")
    datapipe.reset()
    apply_random_seed(datapipe, rng)
    iterator = iter(datapipe)
    for _ in range(n_iterations):
        try:
            next(iterator)
        except StopIteration as end:
            raise RuntimeError(f"Fast-forward {datapipe} by {n_iterations} iterations exceeds the number of samples available.") from end
    datapipe._fast_forward_iterator = iterator
    datapipe._snapshot_state = _SnapshotState.Restored  # so that the next iterator goes on without a reset
