"""Calls of functions in other processes, of which there are none."""


def is_available():
    return False
