"""Choices of models that are spread over several processes: they can be named in options."""
import enum

from umbra.distributed._refusals import refusing_names


class ShardingStrategy(enum.Enum):
    """What of a model is in parts."""
    FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, _HYBRID_SHARD_ZERO2 = range(1, 6)


class BackwardPrefetch(enum.Enum):
    """When the next layer's weights are gathered."""
    BACKWARD_PRE, BACKWARD_POST = range(1, 3)


class StateDictType(enum.Enum):
    """In which form a state is saved."""
    FULL_STATE_DICT, LOCAL_STATE_DICT, SHARDED_STATE_DICT = range(1, 4)


class OptimStateKeyType(enum.Enum):
    """What names a parameter in the state of an optimiser."""
    PARAM_NAME, PARAM_ID = range(1, 3)


__getattr__ = refusing_names(__name__)
