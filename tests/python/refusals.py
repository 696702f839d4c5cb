"""What a call is refused with: an error of that class, and of no class made of it."""
import pytest


def refused(kind, call, match=""):
    with pytest.raises(kind, match=match) as caught:
        call()
    assert caught.type is kind
