"""How a tensor would be spread over machines."""
import dataclasses


class Placement:
    def is_shard(self, dim=None):
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self):
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op=None):
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclasses.dataclass(frozen=True)
class Shard(Placement):
    """In parts along a dimension."""
    dim: int


@dataclasses.dataclass(frozen=True)
class Replicate(Placement):
    """Whole on each machine."""


@dataclasses.dataclass(frozen=True)
class Partial(Placement):
    """As terms that are still to be reduced."""
    reduce_op: str = "sum"
