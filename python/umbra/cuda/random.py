"""Random numbers of devices, of which there are none."""
from umbra.cuda import (get_rng_state, get_rng_state_all, set_rng_state, set_rng_state_all, manual_seed, manual_seed_all, seed, seed_all, initial_seed)  # noqa: F401
