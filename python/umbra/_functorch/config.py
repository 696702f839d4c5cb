"""Switches that torch has here."""
debug_assert = False
fake_tensor_allow_meta = True
fake_tensor_propagate_real_tensors = False
functionalize_rng_ops = False
view_replay_for_aliased_outputs = True
