"""CUDA is not part of this build."""


def is_built():
    return False
