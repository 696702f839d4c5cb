"""Attention whose scores a function may change, and whose mask is a function too.

    causal = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 256, 256, device="cpu")
    y = flex_attention(query, key, value, score_mod=lambda s, b, h, q, kv: s - (q - kv) / 8, block_mask=causal)

Computed by other operators, so it is captured, exported and differentiated as they are. Blocks of a mask are what compilers of kernels go by; here the
mask's function decides.
"""
import math
import warnings
from typing import NamedTuple

import umbra
from umbra._options import not_built

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask", "flex_attention", "noop_mask", "or_masks"]

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """What attention should give besides its output."""
    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What attention gives besides its output."""
    lse: object = None
    max_scores: object = None


def noop_mask(batch, head, token_q, token_kv):
    """The mask function that lets everything through."""
    return batch.new_ones((), dtype=umbra.bool)


def _all_callable(masks):
    if not all(callable(mask) for mask in masks):
        raise RuntimeError(f"All inputs should be callable mask_mods: {masks}")


def and_masks(*mask_mods):
    """The mask function that lets through what all of them do."""
    _all_callable(mask_mods)

    def mask(b, h, q_idx, kv_idx):
        result = b.new_ones((), dtype=umbra.bool)
        for mod in mask_mods:
            result = result & mod(b, h, q_idx, kv_idx)
        return result
    return mask


def or_masks(*mask_mods):
    """The mask function that lets through what any of them does."""
    _all_callable(mask_mods)

    def mask(b, h, q_idx, kv_idx):
        result = b.new_zeros((), dtype=umbra.bool)
        for mod in mask_mods:
            result = result | mod(b, h, q_idx, kv_idx)
        return result
    return mask


def _over_scores(function, *first):
    """`function(*first, b, h, q, kv)` for all places of a tensor of scores; what comes first has the scores' four dimensions."""
    own = (0,) * len(first)
    for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):
        function = umbra.vmap(function, in_dims=(*own, *dims))
    return function


def _places(batch, heads, queries, keys, device):
    return [umbra.arange(count, device=device) for count in (batch, heads, queries, keys)]


def _is_mask(function):
    import inspect
    count = len([p for p in inspect.signature(function).parameters.values() if p.default is inspect.Parameter.empty
                 and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)])
    if count not in (4, 5):
        raise AssertionError(f"Expected score_mod to have 5 positional arguments or mask_mod to have 4, got {count}")
    return count == 4


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None):
    """What a mask function lets through, as a tensor of [B, H, Q_LEN, KV_LEN]; of a score function, the scores that it makes of zeros."""
    places = _places(B or 1, H or 1, Q_LEN, KV_LEN, device)
    if _is_mask(mod_fn):
        return _over_scores(mod_fn)(*places).expand(B or 1, H or 1, Q_LEN, KV_LEN)
    scores = umbra.zeros(B or 1, H or 1, Q_LEN, KV_LEN, device=device)
    return ~umbra.isneginf(_over_scores(mod_fn, scores)(scores, *places))


def _block_sizes(size):
    return (size, size) if isinstance(size, int) else tuple(size)


def _ordered(dense):
    """How many blocks of each row are there, and the columns, those that are there first."""
    return dense.sum(-1, dtype=umbra.int32), umbra.argsort(dense, dim=-1, descending=True, stable=True).to(umbra.int32).contiguous()


def _dense(counts, indices, columns):
    """Which blocks are there, as ones in a tensor of rows and columns."""
    rows = indices.size(-2)
    there = umbra.arange(indices.size(-1), device=indices.device) < counts.unsqueeze(-1)
    dense = indices.new_zeros((*indices.shape[:-2], rows, columns + 1))
    places = umbra.where(there, indices, columns).to(umbra.int64)
    return dense.scatter(-1, places, indices.new_ones(()).expand_as(indices))[..., :columns].contiguous()


class BlockMask:
    """A mask by blocks: which blocks of keys each block of queries looks at, and which of these it sees wholly (`full_...`)."""

    def __init__(self, seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, q_num_blocks, q_indices, full_q_num_blocks,
                 full_q_indices, BLOCK_SIZE=(_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE), mask_mod=noop_mask):
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        if (full_q_num_blocks is None) != (full_q_indices is None):
            raise AssertionError("full_q_num_blocks and full_q_indices must be both provided or omitted")
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = tuple(seq_lengths), tuple(BLOCK_SIZE), mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices

    @classmethod
    def from_kv_blocks(cls, kv_num_blocks, kv_indices, full_kv_num_blocks=None, full_kv_indices=None, BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE,
                       mask_mod=None, seq_lengths=None, compute_q_blocks=True):
        """The mask of the blocks that queries look at; those that keys are looked at by follow."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        sizes = _block_sizes(BLOCK_SIZE)
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * sizes[0], kv_indices.shape[-1] * sizes[1])

        def of_keys(counts, indices):
            if counts is None or not compute_q_blocks:
                return None, None
            return _ordered(_dense(counts, indices, indices.size(-1)).transpose(-2, -1))
        return cls(seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *of_keys(kv_num_blocks, kv_indices),
                   *of_keys(full_kv_num_blocks, full_kv_indices), BLOCK_SIZE=sizes, mask_mod=mask_mod or noop_mask)

    def as_tuple(self, flatten=True):
        """Everything in one tuple, as the operator takes it."""
        sizes = (*self.BLOCK_SIZE,) if flatten else (self.BLOCK_SIZE,)
        lengths = (*self.seq_lengths,) if flatten else (self.seq_lengths,)
        return (*lengths, *self._tensors(), *sizes, self.mask_mod)

    def _tensors(self):
        return (self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices, self.q_num_blocks, self.q_indices,
                self.full_q_num_blocks, self.full_q_indices)

    @property
    def shape(self):
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self):
        return math.prod(self.shape)

    def to_dense(self):
        """Which blocks are looked at."""
        dense = _dense(self.kv_num_blocks, self.kv_indices, self.kv_indices.size(-1))
        return dense if self.full_kv_num_blocks is None else dense | _dense(self.full_kv_num_blocks, self.full_kv_indices, self.full_kv_indices.size(-1))

    def sparsity(self):
        """The part of the places, in percent, that lies in blocks that are not looked at."""
        blocks = self.kv_num_blocks.sum() + (0 if self.full_kv_num_blocks is None else self.full_kv_num_blocks.sum())
        total = math.prod(self.kv_indices.shape[:-2]) * self.kv_indices.shape[-2] * self.kv_indices.shape[-1]
        return 100 * (1 - int(blocks) / total)

    def _changed(self, change, seq_lengths=None):
        return BlockMask(seq_lengths or self.seq_lengths, *(None if t is None else change(t) for t in self._tensors()), BLOCK_SIZE=self.BLOCK_SIZE,
                         mask_mod=self.mask_mod)

    def __getitem__(self, index):
        """The masks of some batches and heads; the mask's function still counts from the first."""
        index = index if isinstance(index, tuple) else (index,)
        index = tuple(slice(i, i + 1) if isinstance(i, int) and i != -1 else slice(i, None) if isinstance(i, int) else i for i in index)
        if len(index) > 2:
            not_built("BlockMask.__getitem__", index=(index[2:], ()))
        return self._changed(lambda t: t[index])

    def _adjust(self, new_q_len, new_kv_len):
        """The mask of shorter sequences."""
        if new_q_len > self.seq_lengths[0] or new_kv_len > self.seq_lengths[1]:
            raise NotImplementedError("BlockMask._adjust to longer sequences is not in Umbra: make a new mask")
        rows, columns = -(-new_q_len // self.BLOCK_SIZE[0]), -(-new_kv_len // self.BLOCK_SIZE[1])

        def part(counts, indices):
            return (None, None) if counts is None else _ordered(_dense(counts, indices, indices.size(-1))[..., :rows, :columns])
        return BlockMask.from_kv_blocks(*part(self.kv_num_blocks, self.kv_indices), *part(self.full_kv_num_blocks, self.full_kv_indices),
                                        BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod, seq_lengths=(new_q_len, new_kv_len))

    def to(self, device):
        return self._changed(lambda t: t.to(device))

    def to_string(self, grid_size=(20, 20), limit=4):
        """The blocks as a picture for each batch and head: full ones dark, others light."""
        rows, columns = (self.kv_indices.shape[-2], self.kv_indices.shape[-1]) if grid_size == -1 else _block_sizes(grid_size)
        dense = self.to_dense()
        lines, leading = [], dense.shape[:-2]
        for n in range(min(math.prod(leading), limit)):
            at = tuple(n // math.prod(leading[d + 1:]) % leading[d] for d in range(len(leading)))
            lines += [str(at), *self._picture(dense[at], rows, columns), ""]
        return "\n".join(lines) + ("" if math.prod(leading) <= limit else "...")

    @staticmethod
    def _picture(dense, rows, columns):
        height, width = max(1, -(-dense.shape[0] // rows)), max(1, -(-dense.shape[1] // columns))
        for top in range(0, dense.shape[0], height):
            line = ""
            for left in range(0, dense.shape[1], width):
                share = float(dense[top:top + height, left:left + width].float().mean())
                line += "██" if share == 1 else "░░" if share > 0 else "  "
            yield line

    def __str__(self):
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string()})"

    def __repr__(self):
        def size(t):
            return None if t is None else t.shape
        names = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices", "full_q_num_blocks",
                 "full_q_indices")
        lines = [f"{name}={size(getattr(self, name))}" for name in names]
        lines += [f"BLOCK_SIZE={self.BLOCK_SIZE}", f"shape={self.shape}", f"sparsity={self.sparsity():.2f}%",
                  f"mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}"]
        return "BlockMask(\n    " + ",\n    ".join(lines) + "\n)"


def create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, device=None, BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE, _compile=False, separate_full_blocks=True,
                      compute_dq_write_order=False, dq_kv_order=True):
    """The blocks of what `mask_mod(batch, head, query, key)` lets through. `B` or `H` is None where it is the same for all of them."""
    if _compile:     # compiled or not, the blocks are the same
        warnings.warn("_compile flag on create_block_mask was originally added to work around a torch.compile limitation. That limitation has since been "
                      "addressed. So, to compile create_block_mask, we suggest doing torch.compile(create_block_mask). This still works for now, but will "
                      "be removed in the future.", DeprecationWarning, stacklevel=2)
    not_built("create_block_mask", compute_dq_write_order=(compute_dq_write_order, False), dq_kv_order=(dq_kv_order, True))
    if not callable(mask_mod):
        raise TypeError(f"{mask_mod!r} is not a callable object")
    if not _is_mask(mask_mod):
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    sizes = _block_sizes(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    padded = umbra.nn.functional.pad(mask, (0, -KV_LEN % sizes[1], 0, -Q_LEN % sizes[0]))
    batch, heads, queries, keys = padded.shape
    seen = padded.view(batch, heads, queries // sizes[0], sizes[0], keys // sizes[1], sizes[1]).sum((-3, -1))
    full = seen == sizes[0] * sizes[1] if separate_full_blocks else umbra.zeros_like(seen, dtype=umbra.bool)
    partial = (seen > 0) & ~full
    whole = _ordered(full.to(umbra.int8)) if separate_full_blocks else (None, None)
    return BlockMask.from_kv_blocks(*_ordered(partial.to(umbra.int8)), *whole, BLOCK_SIZE=sizes, mask_mod=mask_mod, seq_lengths=(Q_LEN, KV_LEN))


def create_nested_block_mask(*args, **kwargs):
    raise NotImplementedError("torch.nn.attention.flex_attention.create_nested_block_mask is not in Umbra yet: nested tensors are not there")


def _check(query, key, value, block_mask, enable_gqa):
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.size(-1) != key.size(-1):
        raise ValueError(f"Expect query and key/value to have the same embedding dimension but got E={query.size(-1)} and E={key.size(-1)}.")
    if not enable_gqa and query.size(-3) != key.size(-3):
        raise ValueError(f"Expect query and key/value to have the same number of heads but got Hq={query.size(-3)} and Hkv={key.size(-3)}. "
                         "Try setting enable_gqa=True for GQA.")
    if enable_gqa and query.size(1) % key.size(1):
        raise ValueError(f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={query.size(1)} and Hkv={key.size(1)}.")
    if query.size(0) != key.size(0) and block_mask is None:
        raise ValueError("Expect query and key/value to have the same batch size, or non-none block_mask, but got block_mask=None, "
                         f"Bq={query.size(0)}, and Bkv={key.size(0)}.")
    if block_mask is None:
        return
    for length, covered, name in ((query.size(-2), block_mask.seq_lengths[0], "query"), (key.size(-2), block_mask.seq_lengths[1], "key")):
        if length > covered:
            raise ValueError(f"block_mask was created for block_mask.shape={block_mask.shape} but got {name} length {length}. As the block mask was "
                             "created for a smaller length than you're using it for, you likely need to create a new block mask.")
        if length < covered:
            raise RuntimeError("block_mask was created for a larger length than you're using it for, you can either 1. create a new block mask with "
                               "the correct length, or 2. 'adjust' the existing block mask to the correct length by calling "
                               "block_mask._adjust(q_len, kv_len).")


def flex_attention(query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False, return_lse=False, kernel_options=None, *,
                   return_aux=None):
    """softmax(score_mod(query @ key^T * scale)) @ value for tensors of [batch, heads, length, size], where the mask lets through. `enable_gqa`: fewer heads
    of keys and values, each for several of queries. `return_aux` asks for the logarithms of the sums (lse) or the largest scores too. `kernel_options`
    are for kernels, of which there are none."""
    _check(query, key, value, block_mask, enable_gqa)
    if kernel_options is not None and not isinstance(kernel_options, dict):
        raise TypeError(f"kernel_options is a dict, not {type(kernel_options)}")
    scale = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    group = query.size(1) // key.size(1)
    key, value = (t.repeat_interleave(group, 1) if group > 1 else t for t in (key, value))
    precise = umbra.float64 if query.dtype is umbra.float64 else umbra.float32
    scores = (query @ key.transpose(-2, -1)).to(precise) * scale
    places = _places(*scores.shape, query.device)
    if score_mod is not None:
        scores = _over_scores(score_mod, scores)(scores, *places)
    if block_mask is not None:
        scores = scores.masked_fill(~_over_scores(block_mask.mask_mod)(*places).expand(scores.shape), -math.inf)
    lse = scores.logsumexp(-1)
    nothing = umbra.isneginf(scores).all(-1, keepdim=True)  # such a query sees no key
    weights = scores.masked_fill(nothing, 0).softmax(-1).masked_fill(nothing, 0)
    output = (weights.to(value.dtype) @ value).to(query.dtype)
    if return_aux is not None:
        return output, AuxOutput(lse if return_aux.lse else None, scores.amax(-1) if return_aux.max_scores else None)
    return (output, lse) if return_lse else output
