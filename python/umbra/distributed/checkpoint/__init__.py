"""States of models that several processes hold."""
from umbra.distributed._refusals import refusing_names

__getattr__ = refusing_names(__name__)
