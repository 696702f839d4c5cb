"""with_effects: a call of an operator that has effects, as captured programs make it. A token goes in and another comes out, so that each such call
depends on the one before."""
import umbra
from umbra import _C
from umbra._C import OpOverload
from umbra._higher_order_ops.operator import NamedOperator
from umbra._library.custom_ops import CustomOpDef
from umbra._library.effects import EffectType, effect_of, register

_EffectType = EffectType


def _name_of(op):
    if isinstance(op, OpOverload):
        return op.name()
    if isinstance(op, NamedOperator):
        return f"higher_order::{op.name()}"
    if isinstance(op, CustomOpDef):
        return op._qualname
    if isinstance(op, str):
        return op
    raise ValueError(f"Invalid operator input {op}")


def _register_effectful_op(op, effect):
    """Says what the effect of an operator is: `_EffectType.ORDERED` or None."""
    register(_name_of(op), effect)


def _get_effect(op):
    return effect_of(_name_of(op))


def has_aliasing(op):
    """Whether the schema says that results alias arguments or that arguments are written."""
    if isinstance(op, NamedOperator):
        return False
    return any(part.alias_info is not None for part in (*op._schema.arguments, *op._schema.returns))


def has_effects(op):
    """Whether captures keep the order of its calls by tokens."""
    return isinstance(op, (OpOverload, NamedOperator)) and _get_effect(op) is not None and not has_aliasing(op)


def new_token_tensor():
    return umbra.tensor([])


class WithEffects(NamedOperator):
    """`with_effects(token, operator, *args, **kwargs)` gives a new token and the operator's results."""

    def __call__(self, token, op, *args, **kwargs):
        if not isinstance(op, (OpOverload, NamedOperator)):
            raise AssertionError(f"op must be HigherOrderOperator or OpOverload, got {type(op)}")
        if isinstance(op, NamedOperator):
            raise NotImplementedError(f"with_effects of {op} is not in Umbra yet")
        if has_aliasing(op):
            raise AssertionError("Ops with aliasing is not supported")
        return tuple(_C._with_effects(token, op, args, kwargs))


with_effects = WithEffects("with_effects")
