"""`opcheck`: whether an operator keeps what its schema, its fake function and its gradient promise."""
import umbra
from umbra import _C
from umbra._C import OpOverload, Tensor
from umbra._ops import OpOverloadPacket
from umbra._subclasses.fake_tensor import MetadataMismatchError
from umbra.utils._pytree import tree_leaves, tree_map

_DEFAULT_TESTS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
_ALL_TESTS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_static", "test_aot_dispatch_dynamic")


class OpCheckError(Exception):
    """A check of `opcheck` failed."""


def _tensors(value):
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]


def _copy(value):
    """The arguments anew: leaves that require gradients as before."""
    return tree_map(lambda leaf: leaf.detach().clone().requires_grad_(leaf.requires_grad) if isinstance(leaf, Tensor) else leaf, value)


def _by_name(op, args, kwargs):
    """(schema argument, value) pairs of a call."""
    arguments = op._schema.arguments
    given = list(zip(arguments, args))
    return given + [(a, kwargs[a.name]) for a in arguments[len(args):] if a.name in kwargs]


def _same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and bool(umbra.equal(a, b)) or bool(((a == b) | ((a != a) & (b != b))).all())


def test_schema(op, args, kwargs, tolerances):
    """Writes and aliases are those that the schema declares."""
    args, kwargs = _copy((args, kwargs))
    args, kwargs = tree_map(lambda leaf: leaf.detach() if isinstance(leaf, Tensor) else leaf, (args, kwargs))
    before = _copy((args, kwargs))
    with umbra.no_grad():
        result = op(*args, **kwargs)
    produced = {_C._storage_id(t) for t in _tensors(result)}
    for (argument, value), (_, old) in zip(_by_name(op, args, kwargs), _by_name(op, *before)):
        written = argument.alias_info is not None and argument.alias_info.is_write
        for now, then in zip(_tensors(value), _tensors(old)):
            if not written and not _same(now, then):
                raise RuntimeError(f"Argument {argument.name} is not defined as mutable but was mutated")
            if argument.alias_info is None and _C._storage_id(now) in produced:
                raise RuntimeError(f"Argument {argument.name} is not defined to alias output but was aliasing")


def test_autograd_registration(op, args, kwargs, tolerances):
    """An operator whose results require gradients has a kernel at Autograd, or is composite."""
    args, kwargs = _copy((args, kwargs))
    if not any(t.requires_grad for t in _tensors((args, kwargs))) or op.namespace == "aten":
        return
    result = op(*args, **kwargs)
    # A kernel that left no history has a node that only refuses: nothing is silently wrong then.
    recorded = any(t.requires_grad and not (t.grad_fn and t.grad_fn.name() == "NotImplemented") for t in _tensors(result))
    if not recorded or _C._is_differentiable(op.name()):
        return
    raise RuntimeError(f"{op.name()}: at least one output of this operator has requires_grad=True but the operator does not have an autograd "
                       "kernel defined at an autograd key (e.g. DispatchKey::Autograd). This could mean that you have incorrectly registered "
                       "an autograd kernel to a non-Autograd DispatchKey, which may lead to silently incorrect results.")


def _known(values):
    return all(isinstance(value, int) for value in values)


def _compare_metadata(op, real, fake):
    if isinstance(real, Tensor) != isinstance(fake, Tensor):
        raise AssertionError(f"{op} gives {type(real).__name__} with data and {type(fake).__name__} without")
    if not isinstance(real, Tensor):
        return
    pairs = [("Dtypes", real.dtype, fake.dtype), ("Devices", real.device, fake.device), ("Ranks", real.dim(), fake.dim())]
    if _known(fake.shape):  # else only the run tells
        pairs += [("Shapes", real.shape, fake.shape), ("Strides", real.stride(), fake.stride())]
    for what, a, b in pairs:
        if a != b:
            raise MetadataMismatchError(f"When comparing the output of {op} on FakeTensor and concrete Tensors, found mismatched tensor metadata: "
                                        f"{what} {a} and {b} are not equal!")


def test_faketensor(op, args, kwargs, tolerances):
    """The fake run gives the metadata of the run with data."""
    from umbra._subclasses.fake_tensor import FakeTensorMode
    from umbra.fx.experimental.symbolic_shapes import ShapeEnv
    mode = FakeTensorMode(shape_env=ShapeEnv())
    fake_args, fake_kwargs = tree_map(
        lambda leaf: mode.from_tensor(leaf, static_shapes=True) if isinstance(leaf, Tensor) else leaf, _copy((args, kwargs)))
    with mode:
        fake = op(*fake_args, **fake_kwargs)
    args, kwargs = _copy((args, kwargs))
    real = op(*args, **kwargs)
    real, fake = tree_leaves(real), tree_leaves(fake)
    if len(real) != len(fake):
        raise AssertionError(f"{op} gives {len(real)} results with data and {len(fake)} without")
    for a, b in zip(real, fake):
        _compare_metadata(op, a, b)


def _run_with_gradients(function, args, kwargs):
    args, kwargs = _copy((args, kwargs))
    result = function(*args, **kwargs)
    outputs = [t for t in _tensors(result) if t.requires_grad]
    inputs = [t for t in _tensors((args, kwargs)) if t.requires_grad]
    gradients = []
    if outputs and inputs:
        gradients = umbra.autograd.grad([t.abs().sum() if t.is_complex() else t.sum() for t in outputs], inputs, allow_unused=True)
    written = [t.detach() for t in _tensors((args, kwargs))]
    return [t.detach() for t in _tensors(result)], list(gradients), written


def _test_aot_dispatch(op, args, kwargs, tolerances, dynamic):
    """Differentiated ahead of time, it gives the values and gradients of the plain call."""
    from umbra._functorch.aot_autograd import aot_function
    from umbra._functorch.compilers import nop
    plain = _run_with_gradients(op, args, kwargs)
    leaves = _tensors((args, kwargs))

    def function(*tensors):
        items = iter(tensors)
        a, k = tree_map(lambda leaf: next(items) if isinstance(leaf, Tensor) else leaf, (args, kwargs))
        return op(*a, **k)
    compiled = _run_with_gradients(aot_function(function, nop, dynamic=dynamic), leaves, {})
    umbra.testing.assert_close(compiled, plain, **tolerances)


def test_aot_dispatch_static(op, args, kwargs, tolerances):
    _test_aot_dispatch(op, args, kwargs, tolerances, dynamic=False)


def test_aot_dispatch_dynamic(op, args, kwargs, tolerances):
    _test_aot_dispatch(op, args, kwargs, tolerances, dynamic=True)


_TESTS = {"test_schema": test_schema, "test_autograd_registration": test_autograd_registration, "test_faketensor": test_faketensor,
          "test_aot_dispatch_static": test_aot_dispatch_static, "test_aot_dispatch_dynamic": test_aot_dispatch_dynamic}


def opcheck(op, args, kwargs=None, *, test_utils=_DEFAULT_TESTS, raise_exception=True, atol=None, rtol=None):
    """Runs an operator on example arguments and checks it: {test: "SUCCESS"}; a failure raises OpCheckError, or is in the dict."""
    from umbra._library.custom_ops import CustomOpDef
    if isinstance(op, CustomOpDef):
        op = op._opoverload
    if isinstance(op, OpOverloadPacket):
        op = op.default
    if not isinstance(op, OpOverload):
        raise ValueError(f"opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. torch.ops.aten.sin.default, got {type(op)}")
    tests = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    if not set(tests) <= set(_ALL_TESTS):
        raise ValueError(f"opcheck(op, ..., test_utils={tests}), expected test_utils to be subset of {_ALL_TESTS} but it was not")
    tolerances = {} if atol is None and rtol is None else {"atol": atol, "rtol": rtol}
    results = {}
    for name in tests:
        try:
            _TESTS[name](op, tuple(args), kwargs or {}, tolerances)
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)") from error
            results[name] = error
    return results
