"""Whether there is a device for it."""


def amp_definitely_not_available():
    return True
