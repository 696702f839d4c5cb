"""OpenMP is not part of this build: threads are those of Umbra's own pool."""


def is_available():
    return False
