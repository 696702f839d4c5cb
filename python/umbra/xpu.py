"""Intel's GPUs: there is none here."""
from umbra import _accelerator

_accelerator.absent(globals(), "XPU", "XPU")
