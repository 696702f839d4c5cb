#!/usr/bin/env python3
"""Writes the names of the options that PyTorch's default compiler takes, with the types of those that have one of four.

    PYTHON_WITH_TORCH tools/inductor_options.py > python/umbra/_dynamo/_inductor_options.txt

`torch.compile(options=...)` refuses others. A line is a name, and bool, int, float or str where a value has to be of that type.
"""
from torch._inductor import config

for name, value in sorted(config.get_config_copy().items()):
    if any(part.startswith("_") for part in name.split(".")) or name == "TYPE_CHECKING":
        continue
    wanted = config.get_type(name) if hasattr(config, "get_type") else type(value)
    print(name, wanted.__name__) if wanted in (bool, int, float, str) else print(name)
