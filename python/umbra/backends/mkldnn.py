"""oneDNN. It is used where it is faster; its switches can be set and have no effect on values."""
import contextlib

enabled = True
deterministic = False
allow_tf32 = None
fp32_precision = "none"


def is_available():
    return True


@contextlib.contextmanager
def flags(enabled=False, deterministic=False, allow_tf32=True, fp32_precision="none"):
    """Sets the switches for a region."""
    values = globals()
    before = {name: values[name] for name in ("enabled", "deterministic", "allow_tf32", "fp32_precision")}
    values.update(enabled=enabled, deterministic=deterministic, allow_tf32=allow_tf32, fp32_precision=fp32_precision)
    try:
        yield
    finally:
        values.update(before)
