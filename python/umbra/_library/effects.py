"""What operators do besides computing, in an order that captures keep."""
import enum

from umbra import _C


class EffectType(enum.Enum):
    """ORDERED: calls happen in the order of the program."""
    ORDERED = "Ordered"


def register(name, effect):
    """Says what the effect of an operator is; None: it has none."""
    if effect is not None and not isinstance(effect, EffectType):
        raise NotImplementedError(f"an effect of the type {type(effect).__name__} is not in Umbra yet: it is EffectType.ORDERED or None")
    _C._set_effect(name, effect is not None)


def effect_of(name):
    """The effect that was registered for a name, or None."""
    return EffectType.ORDERED if _C._is_effectful(name) else None
