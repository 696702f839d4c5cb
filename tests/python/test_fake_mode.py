"""Fake modes as torch's users know them: options, the converter and its memo, counts of calls, tensors that carry real ones."""
import pickle
from unittest.mock import patch

import pytest

import umbra
from call_log import CallLog
from umbra import nn
from umbra._functorch import config
from umbra._functorch.levels import _add_batch_dim, get_unwrapped, is_batchedtensor, maybe_get_bdim
from umbra._guards import TracingContext, detect_fake_mode, tracing
from umbra._subclasses import fake_tensor
from umbra._subclasses.fake_tensor import (
    DataDependentOutputException, DynamicOutputShapeException, FakeTensor, FakeTensorConverter, FakeTensorDeviceMismatchError, FakeTensorMode, maybe_get_fake_mode)
from umbra.fx.experimental.symbolic_shapes import ShapeEnv
from umbra.fx.passes.fake_tensor_prop import FakeTensorProp


# ---- modes ----

def test_a_mode_refuses_the_tensors_of_another_one_also_when_all_are_of_that_one():
    with FakeTensorMode():
        a = umbra.ones(2)
    assert (a + a).fake_mode is a.fake_mode
    with FakeTensorMode():
        with pytest.raises(AssertionError, match="Mixing fake modes NYI"):
            a + a


@pytest.mark.parametrize("call,text", [
    (lambda fake, real: fake + real, "aten.add.Tensor(FakeTensor(..., size=(2,)), tensor([...], size=(2,)))"),
    (lambda fake, real: umbra.cat([fake, real.int()]), "aten.cat.default([FakeTensor(..., size=(2,)), tensor([...], size=(2,), dtype=torch.int32)])"),
    (lambda fake, real: umbra.add(fake, real, alpha=2), "aten.add.Tensor(FakeTensor(..., size=(2,)), tensor([...], size=(2,)), alpha=2)"),
    (lambda fake, real: umbra.where(real > 0, fake, umbra.tensor(1.)), "aten.where.self(tensor([...], size=(2,)), FakeTensor(..., size=(2,)), tensor(1., size=()))"),
    (lambda fake, real: fake * real.requires_grad_(), "aten.mul.Tensor(FakeTensor(..., size=(2,)), tensor([...], size=(2,), requires_grad=True))"),
], ids=["add", "list", "keyword", "number", "gradient"])
def test_a_real_tensor_among_fakes_is_refused_with_the_call(call, text):
    with pytest.raises(AssertionError) as error:
        call(FakeTensorMode().from_tensor(umbra.ones(2)), umbra.ones(2))
    assert str(error.value).endswith("Found in " + text)


def test_a_real_tensor_inside_of_a_mode_is_refused_with_the_call():
    x = umbra.ones(2)
    with FakeTensorMode(), pytest.raises(AssertionError, match=r"Found in aten.add.Tensor\(tensor\(\[...\], size=\(2,\)\), 1\)"):
        x + 1
    with FakeTensorMode(), pytest.raises(AssertionError, match=r"metadata mutating ops on non-Fake .* aten.unsqueeze_.default\(tensor\(\[...\], size=\(2,\)\), 0\)"):
        x.unsqueeze_(0)


def test_a_buffer_stays_one():
    fake = FakeTensorMode().from_tensor(nn.Buffer(umbra.ones(2), persistent=False))
    assert isinstance(fake, nn.Buffer) and not fake.persistent and not isinstance(FakeTensorMode().from_tensor(umbra.ones(2)), nn.Buffer)


def test_tensors_on_two_devices_have_an_error_of_their_own():
    with FakeTensorMode():
        a, b = umbra.ones(3, device="cuda"), umbra.ones(3)
        for call in (lambda: a + b, lambda: umbra.cat([a, b]), lambda: umbra.sin(b, out=a)):
            with pytest.raises(FakeTensorDeviceMismatchError, match="found at least two devices"):
                call()


def test_a_mode_that_does_not_allow_meta_tensors_refuses_them():
    with patch.object(config, "fake_tensor_allow_meta", False), FakeTensorMode() as mode:
        assert not mode.allow_meta
        with pytest.raises(AssertionError, match="meta"):
            umbra.ones(2, device="meta")
    with FakeTensorMode():
        assert umbra.ones(2, device="meta").device.type == "meta"


def test_inside_a_kernel_tensors_say_that_they_are_on_meta():
    mode = FakeTensorMode()
    with mode:
        x = umbra.ones(2)
    with fake_tensor.in_kernel_invocation_manager(mode):
        assert x.device.type == "meta"
    assert x.device.type == "cpu"


def test_the_mode_of_a_capture_is_found_in_its_context_its_thread_and_its_inputs():
    mode = FakeTensorMode()
    assert detect_fake_mode() is None
    with tracing(TracingContext(mode)):
        assert detect_fake_mode() is mode
    x = mode.from_tensor(umbra.ones(2))
    assert detect_fake_mode([1, {"x": x}]) is mode and maybe_get_fake_mode(x) is mode and maybe_get_fake_mode(1) is None
    with FakeTensorMode(), pytest.raises(AssertionError, match="doesn't match mode"):
        detect_fake_mode([x])


def test_propagation_in_a_mode_of_its_own_refuses_fakes_of_another():
    graph = umbra.fx.symbolic_trace(nn.Sequential(nn.Linear(3, 2)))
    with FakeTensorMode() as mode:
        parameters = {name: mode.from_tensor(p) for name, p in graph.named_parameters()}
    with nn.utils.stateless._reparametrize_module(graph, parameters):
        assert FakeTensorProp(graph, mode).propagate(umbra.ones(4, 3)).shape == (4, 2)
        with pytest.raises(AssertionError, match="Mixing fake modes"):
            FakeTensorProp(graph).propagate(umbra.ones(4, 3))


# ---- conversion ----

def test_a_converter_knows_what_is_in_use():
    mode, converter = FakeTensorMode(), FakeTensorConverter()
    x, y = umbra.rand(2, 2, 2), umbra.rand(4, 2)
    y.set_(x.untyped_storage(), 0, (8,), (1,))
    a, b = converter.from_real_tensor(mode, x), converter.from_real_tensor(mode, y)
    assert converter.from_real_tensor(mode, x) is a and x in converter.tensor_memo
    assert a.untyped_storage()._cdata == b.untyped_storage()._cdata
    assert len(converter.tensor_memo) == 2 and len(converter.meta_converter.storage_memo) == 1
    assert len(mode.fake_tensor_converter.tensor_memo) == 0
    del x, a
    assert len(converter.tensor_memo) == 1 and len(converter.meta_converter.storage_memo) == 1
    del y, b
    assert len(converter.tensor_memo) == 0 and len(converter.meta_converter.storage_memo) == 0


def test_a_converter_makes_symbols_only_where_it_is_given_an_environment():
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env)
    x = umbra.rand(5)
    assert type(FakeTensorConverter().from_real_tensor(mode, x).shape[0]) is int
    assert type(FakeTensorConverter().from_real_tensor(mode, x, shape_env=env).shape[0]) is umbra.SymInt


def test_tensors_inside_vmap_are_converted_by_what_they_wrap():
    mode = FakeTensorMode()
    inner = _add_batch_dim(umbra.rand(3, 4, 5), 1, 1)
    outer = _add_batch_dim(inner, 0, 2)
    fake = mode.from_tensor(outer)
    assert fake.shape == outer.shape == (5,) and is_batchedtensor(fake) and maybe_get_bdim(fake) == 0
    assert is_batchedtensor(get_unwrapped(fake)) and isinstance(get_unwrapped(get_unwrapped(fake)), FakeTensor)
    assert mode.from_tensor(outer) is fake


@pytest.mark.parametrize("to", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_sparse_tensors_are_converted_by_their_parts(to):
    mode = FakeTensorMode()
    real = getattr(umbra.eye(3), to)()
    fake = mode.from_tensor(real)
    assert isinstance(fake, FakeTensor) and fake.fake_mode is mode and mode.from_tensor(real) is fake
    assert fake.layout == real.layout and fake.shape == real.shape and fake.values().shape == real.values().shape
    dense = fake.to_dense()
    assert isinstance(dense, FakeTensor) and dense.shape == (3, 3) and dense.dtype == real.dtype
    assert fake.sin().layout == real.layout and isinstance(fake.sin(), FakeTensor)
    with pytest.raises(NotImplementedError, match="aten::exp"):
        fake.exp()


def test_real_tensors_are_pickled_inside_a_mode_and_read_without_data():
    x = umbra.arange(6.).view(2, 3).t()
    with FakeTensorMode():
        data = pickle.dumps(x)
        y = pickle.loads(data)
        assert isinstance(y, FakeTensor) and y.device.type == "meta" and y.shape == (3, 2) and y.stride() == (1, 3)
    assert pickle.loads(data).tolist() == x.tolist()
    with pytest.raises(TypeError, match="it has no data"):
        pickle.dumps(y.fake_mode.from_tensor(x))


def test_a_view_has_a_number_of_nonzero_elements_of_its_own():
    with FakeTensorMode(shape_env=ShapeEnv()):
        x = umbra.ones(4)
        whole = x.nonzero().shape[0]
        assert str(x.nonzero().shape[0]) == str(whole) and str(x[1:].nonzero().shape[0]) != str(whole)


def test_zeros_know_that_they_are_zeros_until_they_are_written():
    for mode in (None, FakeTensorMode()):
        with mode or umbra.no_grad():
            zeros = umbra._efficientzerotensor(3)
            assert zeros._is_zerotensor() and not umbra.zeros(3)._is_zerotensor()
            zeros.add_(1)
            assert not zeros._is_zerotensor()


# ---- counts ----

def counts(function):
    FakeTensorMode.cache_clear()
    function()
    return FakeTensorMode.cache_info()


def test_calls_are_counted_by_whether_they_were_seen_before():
    with FakeTensorMode():
        x, y = umbra.rand(4, 3), umbra.rand(4, 3)
        info = counts(lambda: [x + y, x + y, y + x, x + y.t().contiguous().t(), x + 1, x + 1.0])
        assert (info.hits, info.bypasses) == (2, {}) and info.misses == info.size >= 4
        with umbra.inference_mode():
            x + y
        assert FakeTensorMode.cache_info().misses == info.misses + 1


@pytest.mark.parametrize("reason, call", [
    ("inplace view", lambda x: x.unsqueeze_(0)),
    ("data dependent output", lambda x: pytest.raises(DataDependentOutputException, x.sum().item)),
    ("constant attribute", lambda x: umbra.tensor([1.0]) + 1),
    ("non-fake tensor", lambda x: umbra.tensor([1.0])),
    ("lift", lambda x: umbra.ops.aten.lift_fresh(x)),
    ("non-FakeTensor output", lambda x: x.unbind()),
    ("dispatch_key_set mismatch", lambda x: umbra._efficientzerotensor(3)),
])
def test_calls_that_depend_on_more_than_metadata_say_why(reason, call):
    with FakeTensorMode():
        x = umbra.rand(4, 3)
        assert counts(lambda: call(x)).bypasses.get(reason) == 1


def test_a_mode_that_is_not_to_count_does_not():
    from umbra._dynamo import config as cache
    with cache.patch(fake_tensor_cache_enabled=False), FakeTensorMode() as mode:
        info = counts(lambda: [umbra.ones(2) + 1, umbra.ones(2) + 1])
        assert (info.hits, info.misses, mode.cache_enabled) == (0, 0, False)


def test_keys_of_calls_tell_everything_apart_that_results_follow_from():
    with FakeTensorMode() as mode:
        x = umbra.rand(4, 2)
        others = [umbra.rand(4, 2), x.as_strided((4, 2), (1, 4)), umbra.rand(4, 2, device="cuda"), umbra.rand(9)[1:].view(4, 2), x.double(),
                  umbra.rand(4, 2, requires_grad=True), 1, 1.0]
        keys = [mode._cache_key(umbra.ops.aten.add.Tensor, [other], {}) for other in others]
        assert keys[0] == mode._cache_key(umbra.ops.aten.add.Tensor, [x], {}) and len(set(keys)) == len(keys)


# ---- fake tensors that carry real ones ----

def test_operators_run_beside_on_the_real_tensors_that_fakes_carry():
    with patch.object(config, "fake_tensor_propagate_real_tensors", True):
        mode = FakeTensorMode()
    x = umbra.arange(6.).view(2, 3)
    fake, row = mode.from_tensor(x), mode.from_tensor(x[1])
    with mode:
        y = (fake.t() @ fake).relu()
        view = y[0]
        view.add_(1)
        fake.mul_(2)
    assert y.real_tensor.tolist() == [[10., 13., 16.], [12., 17., 22.], [15., 22., 29.]]
    assert row.real_tensor.tolist() == [6., 8., 10.], "what shares memory shares it beside"
    assert x.tolist() == [[0., 1., 2.], [3., 4., 5.]], "what is carried is a copy"
    assert FakeTensorMode().from_tensor(x).real_tensor is None


def test_an_operator_takes_a_tensor_for_the_list_of_its_rows_and_a_function_does_not():
    x = umbra.arange(9.).view(3, 3)
    assert umbra.ops.aten.index(x, umbra.tensor([1, 2])).item() == x[1, 2].item()
    assert umbra.ops.aten.cat(x).tolist() == x.flatten().tolist()
    with pytest.raises(TypeError):
        umbra.cat(x)


# ---- devices ----

def test_dropout_on_an_accelerator_is_one_operator_with_a_mask_of_bools():
    with FakeTensorMode():
        for device, p, expected in (("cuda", 0.5, ["aten.native_dropout.default"]), ("cuda", 1.0, None), ("cpu", 0.5, None)):
            x = umbra.ones(4, 4, device=device)
            with CallLog() as log:
                nn.functional.dropout(x, p)
            assert ("aten.native_dropout.default" in log.seen) == (expected is not None)


def test_cells_of_recurrent_networks_refuse_weights_of_another_number_of_gates():
    x = umbra.ones(3, 4)
    for call, text in ((lambda: umbra.lstm_cell(x, (x, x), x, x), "weight_ih first dim must be 4 \\* hidden_size = 16, but got 3"),
                       (lambda: umbra.lstm_cell(x, (x, x), umbra.ones(16, 4), umbra.ones(15, 4)), "weight_hh first dim must be 4"),
                       (lambda: umbra.gru_cell(x, x, umbra.ones(2, 4), umbra.ones(2, 4)), "weight_ih first dim must be 3 \\* hidden_size = 12"),
                       (lambda: umbra.rnn_tanh_cell(x, x, umbra.ones(3, 4), umbra.ones(3, 4)), "weight_ih first dim must be 1"),
                       (lambda: umbra.lstm_cell(x[0], (x, x), x, x), "Expected 2D input")):
        with pytest.raises(RuntimeError, match=text):
            call()


def test_nonzero_writes_an_output_that_is_given():
    out = umbra.empty(0, dtype=umbra.int64)
    assert umbra.nonzero(umbra.tensor([0, 3, 4]), out=out) is out and out.tolist() == [[1], [2]]
    with FakeTensorMode(shape_env=ShapeEnv()):
        out = umbra.empty(0, dtype=umbra.int64)
        assert str(umbra.nonzero(umbra.ones(4), out=out).shape[0]) == "u0" and str(out.shape[0]) == "u0"


def test_real_weights_that_a_fake_module_cannot_take_are_named_in_one_error():
    with FakeTensorMode():
        fake = nn.Linear(3, 2)
    with pytest.raises(RuntimeError, match=r'Error\(s\) in loading state_dict for Linear:\s+While copying the parameter named "weight", whose dimensions in the model are '
                                           r'torch.Size\(\[2, 3\]\) and .* an exception occurred'):
        fake.load_state_dict(nn.Linear(3, 2).state_dict())
    fake.load_state_dict(nn.Linear(3, 2).state_dict(), assign=True)
    assert fake(umbra.ones(1, 3)).shape == (1, 2)


def test_a_sparse_fake_is_copied_and_takes_no_other_format():
    mode = FakeTensorMode()
    for tensor in (umbra.eye(4).to_sparse(), umbra.eye(4).to_sparse_csr()):
        fake = mode.from_tensor(tensor)
        assert fake.clone().layout == fake.detach().layout == fake.clone(memory_format=umbra.preserve_format).layout == tensor.layout
        with pytest.raises(RuntimeError, match="unsupported memory format option"):
            fake.clone(memory_format=umbra.contiguous_format)


@pytest.mark.parametrize("convert, elements", [
    (lambda x: x.to_sparse(), "u0"), (lambda x: x.to_sparse_csr(), "u0"), (lambda x: x.to_sparse_bsr((1, 2)), "u0"), (lambda x: x.to_sparse(1), "u0"),
    (lambda x: x.to_sparse() + x.to_sparse(), "u1"), (lambda x: x.to_sparse() * 2, "u0")])
def test_how_many_elements_a_sparse_tensor_has_only_the_run_tells(convert, elements):
    with FakeTensorMode(shape_env=ShapeEnv()):
        x = umbra.empty(3, 4)
        made = convert(x)
        values = made._values() if made.layout is umbra.sparse_coo else made.values()
        assert made.layout is not umbra.strided and made.shape == (3, 4) and str(values.shape[0]) == elements and "nnz" not in repr(made)
        assert x.to_sparse().to_dense().shape == (3, 4) and umbra.mm(x.to_sparse(), umbra.ones(4, 2)).shape == (3, 2)
    with FakeTensorMode(), pytest.raises(DynamicOutputShapeException):
        convert(umbra.empty(3, 4))
