"""Switches for how Module.to and its like change parameters."""
_overwrite = False
_swap = False


def set_overwrite_module_params_on_conversion(value):
    """Whether conversions make new parameters instead of changing those that are there."""
    global _overwrite
    _overwrite = bool(value)


def get_overwrite_module_params_on_conversion():
    return _overwrite


def set_swap_module_params_on_conversion(value):
    """Whether conversions, and load_state_dict, exchange parameters by torch.utils.swap_tensors."""
    global _swap
    _swap = bool(value)


def get_swap_module_params_on_conversion():
    return _swap
