"""Everything that exposes memory, on tensors that have none: an error or a copy, never a crash."""
import copy
import io
import pickle

import numpy
import pytest

import umbra
from umbra import _C
from umbra._subclasses.fake_tensor import FakeTensorMode


class Wrapper(umbra.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return umbra.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        result = func(*[a.inner if isinstance(a, Wrapper) else a for a in args], **(kwargs or {}))
        return Wrapper(result) if isinstance(result, umbra.Tensor) else result


@pytest.fixture(params=["fake", "meta", "wrapper"])
def without_data(request):
    return {"fake": lambda: FakeTensorMode().from_tensor(umbra.ones(2)), "meta": lambda: umbra.ones(2, device="meta"),
            "wrapper": lambda: Wrapper(umbra.ones(2))}[request.param]()


@pytest.mark.parametrize("read", [
    lambda t: t.numpy(), lambda t: t.numpy(force=True), lambda t: numpy.asarray(t), lambda t: t.__dlpack__(), lambda t: t.tolist(),
    lambda t: memoryview(t.untyped_storage()._buffer()), lambda t: t.untyped_storage()[0], lambda t: umbra.save(t.untyped_storage(), io.BytesIO())])
def test_reading_is_refused(without_data, read):
    with pytest.raises((RuntimeError, TypeError, BufferError, ValueError, NotImplementedError)):
        read(without_data)


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
def test_copies(without_data, make):
    copied = make(without_data)
    assert type(copied) is type(without_data)
    assert copied.shape == (2,) and copied.device == without_data.device


def test_numpy_of_wrapper_says_what_torch_says():
    with pytest.raises(RuntimeError, match=r"\.numpy\(\) is not supported for tensor subclasses\."):
        Wrapper(umbra.ones(2)).numpy()


def test_shallow_copy_shares_memory():
    t = umbra.ones(3, requires_grad=True)
    t.note = "kept"
    copied = copy.copy(t)
    assert copied.data_ptr() == t.data_ptr() and copied.requires_grad and copied.note == "kept"
    assert copy.deepcopy(t).data_ptr() != t.data_ptr()


def test_pickle():
    meta = pickle.loads(pickle.dumps(umbra.ones(2, 3, device="meta").t()))
    assert meta.is_meta and meta.stride() == (1, 3)
    strided = pickle.loads(pickle.dumps(umbra.arange(6).reshape(2, 3).t()[1:]))
    assert strided.tolist() == [[1, 4], [2, 5]]
    with pytest.raises(TypeError, match="no data"):
        pickle.dumps(FakeTensorMode().from_tensor(umbra.ones(2)))
    wrapper = pickle.loads(pickle.dumps(Wrapper(umbra.ones(2))))
    assert type(wrapper) is Wrapper and wrapper.inner.tolist() == [1, 1]


def test_dlpack_refusals_are_buffer_errors():
    for tensor in (umbra.ones(2, requires_grad=True), umbra.ones(2, dtype=umbra.complex64).conj(), umbra.ones(2, device="meta")):
        with pytest.raises(BufferError):
            tensor.__dlpack__()
    with pytest.raises(ValueError, match="Unknown device type"):
        umbra.ones(2, device="meta").__dlpack_device__()


@pytest.mark.parametrize("name", ["_sym_hint", "_sym_expression", "_sym_has_hint", "_sym_shape_env"])
def test_private_functions_check_their_arguments(name):
    for wrong in (1, None, "x", umbra.ones(2)):
        with pytest.raises(TypeError):
            getattr(_C, name)(wrong)


@pytest.mark.parametrize("name", ["_disabled_torch_function_impl", "_disabled_torch_dispatch_impl"])
def test_handlers_that_are_off_check_their_arguments(name):
    handler = getattr(_C, name)
    assert handler(umbra.add, (), (umbra.ones(2), 1)).tolist() == [2, 2]
    for wrong in ((umbra.add, (), 1), (umbra.add, (), (), 1), (umbra.add,)):
        with pytest.raises(TypeError):
            handler(*wrong)


def test_item_of_meta_tensors():
    for read in (umbra.Tensor.item, float, int, bool):
        with pytest.raises(RuntimeError, match="cannot be called on meta tensors"):
            read(umbra.ones((), device="meta"))


def test_leaving_a_module_that_was_not_entered():
    with pytest.raises(RuntimeError, match="no module"):
        _C._leave_module()


def test_version_of_inference_tensor():
    with umbra.inference_mode():
        t = umbra.ones(2)
    with pytest.raises(RuntimeError, match="do not track version counter"):
        t._version


def test_hooks_that_refer_to_their_tensor_are_collected():
    import gc
    import weakref

    class Scaled(umbra.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.factor, self.seen = umbra.nn.Parameter(umbra.ones(3)), 2, []
            self.weight.register_hook(lambda gradient: gradient * self.factor)
            self.weight.register_post_accumulate_grad_hook(lambda leaf: self.seen.append(leaf.shape))
    module = Scaled()
    (module.weight * 2).sum().backward()
    gc.collect()
    (module.weight * 2).sum().backward()
    assert module.weight.grad.tolist() == [8.0] * 3 and len(module.seen) == 2
    gone = weakref.ref(module)
    del module
    gc.collect()
    assert gone() is None

    class Marker:
        pass
    marker, leaf = Marker(), umbra.ones(2, requires_grad=True)
    leaf.register_hook(lambda gradient: (marker, leaf) and None)
    gone = weakref.ref(marker)
    del marker, leaf
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("of_function", [False, True])
@pytest.mark.parametrize("hook", ["register_hook", "register_prehook", "on the tensor"])
def test_a_hook_that_refers_to_its_own_node_is_collected_with_the_graph(hook, of_function):
    import gc
    import weakref

    class Twice(umbra.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    class Marker:
        calls = 0

    def made():
        marker, leaf = Marker(), umbra.ones(2, requires_grad=True)
        between = Twice.apply(leaf) if of_function else leaf * 2
        node = between.grad_fn

        def count(*_):
            node, marker.calls = node_of[0], marker.calls + 1
        node_of = [node]
        (between.register_hook if hook == "on the tensor" else getattr(node, hook))(count)
        return between.sum(), weakref.ref(marker)
    loss, gone = made()
    gc.collect()
    loss.backward()
    assert gone().calls == 1
    del loss
    gc.collect()
    assert gone() is None


def test_attributes_stay_with_a_tensor_that_only_another_tensor_holds():
    import gc
    holder, first, second = umbra.empty(2), umbra.empty(2), umbra.empty(2)
    first.note, first.other, second.other = "kept", second, first
    holder.grad = first
    del first, second
    gc.collect()
    assert holder.grad.note == "kept" and holder.grad.other.other is holder.grad


def test_hooks_live_as_long_as_a_graph_needs_them():
    import gc
    seen = []
    leaf = umbra.ones(2, requires_grad=True)
    leaf.register_hook(lambda gradient: seen.append(gradient.tolist()))
    loss = (leaf * 3).sum()
    del leaf
    gc.collect()
    loss.backward()
    assert seen == [[3.0, 3.0]]


class _Held:
    """Something to see go."""


def _through_custom_function(keep):
    """A result of a custom function whose context keeps something, and a weak reference to that."""
    import weakref
    held = _Held()

    class Doubles(umbra.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            result = a * 2
            keep(ctx, held, result)
            return result

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2
    return Doubles.apply(umbra.ones(2, requires_grad=True)), weakref.ref(held)


def test_the_context_of_a_custom_function_goes_with_its_graph():
    import gc

    def simply(ctx, held, _):
        ctx.held = held
    result, gone = _through_custom_function(simply)
    result.sum().backward()
    assert gone() is not None and result.grad_fn.held is gone()
    del result
    gc.collect()
    assert gone() is None


def test_a_context_that_refers_to_itself_or_to_its_result_is_collected():
    import gc

    def itself(ctx, held, _):
        ctx.held, ctx.again = held, ctx

    def the_result(ctx, held, result):
        ctx.held, ctx.result = held, result
    for keep in (itself, the_result):
        result, gone = _through_custom_function(keep)
        result.sum().backward()
        gc.collect()
        assert gone() is not None
        del result
        gc.collect()
        assert gone() is None, keep.__name__


def test_a_module_with_backward_hooks_is_collected():
    import gc
    import weakref

    class Watched(umbra.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = umbra.nn.Linear(2, 2)
            self.linear.register_full_backward_hook(lambda module, inputs, outputs: self and None)

        def forward(self, x):
            return self.linear(x)
    module = Watched()
    module(umbra.ones(1, 2, requires_grad=True)).sum().backward()
    gone = weakref.ref(module)
    del module
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("use", [lambda s: s.data_ptr(), lambda s: s.resize_(0), lambda s: s.copy_(s), lambda s: s.fill_(0), lambda s: s.clone()])
def test_the_storage_of_a_wrapper_has_nothing_to_read_or_change(use):
    wrapper = Wrapper(umbra.ones(2))
    assert wrapper.data_ptr() == 0 and wrapper.untyped_storage().nbytes() == 8
    with pytest.raises(RuntimeError, match="on an invalid python storage"):
        use(wrapper.untyped_storage())
