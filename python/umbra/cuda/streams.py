"""Streams and events of devices, of which there are none."""
from umbra.cuda import Event, Stream  # noqa: F401
