"""Switches of torch.compile, which is not there: they can be set and have no effect."""
suppress_errors = False
verbose = False
cache_size_limit = recompile_limit = 8
automatic_dynamic_shapes = True
capture_scalar_outputs = False
