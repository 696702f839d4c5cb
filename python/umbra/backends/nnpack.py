"""NNPACK is not part of this build."""


def is_available():
    return False
