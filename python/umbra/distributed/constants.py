"""How long processes wait for one another."""
from umbra.distributed._stores import DEFAULT_TIMEOUT as default_pg_timeout

__all__ = ["default_pg_timeout"]
