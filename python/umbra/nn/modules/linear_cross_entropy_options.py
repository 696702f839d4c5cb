"""How `linear_cross_entropy` takes its rows in chunks."""
import dataclasses

import umbra

__all__ = ["LinearCrossEntropyOptions"]

_POLICIES = ("auto", "accurate", "compact")
_TYPES = (None, umbra.float16, umbra.bfloat16, umbra.float32, umbra.float64)


@dataclasses.dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """The logits of one chunk of rows are there at a time, and are computed again for the gradient.

    `batch_chunk_size` says how many rows a chunk has; without it `chunking_method` does: "aspect_ratio" makes the logits of a chunk about as
    large as the input, "aspect_ratio:N" an Nth of that. What PyTorch's other options trade (`acc_policy`, `acc_dtype`, `allow_retain_graph`) is
    not at stake here: sums are as exact, and the graph can be kept, whatever they are.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: umbra.dtype | None = None

    def __post_init__(self):
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}; expected one of {', '.join(map(repr, _POLICIES))}")
        if self.chunking_method not in (None, "auto"):
            name, _, factor = self.chunking_method.partition(":")
            if name != "aspect_ratio" or ":" in self.chunking_method and not (factor.isdigit() and int(factor) > 0):
                raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        if self.batch_chunk_size is not None and not (isinstance(self.batch_chunk_size, int) and self.batch_chunk_size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {self.batch_chunk_size!r}")
        if self.acc_dtype not in _TYPES:
            raise ValueError("acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, torch.float64}, got "
                             f"{self.acc_dtype!r}. Pass acc_dtype=None to let the op pick automatically.")

    def rows(self, batch, features, classes):
        """How many rows a chunk has."""
        chosen = batch
        if self.chunking_method is not None:
            factor = int(self.chunking_method.partition(":")[2] or 1)
            wanted = -(-batch // -(-classes // features))
            chosen = max(1, min((1 << (wanted - 1).bit_length()) // factor, batch)) if batch else 1
        if self.batch_chunk_size is None:
            return max(chosen, 1)
        if self.chunking_method not in (None, "auto") and chosen != self.batch_chunk_size:
            raise ValueError(f"batch_chunk_size={self.batch_chunk_size} and chunking_method={self.chunking_method!r}, which gives {chosen}, disagree")
        return self.batch_chunk_size
