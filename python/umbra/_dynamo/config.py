"""Switches that torch has here. Those of fake tensors mean what they say; the others can be set and have no effect."""
from umbra._config_patch import patcher

fake_tensor_cache_enabled = True  # calls on fake tensors are counted from the first question on
fake_tensor_cache_crosscheck_enabled = False  # calls that were seen before are compared with what they gave then

suppress_errors = False
verbose = False
cache_size_limit = recompile_limit = 8
automatic_dynamic_shapes = True
capture_scalar_outputs = False

patch = patcher(__name__)
