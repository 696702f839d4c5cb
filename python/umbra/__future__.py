"""Switches for how Module.to and load_state_dict change parameters. Umbra writes into parameters as they are; the other ways are refused."""


def set_overwrite_module_params_on_conversion(value):
    """Whether conversions make new parameters instead of changing those that are there."""
    if value:
        raise NotImplementedError("torch.__future__.set_overwrite_module_params_on_conversion(True) is not in Umbra yet")


def get_overwrite_module_params_on_conversion():
    return False


def set_swap_module_params_on_conversion(value):
    """Whether conversions exchange parameters by torch.utils.swap_tensors."""
    if value:
        raise NotImplementedError("torch.__future__.set_swap_module_params_on_conversion(True) is not in Umbra yet")


def get_swap_module_params_on_conversion():
    return False
