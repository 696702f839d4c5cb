"""Ways of training with several processes."""
from umbra.distributed._refusals import refusing_names
from umbra.distributed.algorithms.join import Join, Joinable, JoinHook  # noqa: F401

__getattr__ = refusing_names(__name__)
