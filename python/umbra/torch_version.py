"""TorchVersion: a version that is a text and compares as a version."""
import functools
import re

_FORM = re.compile(r"v?(\d+(?:\.\d+)*)(?:[-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?(\d*))?(?:[-_.]?post(\d+))?(?:[-_.]?dev(\d*))?(?:\+([\w.-]+))?$")
_STAGES = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}


@functools.cache
def _key(text):
    """What versions are compared by, as PEP 440 orders them; None where a text is no version."""
    match = _FORM.match(text.strip().lower())
    if match is None:
        return None
    release, stage, number, post, development, local = match.groups()
    numbers = [int(part) for part in release.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    if stage:
        before = (_STAGES.get(stage, stage), int(number or 0))
    else:
        before = ("", 0) if development is not None and post is None else ("z", 0)  # a development version comes first, a finished one last
    parts = [(1, int(p), "") if p.isdigit() else (0, 0, p) for p in re.split(r"[._-]", local)] if local else []
    return numbers, before, int(post or -1), development is None, int(development or 0), parts


def _text(other):
    if isinstance(other, str):
        return str(other)
    return ".".join(str(part) for part in other)  # (2, 6)


class TorchVersion(str):
    """The version of PyTorch that Umbra stands for: `torch.__version__ >= "2.6"`, `torch.__version__ >= (2, 6)`."""

    def _compare(self, other, name):
        mine, theirs = _key(str(self)), _key(_text(other)) if isinstance(other, (str, tuple, list)) else None
        if theirs is None:
            return getattr(str(self), name)(other)
        return getattr(mine, name)(theirs)

    def __lt__(self, other):
        return self._compare(other, "__lt__")

    def __le__(self, other):
        return self._compare(other, "__le__")

    def __gt__(self, other):
        return self._compare(other, "__gt__")

    def __ge__(self, other):
        return self._compare(other, "__ge__")

    def __eq__(self, other):
        return self._compare(other, "__eq__")

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__


def _version():
    from umbra import version
    return TorchVersion(version.__version__)


__version__ = _version()
