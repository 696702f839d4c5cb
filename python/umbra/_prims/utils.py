"""Comparing what is known of tensors besides their data."""
from umbra._options import not_built


def compare_tensor_meta(a, b, check_sizes=True, check_strides=False, *, allow_rhs_unbacked=False, check_conj=True):
    """Raises where shape, dtype, device or, if asked for, strides differ."""
    not_built("compare_tensor_meta", allow_rhs_unbacked=(allow_rhs_unbacked, False))
    if check_sizes and tuple(a.shape) != tuple(b.shape):
        raise AssertionError(f"Shapes {a.shape} and {b.shape} are not equal!")
    if a.dtype != b.dtype:
        raise AssertionError(f"Dtypes {a.dtype} and {b.dtype} are not equal!")
    if a.device != b.device and str(a.device).split(":")[0] != str(b.device).split(":")[0]:
        raise AssertionError(f"Devices {a.device} and {b.device} are not equal!")
    if check_strides and a.stride() != b.stride() and a.numel() > 1:
        raise RuntimeError(f"Stride mismatch! Strides are {a.stride()} and {b.stride()}!")
    if check_conj and a.is_conj() != b.is_conj():
        raise RuntimeError(f"Conj mismatch! is_conj is set to {a.is_conj()} and {b.is_conj()}")
