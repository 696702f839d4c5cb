"""Whether functions and modules are compiled at all: not where PYTORCH_JIT is 0 or `disable` was called."""
import os

_WORDS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


class EnabledProxy:
    """A truth that can be changed where others hold it."""

    def __init__(self):
        word = os.environ.get("PYTORCH_JIT", "1")
        if word.lower().rstrip("v") not in _WORDS:
            raise ValueError("Unknown setting of PYTORCH_JIT. Try using 0 or 1.")
        self.enabled = _WORDS[word.lower().rstrip("v")]

    def __bool__(self):
        return self.enabled


_enabled = EnabledProxy()
_script_classes = {}


def disable():
    _enabled.enabled = False


def enable():
    _enabled.enabled = True
