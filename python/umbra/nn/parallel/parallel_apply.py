"""Several modules, each with its own inputs; with one device, one after the other."""


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """What each of the modules gives for its inputs: a tuple or list of arguments, or the one argument."""
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    if kwargs_tup is not None and len(modules) != len(kwargs_tup):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of kwargs_tup {len(kwargs_tup)}")
    if devices is not None and len(modules) != len(devices):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of devices {len(devices)}")
    calls = zip(modules, inputs, kwargs_tup or [{}] * len(modules))
    return [module(*(given if isinstance(given, (list, tuple)) else (given,)), **kwargs) for module, given, kwargs in calls]
