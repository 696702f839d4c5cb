"""Fake runs compared with real ones."""
from umbra._C import Tensor
from umbra._subclasses.fake_tensor import (
    DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode, MetadataMismatchError, UnsupportedOperatorException)
from umbra.utils import _pytree as pytree
from umbra.utils._python_dispatch import TorchDispatchMode


def _tensors(tree):
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


def _compare(real, fake, check_strides):
    """Raises where two tensors do not look the same; strides of single elements do not count."""
    if real.shape != fake.shape:
        raise MetadataMismatchError(f"Shapes torch.Size({list(real.shape)}) and torch.Size({list(fake.shape)}) are not equal!")
    if real.dtype != fake.dtype:
        raise MetadataMismatchError(f"Dtypes {real.dtype} and {fake.dtype} are not equal!")
    if real.device.type != fake.device.type:
        raise MetadataMismatchError(f"Devices {real.device} and {fake.device} are not equal!")
    if not check_strides or real.numel() == 0:
        return
    for place, (size, a, b) in enumerate(zip(real.shape, real.stride(), fake.stride())):
        if size > 1 and a != b:
            raise MetadataMismatchError(f"Stride mismatch! Strides are {real.stride()} and {fake.stride()} (mismatched at {place})!")


def _alias(outputs, others):
    memory = {t.untyped_storage()._cdata for t in others}
    return any(t.untyped_storage()._cdata in memory for t in outputs)


class CrossRefFakeMode(TorchDispatchMode):
    """Runs every operator on fakes, too, and raises where the fake results do not look like the real ones.

        with CrossRefFakeMode():
            model(x)
    """

    def __init__(self, ignore_op_fn=None, *, check_strides=True, check_aliasing=True, only_check_ops_with_meta=True):
        super().__init__()
        self.ignore_op_fn = ignore_op_fn or (lambda func: False)
        self.check_strides, self.check_aliasing = check_strides, check_aliasing
        # Every operator that is built says how its results look; one of a library that does not is passed over, unless that is asked for.
        self.only_check_ops_with_meta = only_check_ops_with_meta

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        fake = None if self.ignore_op_fn(func) else self._run_fake(func, args, kwargs)
        inputs = _tensors((args, kwargs))
        result = func(*args, **kwargs)
        if fake is not None:
            self._check(func, inputs, result, *fake)
        return result

    def _run_fake(self, func, args, kwargs):
        """Fake inputs and results; None where an operator cannot run without data."""
        try:
            with FakeTensorMode() as mode:
                fake_args, fake_kwargs = pytree.tree_map(lambda t: mode.from_tensor(t) if isinstance(t, Tensor) else t, (args, kwargs))
                return _tensors((fake_args, fake_kwargs)), func(*fake_args, **fake_kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException):
            return None
        except UnsupportedOperatorException:
            if self.only_check_ops_with_meta:
                return None
            raise

    def _check(self, func, inputs, result, fake_inputs, fake):
        context = f"When comparing the output of {func} on FakeTensor and concrete Tensors, found"
        real, made = _tensors(result), _tensors(fake)
        if len(real) != len(made):
            raise AssertionError(f"{context} mismatch in number of returns {len(made)} != {len(real)}")
        if self.check_aliasing:
            a, b = _alias(made, fake_inputs), _alias(real, inputs)
            if a != b:
                raise MetadataMismatchError(f"{context} mismatch in outputs_alias_inputs check {a} != {b}")
        for one, other in zip(real, made):
            try:
                _compare(one, other, self.check_strides)
            except MetadataMismatchError as error:
                raise MetadataMismatchError(f"{context} mismatched tensor metadata: {error}") from None
