"""Meta's accelerators: there is none here."""
from umbra import _accelerator

_accelerator.absent(globals(), "MTIA", "MTIA")
