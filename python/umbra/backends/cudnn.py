"""cuDNN is not part of this build; its switches can be set and have no effect."""
enabled = False
benchmark = False
deterministic = True


def is_available():
    return False
