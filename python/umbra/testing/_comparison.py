"""Comparison of tensors, numbers and containers of them, with messages that say what differs most and where."""
import collections.abc
import math
import warnings

import umbra
from umbra._C import Tensor

# By dtype: relative and absolute tolerance.
_TOLERANCES = {
    umbra.float16: (1e-3, 1e-5), umbra.bfloat16: (1.6e-2, 1e-5), umbra.float32: (1.3e-6, 1e-5), umbra.float64: (1e-7, 1e-7),
    umbra.complex64: (1.3e-6, 1e-5), umbra.complex128: (1e-7, 1e-7),
}
_NUMBER_TYPES = {int: umbra.int64, float: umbra.float64, complex: umbra.complex128}


def _usual_tolerances(dtypes):
    """(relative, absolute): the largest of the types'."""
    pairs = [_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes]
    return max(r for r, _ in pairs), max(a for _, a in pairs)


_ROWS, _COLUMNS = ("crow_indices", "col_indices", "values"), ("ccol_indices", "row_indices", "values")
_SPARSE_PARTS = {umbra.sparse_coo: ("_indices", "_values"), umbra.sparse_csr: _ROWS, umbra.sparse_bsr: _ROWS, umbra.sparse_csc: _COLUMNS,
                 umbra.sparse_bsc: _COLUMNS}


class _Pair:
    """Two things that are compared, and the way to them through the containers."""

    def __init__(self, actual, expected, keys, options):
        self.actual, self.expected, self.keys, self.options = actual, expected, keys, options

    def check(self, holds, text):
        if not holds:
            raise AssertionError(text)

    def tolerances(self, dtypes):
        """(relative, absolute): as asked for, or the usual ones."""
        if self.options["rtol"] is not None:
            return self.options["rtol"], self.options["atol"]
        return _usual_tolerances(dtypes)


class _NonePair(_Pair):
    @staticmethod
    def takes(actual, expected, _):
        return actual is None or expected is None

    def compare(self):
        self.check(self.actual is self.expected, f"None mismatch: {self.actual} is not {self.expected}")


def _is_a(kinds):
    """Whether a value is of Python's types or of the same sort in numpy."""
    def test(value):
        return isinstance(value, kinds) or type(value).__module__ == "numpy" and hasattr(value, "item") and not hasattr(value, "__len__") \
            and isinstance(value.item(), kinds)
    return test


_is_bool, _is_number = _is_a(bool), _is_a((int, float, complex))


class _BooleanPair(_Pair):
    @staticmethod
    def takes(actual, expected, _):
        return _is_bool(actual) and _is_bool(expected)

    def compare(self):
        actual, expected = bool(self.actual), bool(self.expected)
        self.check(actual is expected, f"Booleans mismatch: {actual} is not {expected}")


class _NumberPair(_Pair):
    @staticmethod
    def takes(actual, expected, _):
        return _is_number(actual) and _is_number(expected)

    def compare(self):
        actual, expected = (x if isinstance(x, (int, float, complex)) else x.item() for x in (self.actual, self.expected))
        self.check(not self.options["check_dtype"] or type(actual) is type(expected),
                   f"The (d)types do not match: {type(actual)} != {type(expected)}.")
        kinds = [_NUMBER_TYPES[kind] for value in (actual, expected) for kind in (complex, float, int) if isinstance(value, kind)]
        _compare_numbers(actual, expected, *self.tolerances(kinds), self.options["equal_nan"])


class _TensorPair(_Pair):
    @staticmethod
    def takes(actual, expected, options):
        if not (isinstance(actual, type(expected)) or isinstance(expected, type(actual))):
            return False
        if not options["allow_subclasses"] and type(actual) is not type(expected):
            return False
        try:
            umbra.as_tensor(actual), umbra.as_tensor(expected)
        except Exception:  # what cannot become a tensor is not compared as one
            return False
        return True

    def compare(self):
        actual, expected = (x if isinstance(x, Tensor) else umbra.as_tensor(x) for x in (self.actual, self.expected))
        self._compare_attributes(actual, expected)
        if actual.is_meta or expected.is_meta:
            return
        relative, absolute = self.tolerances((actual.dtype, expected.dtype))
        if actual.layout == expected.layout and actual.layout in _SPARSE_PARTS:
            return self._compare_parts(actual, expected, relative, absolute)
        _compare_values(*_alike(actual, expected), relative, absolute, self.options["equal_nan"])

    def _compare_parts(self, actual, expected, relative, absolute):
        """Sparse tensors of one layout: their places are equal, and their values close."""
        kind = str(actual.layout).removeprefix("torch.sparse_").upper()
        if actual.is_sparse:
            self.check(actual.sparse_dim() == expected.sparse_dim(), "The number of sparse dimensions in sparse COO tensors does not match: "
                       f"{actual.sparse_dim()} != {expected.sparse_dim()}")
        self.check(actual._nnz() == expected._nnz(),
                   f"The number of specified values in sparse {kind} tensors does not match: {actual._nnz()} != {expected._nnz()}")
        for part in _SPARSE_PARTS[actual.layout]:
            tolerances = (relative, absolute) if part.endswith("values") else (0, 0)
            parts = _alike(getattr(actual, part)(), getattr(expected, part)())
            _compare_values(*parts, *tolerances, self.options["equal_nan"], f"Sparse {kind} {part.removeprefix('_')}")

    def _compare_attributes(self, actual, expected):
        def same(name, a, e):
            self.check(a == e, f"The values for attribute '{name}' do not match: {a} != {e}.")

        same("shape", actual.shape, expected.shape)
        if actual.layout != expected.layout:
            if self.options["check_layout"]:
                same("layout", actual.layout, expected.layout)
        elif actual.layout == umbra.strided and self.options["check_stride"]:
            same("stride()", actual.stride(), expected.stride())
        if self.options["check_device"]:
            same("device", actual.device, expected.device)
        if self.options["check_dtype"]:
            same("dtype", actual.dtype, expected.dtype)


_PAIRS = (_NonePair, _BooleanPair, _NumberPair, _TensorPair)


def _alike(actual, expected):
    """Both strided, of one type and without history."""
    actual, expected = (x.to_dense() if x.layout != umbra.strided else x for x in (actual.detach(), expected.detach()))
    dtype = umbra.promote_types(actual.dtype, expected.dtype)
    return actual.to(dtype), expected.to(actual.device, dtype)


def _allowed(tolerance, exact):
    return "" if exact else f" (up to {tolerance} allowed)"


def _is_close(actual, expected, relative, absolute, equal_nan):
    if actual == expected:
        return True
    if actual != actual or expected != expected:
        return equal_nan and actual != actual and expected != expected
    return abs(expected) != math.inf and abs(actual - expected) <= absolute + relative * abs(expected)


def _compare_numbers(actual, expected, relative, absolute, equal_nan):
    if _is_close(actual, expected, relative, absolute, equal_nan):
        return
    exact = relative == absolute == 0
    difference = abs(actual - expected)
    share = difference / abs(expected) if expected != 0 else math.inf
    raise AssertionError(f"Scalars are not {'equal' if exact else 'close'}!\n\nExpected {expected} but got {actual}.\n"
                         f"Absolute difference: {difference}{_allowed(absolute, exact)}\nRelative difference: {share}{_allowed(relative, exact)}")


def _compare_values(actual, expected, relative, absolute, equal_nan, what="Tensor-likes"):
    matches = umbra.isclose(actual, expected, rtol=relative, atol=absolute, equal_nan=equal_nan)
    if matches.all():
        return
    if actual.dim() == 0:
        return _compare_numbers(actual.item(), expected.item(), relative, absolute, equal_nan)
    if not actual.is_floating_point() and not actual.is_complex():
        actual, expected = actual.to(umbra.int64), expected.to(umbra.int64)
    exact = relative == absolute == 0
    difference = (actual - expected).abs()
    wrong, count = matches.numel() - int(matches.sum()), matches.numel()
    raise AssertionError(f"{what} are not {'equal' if exact else 'close'}!\n\nMismatched elements: {wrong} / {count} ({wrong / count:.1%})\n"
                         f"Greatest absolute difference: {_greatest(difference, matches)}{_allowed(absolute, exact)}\n"
                         f"Greatest relative difference: {_greatest(difference / expected.abs(), matches)}{_allowed(relative, exact)}")


def _greatest(values, matches):
    """The largest number where the two do not match, and its place."""
    largest, place = values.masked_fill(matches, 0).reshape(-1).max(0)
    return f"{largest.item()} at index {tuple(int(i) for i in umbra.unravel_index(place, values.shape))}"


def _pairs(actual, expected, keys, options):
    """All pairs of two structures, in order; what cannot be compared raises before anything is."""
    def is_sequence(value):
        return isinstance(value, collections.abc.Sequence) and not isinstance(value, str)

    if is_sequence(actual) and is_sequence(expected):
        if len(actual) != len(expected):
            raise AssertionError(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}{_place(keys)}")
        for i, (a, e) in enumerate(zip(actual, expected)):
            yield from _pairs(a, e, (*keys, i), options)
        return
    if isinstance(actual, collections.abc.Mapping) and isinstance(expected, collections.abc.Mapping):
        missing, additional = expected.keys() - actual.keys(), actual.keys() - expected.keys()
        if missing or additional:
            raise AssertionError(f"The keys of the mappings do not match:\nMissing keys in the actual mapping: {sorted(missing)}\n"
                                 f"Additional keys in the actual mapping: {sorted(additional)}{_place(keys)}")
        for key in sorted(actual.keys()) if all(isinstance(k, str) for k in actual) else actual.keys():
            yield from _pairs(actual[key], expected[key], (*keys, key), options)
        return
    for kind in _PAIRS:
        if kind.takes(actual, expected, options):
            yield kind(actual, expected, keys, options)
            return
    raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.{_place(keys)}")


def _place(keys):
    return f"\n\nThe failure occurred for item {''.join(str([key]) for key in keys)}" if keys else ""


def assert_close(actual, expected, *, rtol=None, atol=None, equal_nan=False, check_device=True, check_dtype=True, check_layout=True,
                 check_stride=False, allow_subclasses=True, msg=None):
    """Raises AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere; nested containers are compared item by item.

        assert_close(model(x), torch.tensor([0.5, 1.0]), rtol=1e-4, atol=1e-6)

    `msg` takes the place of the message; a function makes a message of it."""
    if (rtol is None) != (atol is None):
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {'rtol' if rtol is None else 'atol'}.")
    options = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, "check_device": check_device, "check_dtype": check_dtype,
               "check_layout": check_layout, "check_stride": check_stride, "allow_subclasses": allow_subclasses}
    text = _first_difference(actual, expected, options)
    if text is not None:
        raise AssertionError(text if msg is None else msg(text) if callable(msg) else msg)


def _first_difference(actual, expected, options):
    """What the first pair that differs has to say; None where all are close."""
    try:
        pairs = list(_pairs(actual, expected, (), options))
    except AssertionError as error:
        return str(error)
    for pair in pairs:
        try:
            pair.compare()
        except AssertionError as error:
            return f"{error}{_place(pair.keys)}"
    return None


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """`assert_close` that looks at values alone. Deprecated, as in PyTorch."""
    warnings.warn("`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. "
                  "Please use `torch.testing.assert_close()` instead.", FutureWarning, stacklevel=2)
    actual, expected = (x if isinstance(x, Tensor) else umbra.tensor(x) for x in (actual, expected))
    if rtol is None and atol is None:
        rtol, atol = _usual_tolerances((actual.dtype, expected.dtype))
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False, check_stride=False,
                 msg=msg or None)
