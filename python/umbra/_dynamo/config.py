"""Switches that torch has here and that mean something without analysis of bytecode."""
fake_tensor_cache_enabled = True  # calls on fake tensors are counted from the first question on
fake_tensor_cache_crosscheck_enabled = False  # calls that were seen before are compared with what they gave then
