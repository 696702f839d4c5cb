"""Attention by a function of scores. Its names are there to be imported; calls are refused."""
from typing import NamedTuple

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class BlockMask:
    """A mask by blocks. None can be made here."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("torch.nn.attention.flex_attention.BlockMask is not in Umbra yet")


class AuxRequest(NamedTuple):
    """What attention should give besides its output."""
    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What attention gives besides its output."""
    lse: object = None
    max_scores: object = None


def _refusing(name):
    def refused(*args, **kwargs):
        raise NotImplementedError(f"torch.nn.attention.flex_attention.{name} is not in Umbra yet")
    refused.__name__ = refused.__qualname__ = name
    return refused


flex_attention, create_block_mask, create_mask, create_nested_block_mask = map(
    _refusing, ("flex_attention", "create_block_mask", "create_mask", "create_nested_block_mask"))


def noop_mask(batch, head, token_q, token_kv):
    """The mask function that lets everything through."""
    return batch.new_ones((), dtype=_bool())


def and_masks(*mask_mods):
    """A mask function that lets through what all do."""
    def both(b, h, q_idx, kv_idx):
        result = b.new_ones((), dtype=_bool())
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result
    return both


def or_masks(*mask_mods):
    """A mask function that lets through what one does."""
    def either(b, h, q_idx, kv_idx):
        result = b.new_zeros((), dtype=_bool())
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result
    return either


def _bool():
    import umbra
    return umbra.bool
