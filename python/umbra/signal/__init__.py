"""Signal processing: windows."""
from umbra.signal import windows

__all__ = ["windows"]
