"""Where torch keeps what torch.distributed has: the same things."""
from umbra.distributed import *  # noqa: F401,F403
from umbra.distributed import Backend, GroupMember, ReduceOp, Work, group, reduce_op  # noqa: F401
from umbra.distributed._collectives import (  # noqa: F401
    _all_gather_base, _check_single_tensor, _check_tensor_list, _reduce_scatter_base)
from umbra.distributed._group import _get_default_group, _rank_not_in_group, _World, _world  # noqa: F401
from umbra.distributed._refusals import refusing_names
from umbra.distributed._stores import DEFAULT_TIMEOUT as default_pg_timeout  # noqa: F401

__getattr__ = refusing_names(__name__)
