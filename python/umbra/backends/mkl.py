"""MKL is not part of this build: matrix products are those of oneDNN and OpenBLAS."""


def is_available():
    return False
