"""cuDNN is not part of this build; its switches can be set and have no effect."""
import contextlib

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True
fp32_precision = "none"


def is_available():
    return False


def version():
    return None


def is_acceptable(tensor):
    """No tensor is on a device that has it."""
    return False


@contextlib.contextmanager
def flags(enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True, fp32_precision="none"):
    """Sets the switches for a region."""
    values = globals()
    before = {name: values[name] for name in ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32", "fp32_precision")}
    values.update(enabled=enabled, benchmark=benchmark, benchmark_limit=benchmark_limit, deterministic=deterministic, allow_tf32=allow_tf32,
                  fp32_precision=fp32_precision)
    try:
        yield
    finally:
        values.update(before)
