"""What a DataLoader is made of: batches from samples, and the processes that read them."""
from umbra.utils.data._utils import collate, fetch, pin_memory, worker  # noqa: F401
