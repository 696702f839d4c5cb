"""Apple's GPUs are not part of this build."""


def is_built():
    return False


def is_available():
    return False


def is_macos_or_newer(major, minor):
    """This is no Mac."""
    return False


def is_macos13_or_newer(minor=0):
    """This is no Mac."""
    return False
