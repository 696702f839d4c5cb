"""Apple's GPUs are not part of this build."""


def is_built():
    return False


def is_available():
    return False
