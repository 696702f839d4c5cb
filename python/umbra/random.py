"""Seeds and the state of the random number generator."""
import contextlib

import umbra
from umbra._options import not_built
from umbra._functions import get_rng_state, initial_seed, manual_seed, seed, set_rng_state  # noqa: F401

default_generator = umbra.default_generator


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type=None):
    """What is drawn inside does not count outside."""
    not_built("torch.random.fork_rng", devices=(list(devices or []), []))
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
