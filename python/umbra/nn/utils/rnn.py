"""Sequences of different lengths: packed, so that no step is computed for padding."""
from typing import NamedTuple, Optional

import umbra


class _Packed(NamedTuple):
    data: umbra.Tensor
    batch_sizes: umbra.Tensor
    sorted_indices: Optional[umbra.Tensor]
    unsorted_indices: Optional[umbra.Tensor]


class PackedSequence(_Packed):
    """The steps of several sequences one after the other; `batch_sizes` says how many sequences have each step."""

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("expected data and batch_sizes")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(f"batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. They should be "
                             f"instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn. Got {batch_sizes.device}")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs):
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        keep = {name: value for name, value in kwargs.items() if name not in ("device", "dtype")}
        move = lambda t: t.to(data.device, **keep) if t is not None else None  # noqa: E731
        return type(self)(data, self.batch_sizes, move(self.sorted_indices), move(self.unsorted_indices))

    def cpu(self, *args, **kwargs):
        return self.to(*args, device="cpu", **kwargs)

    def double(self):
        return self.to(dtype=umbra.double)

    def float(self):
        return self.to(dtype=umbra.float)

    def half(self):
        return self.to(dtype=umbra.half)

    def short(self):
        return self.to(dtype=umbra.short)

    def char(self):
        return self.to(dtype=umbra.int8)

    def byte(self):
        return self.to(dtype=umbra.uint8)

    def long(self):
        return self.to(dtype=umbra.long)

    def int(self):
        return self.to(dtype=umbra.int)

    @property
    def is_cuda(self):
        return self.data.is_cuda

    def is_pinned(self):
        return self.data.is_pinned()


def invert_permutation(permutation):
    """Where each element went."""
    if permutation is None:
        return None
    output = umbra.empty_like(permutation, memory_format=umbra.contiguous_format)
    output.scatter_(0, permutation, umbra.arange(0, permutation.numel(), device=permutation.device))
    return output


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Packs padded sequences; with `enforce_sorted=False` they need not be sorted by length."""
    lengths = umbra.as_tensor(lengths, dtype=umbra.int64, device="cpu") if not isinstance(lengths, umbra.Tensor) else lengths
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = umbra.sort(lengths, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    data, batch_sizes = umbra.ops.aten._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, sorted_indices, None)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """Sequences with padding, and their lengths."""
    if total_length is not None:
        longest = sequence.batch_sizes.size(0)
        if total_length < longest:
            raise ValueError(f"Expected total_length to be at least the length of the longest sequence in input, but got total_length={total_length} "
                             f"and max sequence length being {longest}")
    else:
        total_length = -1
    padded, lengths = umbra.ops.aten._pad_packed_sequence(sequence.data, sequence.batch_sizes, batch_first, padding_value, total_length)
    if sequence.unsorted_indices is not None:
        return padded.index_select(0 if batch_first else 1, sequence.unsorted_indices), lengths[sequence.unsorted_indices.cpu()]
    return padded, lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Sequences in one tensor, the shorter ones padded."""
    if isinstance(sequences, umbra.Tensor):
        sequences = sequences.unbind(0)
    elif not hasattr(sequences, "__iter__"):
        raise RuntimeError(f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    return umbra.ops.aten.pad_sequence(list(sequences), batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """Copies of the sequences one by one, without their padding."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [sequence[:int(length)].clone(memory_format=umbra.contiguous_format)
            for sequence, length in zip(padded_sequences, lengths, strict=True)]


def pack_sequence(sequences, enforce_sorted=True):
    """Packs a list of sequences."""
    lengths = umbra.as_tensor([sequence.size(0) for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The sequences of a packed one, as a list."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
