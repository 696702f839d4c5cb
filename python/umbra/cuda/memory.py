"""What is said of the memory of a device, of which there is none."""
from umbra.cuda import (empty_cache, memory_allocated, max_memory_allocated, memory_reserved, max_memory_reserved, memory_stats, memory_summary, memory_snapshot, mem_get_info, reset_peak_memory_stats, reset_max_memory_allocated)  # noqa: F401
