"""What packages ask of torch's compiler."""
import warnings


def is_compile_supported(device_type):
    """Whether programs for a type of device can be compiled to code of its own: there is no such compiler here."""
    return False


def same(ref, res, fp64_ref=None, cos_similarity=False, tol=1e-4, equal_nan=False):
    """Whether two results are alike: the same containers, and tensors within a tolerance."""
    from umbra import _C
    from umbra._options import not_built
    from umbra.utils import _pytree
    not_built("torch._dynamo.utils.same", fp64_ref=(fp64_ref, None), cos_similarity=(cos_similarity, False))
    (expected, spec), (found, other) = _pytree.tree_flatten(ref), _pytree.tree_flatten(res)

    def alike(a, b):
        if not isinstance(a, _C.Tensor) or not isinstance(b, _C.Tensor):
            return type(a) is type(b) and a == b
        return a.shape == b.shape and a.dtype == b.dtype and a.allclose(b, rtol=tol, atol=tol, equal_nan=equal_nan)
    return spec == other and all(map(alike, expected, found))


_said = set()


def warn_once(msg, stacklevel=1):
    """Warns of this text the first time that it is said."""
    if msg not in _said:
        _said.add(msg)
        warnings.warn(msg, stacklevel=stacklevel + 1)
