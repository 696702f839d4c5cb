"""Comparison of tensors in tests."""
from typing import NamedTuple

import umbra
from umbra._C import Tensor

# By dtype: relative and absolute tolerance.
_TOLERANCES = {
    umbra.float16: (1e-3, 1e-5), umbra.bfloat16: (1.6e-2, 1e-5), umbra.float32: (1.3e-6, 1e-5), umbra.float64: (1e-7, 1e-7),
    umbra.complex64: (1.3e-6, 1e-5), umbra.complex128: (1e-7, 1e-7),
}


def _tolerances(dtypes, rtol, atol):
    if (rtol is None) != (atol is None):
        raise ValueError("rtol and atol must both be specified or both be unspecified")
    pairs = [_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes]
    if rtol is not None:
        return rtol, atol
    return max(r for r, _ in pairs), max(a for _, a in pairs)


def _close_numbers(a, b, rtol, atol, equal_nan):
    if a != a or b != b:
        return equal_nan and a != a and b != b
    return a == b or (abs(a - b) <= atol + rtol * abs(b) and abs(b) != float("inf"))


class _Checks(NamedTuple):
    """What else is compared beside the values."""
    device: bool
    dtype: bool
    layout: bool
    stride: bool
    subclasses: bool

    def compare(self, actual, expected, message):
        pairs = [("device", actual.device, expected.device, self.device), ("dtype", actual.dtype, expected.dtype, self.dtype),
                 ("layout", actual.layout, expected.layout, self.layout), ("stride()", actual.stride(), expected.stride(), self.stride)]
        for name, a, e, wanted in pairs:
            if wanted and a != e:
                raise AssertionError(f"{message}The values for attribute '{name}' do not match: {a} != {e}.")


def _compare(actual, expected, rtol, atol, equal_nan, checks, message):
    if isinstance(actual, dict):
        if actual.keys() != expected.keys():
            raise AssertionError(f"The keys of the mappings do not match: {sorted(actual)} and {sorted(expected)}")
        for key in actual:
            _compare(actual[key], expected[key], rtol, atol, equal_nan, checks, f"item {key!r}: ")
        return
    if isinstance(actual, (list, tuple)) and isinstance(expected, (list, tuple)):
        if len(actual) != len(expected):
            raise AssertionError(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
        for i, (a, e) in enumerate(zip(actual, expected)):
            _compare(a, e, rtol, atol, equal_nan, checks, f"item [{i}]: ")
        return
    if not checks.subclasses and type(actual) is not type(expected):
        raise TypeError(f"{message}No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.")
    if not isinstance(actual, Tensor) or not isinstance(expected, Tensor):
        if actual is None and expected is None:
            return
        actual, expected = umbra.as_tensor(actual), umbra.as_tensor(expected)
    if actual.shape != expected.shape:
        raise AssertionError(f"{message}The values for attribute 'shape' do not match: {actual.shape} != {expected.shape}.")
    checks.compare(actual, expected, message)
    relative, absolute = _tolerances((actual.dtype, expected.dtype), rtol, atol)
    pairs = zip(actual.detach().reshape(-1).tolist(), expected.detach().reshape(-1).tolist())
    wrong = [(i, a, e) for i, (a, e) in enumerate(pairs) if not _close_numbers(a, e, relative, absolute, equal_nan)]
    if wrong:
        i, a, e = wrong[0]
        raise AssertionError(f"{message}Tensor-likes are not close!\n\nMismatched elements: {len(wrong)} / {actual.numel()}\n"
                             f"First difference: {a} != {e} at flat index {i} (up to {relative} relative, {absolute} absolute)")


def assert_close(actual, expected, *, rtol=None, atol=None, equal_nan=False, check_device=True, check_dtype=True, check_layout=True,
                 check_stride=False, allow_subclasses=True, msg=None):
    """Raises AssertionError unless the two are close; nested containers are compared item by item."""
    try:
        _compare(actual, expected, rtol, atol, equal_nan, _Checks(check_device, check_dtype, check_layout, check_stride, allow_subclasses), "")
    except AssertionError as error:
        if msg is None:
            raise
        raise AssertionError(msg(str(error)) if callable(msg) else msg) from None
