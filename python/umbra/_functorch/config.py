"""Switches that torch has here.

    with config.patch(activation_memory_budget=0.5):
        compiled(x).sum().backward()    # half of what min-cut keeps, the rest is computed again
"""
import contextlib
import sys

activation_memory_budget = 1.0  # of what min-cut keeps for the backward
debug_assert = False
fake_tensor_allow_meta = True
fake_tensor_propagate_real_tensors = False
functionalize_rng_ops = False
view_replay_for_aliased_outputs = True


@contextlib.contextmanager
def patch(name=None, value=None, /, **switches):
    """Other values for a scope, or for a function: `patch(debug_assert=True)`, `patch("debug_assert", True)` or `patch({...})`."""
    module = sys.modules[__name__]
    changes = {**(name if isinstance(name, dict) else {} if name is None else {name: value}), **switches}
    for key in changes:
        if key.startswith("_") or not hasattr(module, key):
            raise AttributeError(f"torch._functorch.config.{key} does not exist")
    before = {key: getattr(module, key) for key in changes}
    vars(module).update(changes)
    try:
        yield
    finally:
        vars(module).update(before)
