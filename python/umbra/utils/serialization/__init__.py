"""Settings of torch.save and torch.load."""
from umbra.utils.serialization import config  # noqa: F401
