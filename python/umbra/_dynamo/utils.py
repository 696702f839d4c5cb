"""What packages ask of torch's compiler."""


def is_compile_supported(device_type):
    """Whether programs for a type of device can be compiled to code of its own: there is no such compiler here."""
    return False
