"""Types that are stored and hardly computed with: complex32, 8-bit floats, the wide unsigned integers."""
import io
import pickle
import warnings

import pytest
import umbra as torch


def chalf(*values):
    return torch.tensor(values, dtype=torch.complex32)


# ---- complex32 ----

def test_complex32_is_made_read_and_converted():
    x = chalf(1 + 2j, 0.1, -3j)
    assert x.tolist() == [1 + 2j, 0.0999755859375, -3j] and x[0].item() == 1 + 2j
    assert x.to(torch.complex64).tolist() == x.tolist() and x.to(torch.complex128).chalf().tolist() == x.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert x.half().tolist() == [1, 0.0999755859375, 0] and x.bool().tolist() == [True, True, True] and x.int().tolist() == [1, 0, 0]
    assert torch.tensor([1, 0]).chalf().tolist() == [1, 0] and torch.tensor([70000.0]).chalf().real.tolist() == [float("inf")]
    assert torch.zeros(2, dtype=torch.complex32).tolist() == [0, 0] and torch.full((1,), 2j, dtype=torch.complex32).tolist() == [2j]
    with pytest.raises(RuntimeError, match="value cannot be converted to type c10::complex<c10::Half> without overflow"):
        torch.full((1,), 70000.0, dtype=torch.complex32)
    with pytest.raises(TypeError, match="Got unsupported ScalarType ComplexHalf"):
        x.numpy()
    assert repr(x) == "tensor([1.0000+2.j, 0.1000+0.j, -0.0000-3.j], dtype=torch.complex32)"


def test_complex32_computes_what_pytorch_computes_with_it():
    x, y = chalf(1 + 2j, 3), chalf(2, 1j)
    assert (x + y).tolist() == [3 + 2j, 3 + 1j] and (x - y).tolist() == [-1 + 2j, 3 - 1j] and (x * y).tolist() == [2 + 4j, 3j]
    assert (x * 2).dtype == torch.complex32 and (-x).tolist() == [-1 - 2j, -3] and (x * torch.tensor([1.0, 2.0])).dtype == torch.complex64
    assert abs(x).tolist() == [2.236328125, 3] and abs(x).dtype == torch.float16
    assert (x == y).tolist() == [False, False] and (x != y).tolist() == [True, True] and x.conj_physical().tolist() == [1 - 2j, 3]
    assert torch.where(torch.tensor([True, False]), x, y).tolist() == [1 + 2j, 1j] and x.masked_fill(torch.tensor([True, False]), 0).tolist() == [0, 3]
    assert x.isnan().tolist() == [False, False] and x.isfinite().all().item() and x.any().item() and chalf(0, 1j).nonzero().tolist() == [[1]]
    assert torch.allclose(x, x) and x.sgn().tolist() == [0.447265625 + 0.89453125j, 1]
    assert x.index_add(0, torch.tensor([0, 0]), y).tolist() == [3 + 3j, 3] and x.index_fill(0, torch.tensor([0]), 1).tolist() == [1, 3]
    assert torch.diag(x).tolist() == [[1 + 2j, 0], [0, 3]] and x.norm().tolist() == 3.7421875 and torch.cat([x, y]).tolist() == [1 + 2j, 3, 2, 1j]
    assert torch.addcmul(x, x, y).tolist() == [3 + 6j, 3 + 3j] and torch.stack([x, y]).flip(0).tolist() == [[2, 1j], [1 + 2j, 3]]
    x += 1
    assert x.tolist() == [2 + 2j, 4]
    # The factor is rounded, and so is the product before it is added.
    assert torch.add(chalf(0.37), chalf(1.13 + 0.3j), alpha=2.7).tolist() == [3.41796875 + 0.81005859375j]


@pytest.mark.parametrize("name, call", [
    ("sum_cpu", lambda x: x.sum()), ("sum_cpu", lambda x: x.mean()), ("prod_out_cpu", lambda x: x.prod()), ("exp_vml_cpu", lambda x: x.exp()),
    ("sqrt_vml_cpu", lambda x: x.sqrt()), ("div_cpu", lambda x: x / x), ("dot", lambda x: x.dot(x)), ("cumsum_out_cpu", lambda x: x.cumsum(0)),
    ("flip_cpu", lambda x: x.flip(0)), ("scatter_gather_tensor_cpu", lambda x: x.gather(0, torch.tensor([0]))),
    ("scatter_gather_tensor_cpu", lambda x: x.scatter(0, torch.tensor([0]), x)), ("take_cpu", lambda x: x.take(torch.tensor([0]))),
    ("take_put_cpu", lambda x: x.put(torch.tensor([0]), x[:1])),
    ("masked_scatter", lambda x: x.masked_scatter(torch.tensor([True, False]), x)), ("angle_cpu", lambda x: x.angle()),
    ("pow", lambda x: x ** 2), ("reciprocal_cpu", lambda x: x.reciprocal()), ("equal_cpu", lambda x: torch.equal(x, x.clone())),
])
def test_complex32_is_refused_where_pytorch_refuses_it(name, call):
    with pytest.raises(NotImplementedError, match=f"\"{name}\" not implemented for 'ComplexHalf'"):
        call(chalf(1 + 2j, 3))


def test_gradients_go_through_complex32():
    x = torch.tensor([1 + 2j, 3], dtype=torch.complex64, requires_grad=True)
    (torch.view_as_real(x.chalf() * 2).float().sum()).backward()
    assert x.grad.dtype == torch.complex64 and x.grad.tolist() == [2 + 2j, 2 + 2j]


def test_complex32_is_saved_and_loaded():
    buffer = io.BytesIO()
    torch.save(chalf(1 + 2j), buffer)
    buffer.seek(0)
    back = torch.load(buffer)
    assert back.dtype == torch.complex32 and back.tolist() == [1 + 2j]


def test_complex32_is_random_as_its_parts_are():
    torch.manual_seed(0)
    x = torch.randn(20, dtype=torch.complex32)
    torch.manual_seed(0)
    wide = torch.view_as_real(x).shape
    assert x.dtype == torch.complex32 and wide == (20, 2) and x.isfinite().all().item()


# ---- promotion ----

@pytest.mark.parametrize("other", ["bool", "uint8", "int8", "int64", "uint32", "complex64"])
def test_wide_unsigned_integers_promote_with_floats_only(other):
    with pytest.raises(RuntimeError, match="Promotion for uint16, uint32, uint64 types is not supported, attempted to promote UInt16 and"):
        torch.promote_types(torch.uint16, getattr(torch, other))
    assert torch.promote_types(torch.uint16, torch.float16) == torch.float16


@pytest.mark.parametrize("other", ["bool", "int64", "float16", "complex64", "float8_e4m3fn"])
def test_8_bit_floats_promote_with_nothing(other):
    with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported, attempted to promote Float8_e5m2 and"):
        torch.promote_types(torch.float8_e5m2, getattr(torch, other))
    with pytest.raises(RuntimeError, match="Unknown Complex ScalarType for Float8_e5m2"):
        torch.ones(2).to(torch.float8_e5m2) * 2j


# ---- 8-bit floats, wide unsigned integers ----

def test_8_bit_floats_are_compared_moved_and_multiplied():
    x = torch.tensor([1.0, -2.0, 0.0]).to(torch.float8_e4m3fn)
    assert (x == x).all().item() and x.isnan().tolist() == [False] * 3 and x.abs().tolist() == [1, 2, 0] and (x * x).tolist() == [1, 4, 0]
    assert torch.where(torch.tensor([True, False, True]), x, x).tolist() == [1, -2, 0] and torch.equal(x, x.clone())
    assert x[torch.tensor([1])].tolist() == [-2] and torch.cat([x, x]).shape == (6,)
    assert torch.outer(x, x).mm(torch.outer(x, x)).tolist() == [[5, -10, 0], [-10, 20, 0], [0, 0, 0]]


@pytest.mark.parametrize("name, call", [
    ("sum_cpu", lambda x: x.sum()), ("add_stub", lambda x: x + x), ("mul_cpu_reduced_float", lambda x: x * 2), ("div_cpu_reduced_float", lambda x: x / 2),
    ("div_cpu", lambda x: x / x), ("max_all", lambda x: x.max()), ("max_values_cpu", lambda x: x.amax()), ("argmax_cpu", lambda x: x.argmax()),
    ("norm_cpu", lambda x: x.norm()), ("cumsum_out_cpu", lambda x: x.cumsum(0)), ("softmax_lastdim_kernel_impl", lambda x: x.softmax(0)),
    ("flip_cpu", lambda x: x.flip(0)), ("gather_expanded_index", lambda x: x.gather(0, torch.tensor([0]))), ("take_cpu", lambda x: x.take(torch.tensor([0]))),
    ("sorting_kernel_method_name", lambda x: x.sort()), ("index_copy_cpu", lambda x: x.index_copy(0, torch.tensor([0]), x[:1])),
    ("tril", lambda x: torch.outer(x, x).tril()), ("topk_cpu", lambda x: x.topk(1)), ("bmm", lambda x: x.reshape(1, 1, 2).bmm(x.reshape(1, 2, 1))),
])
def test_8_bit_floats_are_refused_where_pytorch_refuses_them(name, call):
    with pytest.raises(NotImplementedError, match=f"\"{name}\" not implemented for 'Float8_e4m3fn'"):
        call(torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn))


def test_wide_unsigned_integers_are_sorted_and_looked_at():
    x = torch.tensor([3, 1, 65535, 1], dtype=torch.uint16)
    assert x.sort().values.tolist() == [1, 1, 3, 65535] and x.unique().tolist() == [1, 3, 65535] and torch.fmax(x, x.flip(0)).tolist() == [3, 65535, 65535, 3]
    assert x.isnan().tolist() == [False] * 4 and x.isfinite().all().item() and x.signbit().tolist() == [False] * 4
    assert x[x == 1].tolist() == [1, 1] and x.relu().tolist() == x.tolist() and (x * 2j).dtype == torch.complex64
    assert torch.zeros(2, dtype=torch.uint16).scatter_add(0, torch.tensor([0, 0]), x[:2]).tolist() == [4, 0]
    assert torch.tensor([2 ** 63, 1], dtype=torch.uint64).sort().values.tolist() == [1, 2 ** 63]


@pytest.mark.parametrize("name, call", [
    ("max_all", lambda x: x.max()), ("max_values_cpu", lambda x: x.amax()), ("argmax_cpu", lambda x: x.argmax()), ("cummax_cpu", lambda x: x.cummax(0)),
    ("index_put", lambda x: x.index_put((torch.tensor([0]),), x[:1])), ("index_fill_cpu", lambda x: x.index_fill(0, torch.tensor([0]), 1)),
    ("masked_select", lambda x: x.masked_select(torch.tensor([True, False]))), ("take_cpu", lambda x: x.take(torch.tensor([0]))),
    ("bincount_cpu", lambda x: x.bincount()), ("nonzero_count_cpu", lambda x: x.nonzero()), ("add_stub", lambda x: x + x),
])
def test_wide_unsigned_integers_are_refused_where_pytorch_refuses_them(name, call):
    with pytest.raises(NotImplementedError, match=f"\"{name}\" not implemented for 'UInt16'"):
        call(torch.tensor([1, 2], dtype=torch.uint16))


def test_products_of_8_bit_floats_are_scaled():
    e4 = torch.float8_e4m3fn
    a, b = ((torch.arange(15.0) - 7) / 4).view(3, 5).to(e4), ((torch.arange(10.0) - 4) / 4).view(5, 2).to(e4)
    out = torch._scaled_mm(a, b, torch.tensor(0.37), torch.tensor(1.9), out_dtype=torch.float32)
    assert torch.allclose(out, a.float() @ b.float() * 0.37 * 1.9)
    rows, columns = torch.tensor([[0.1], [0.2], [0.3]]), torch.tensor([[1.0, 2]])
    by_rows = torch._scaled_mm(a, b, rows, columns, out_dtype=torch.float32)
    assert torch.allclose(by_rows, torch.tensor([[0.125, -0.0625], [0.25, 0.5], [0.375, 1.6875]]))
    scaled = torch._scaled_mm(a, b, torch.tensor(0.37), torch.tensor(1.9), torch.tensor([1.0, 2]), torch.tensor(2.0))
    assert scaled.dtype is e4 and scaled.float().tolist() == [[0.9375, 0.875], [0.9375, 1.5], [0.9375, 2.0]]
    with pytest.raises(ValueError, match="Invalid scaling configuration"):
        torch._scaled_mm(a, b, rows, torch.tensor(1.0))
    with pytest.raises(RuntimeError, match=r"mat_a and mat_b shapes cannot be multiplied \(3x5 and 3x5\)"):
        torch._scaled_mm(a, a, torch.tensor(1.0), torch.tensor(1.0))
    with pytest.raises(RuntimeError, match=r"mat2 must be col_major, got stride \(2, 1\)"):
        torch._scaled_mm(a.to("meta"), b.to("meta"), rows.to("meta"), columns.to("meta"))


def test_names_of_quantisation():
    assert torch.tensor([1.5], dtype=torch.float64).dequantize().dtype is torch.float32
    x = torch.ones(2)
    assert x.dequantize() is x and torch.dequantize(torch.tensor([1])).tolist() == [1.0]
    assert isinstance(torch.per_tensor_affine, torch.qscheme) and repr(torch.per_channel_symmetric) == "torch.per_channel_symmetric"
    assert torch.per_tensor_affine != torch.per_tensor_symmetric and pickle.loads(pickle.dumps(torch.per_tensor_affine)) is torch.per_tensor_affine
    with pytest.raises(AttributeError, match="torch.quantize_per_tensor is not in Umbra yet"):
        torch.quantize_per_tensor


def test_classes_of_results_are_there_before_they_are_returned():
    assert torch.return_types.cummin.__match_args__ == ("values", "indices")
    x = torch.eye(2)
    assert type(torch.max(x, 0)) is torch.return_types.max is type(x.max(0))
    with pytest.raises(AttributeError):
        torch.return_types.relu


def test_sizes_are_made_of_whatever_counts():
    assert repr(torch.Size([True, 2])) == "torch.Size([1, 2])"
    with pytest.raises(TypeError, match=r"can only concatenate tuple \(not list\) to torch.Size"):
        torch.Size([1]) + [2]
    with pytest.raises(TypeError, match=r"torch.Size\(\) takes an iterable of 'int' \(item 0 is 'float'\)"):
        torch.Size([1.5])


@pytest.mark.parametrize("args, text", [
    ((), r"device\(\) received an invalid combination of arguments - got \(\), but expected one of:"),
    ((1.5,), r"got \(float\), but expected one of:\n \* \(torch.device device\)\n      didn't match because .* invalid types: \(!float!\)"),
    (("cuda", "2"), r"device\(\): argument 'index' \(position 2\) must be int, not str"),
])
def test_what_is_no_device_is_a_type_error(args, text):
    with pytest.raises(TypeError, match=text):
        torch.device(*args)


def test_arguments_that_are_missing_or_of_another_type_are_named():
    with pytest.raises(TypeError, match=r'iinfo\(\) missing 1 required positional arguments: "type"'):
        torch.iinfo()
    with pytest.raises(TypeError, match="expected a torch.ByteTensor, but got int"):
        torch.Generator().set_state(3)
    with pytest.raises(AttributeError, match="Unknown attribute tf32"):
        torch.backends.cuda.matmul.tf32 = True


def test_memory_without_a_type_can_be_gone_over():
    storage = torch.tensor([1, 2], dtype=torch.uint8).untyped_storage()
    assert list(storage) == [1, 2] and storage.type() == "torch.storage.UntypedStorage"


def test_which_types_that_are_not_built_have_a_sign():
    assert torch.int4.is_signed and torch.float4_e2m1fn_x2.is_signed and not torch.uint4.is_signed
    for name, text in (("qint8", "isSignedType not supported for quantized types"), ("bits8", "Bits types are undefined")):
        with pytest.raises(RuntimeError, match=text):
            getattr(torch, name).is_signed
