"""Switches for how Module.to and its like change parameters. Exchanging them by torch.utils.swap_tensors is refused."""
_overwrite = False


def set_overwrite_module_params_on_conversion(value):
    """Whether conversions make new parameters instead of changing those that are there."""
    global _overwrite
    _overwrite = bool(value)


def get_overwrite_module_params_on_conversion():
    return _overwrite


def set_swap_module_params_on_conversion(value):
    """Whether conversions exchange parameters by torch.utils.swap_tensors."""
    if value:
        raise NotImplementedError("torch.__future__.set_swap_module_params_on_conversion(True) is not in Umbra yet")


def get_swap_module_params_on_conversion():
    return False
