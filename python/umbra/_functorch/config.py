"""Switches that torch has here.

    with config.patch(activation_memory_budget=0.5):
        compiled(x).sum().backward()    # half of what min-cut keeps, the rest is computed again
"""
from umbra._config_patch import patcher

activation_memory_budget = 1.0  # of what min-cut keeps for the backward
debug_assert = False
fake_tensor_allow_meta = True
fake_tensor_propagate_real_tensors = False
functionalize_rng_ops = False
unlift_effect_tokens = False  # graphs with effects make their tokens themselves
view_replay_for_aliased_outputs = True

patch = patcher(__name__)
