"""Calls that nobody writes on purpose, and what PyTorch 2.15 answers: layouts on the meta device, unknown reductions, operands that cannot be viewed."""
import math

import pytest
import umbra as torch

aten = torch.ops.aten
NAN, INF = math.nan, math.inf


def on_meta(*sizes, dtype=torch.float32):
    return torch.empty(sizes, dtype=dtype, device="meta")


# ---- layouts on the meta device ----


@pytest.mark.parametrize(
    "sizes, full, half",
    [
        ((1, 5, 2, 1, 2), (5, 1, 10, 10, 5), (1, 2, 1, 1, 10)),
        ((2, 3), (3, 1), (1, 2)),
        ((2, 3, 4), (12, 4, 1), (3, 1, 6)),
        ((2, 3, 4, 5), (1, 40, 10, 2), (12, 4, 1, 24)),
    ],
)
def test_fourier_transforms_lie_as_accelerators_leave_them(sizes, full, half):
    assert aten.fft_fftn(on_meta(*sizes)).stride() == full
    assert aten.fft_rfftn(on_meta(*sizes)).stride() == half
    assert aten.fft_fftn(torch.empty(sizes)).is_contiguous()


def test_a_number_of_positions_is_written_by_columns_on_the_meta_device():
    assert aten.nonzero_static(on_meta(2, 3), size=4).stride() == (1, 4)
    assert aten.nonzero_static(torch.ones(2, 3), size=4).stride() == (2, 1)


def test_strides_beyond_the_end_are_no_matter_where_there_is_no_memory():
    assert aten.as_strided(on_meta(3), [5], [4]).shape == (5,)
    assert aten.slice_inverse(on_meta(), torch.ones(3, 2)).shape == (3, 2)
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        aten.as_strided(torch.ones(3), [5], [4])


def test_negative_strides_of_an_alias_stand_for_dense_ones():
    x = torch.arange(16.0)
    assert aten._reshape_alias(x, [2, 3], [-1, -1]).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert aten._reshape_alias(x, [2, 3], [-1, 2]).tolist() == [[0, 2, 4], [6, 8, 10]]


def test_angles_of_complex_numbers_are_row_major():
    x = torch.ones(3, 4, dtype=torch.complex64).t()
    assert torch.angle(x).stride() == (3, 1)
    assert torch.angle(torch.ones(3, 4).t()).stride() == (1, 4)


# ---- what the meta device does not ask ----


def test_the_meta_device_asks_for_less():
    assert aten.cummax(on_meta(0, 2), 7)[0].shape == (0, 2)
    assert aten.hash_tensor(on_meta(2), [0], mode=2).dtype == torch.uint64
    assert aten.roll(on_meta(2, 0), [1, 2, 3]).shape == (2, 0)
    assert aten.addcdiv(on_meta(2), on_meta(2, dtype=torch.int64), on_meta(2, dtype=torch.bool)).shape == (2,)
    assert aten._adaptive_avg_pool2d(on_meta(1, 2, 3, 4), [2]).shape == (1, 2, 2)
    assert aten.logcumsumexp(on_meta(2, dtype=torch.int64), 0).dtype == torch.int64
    query = torch.empty(0, 2, 5, 5, 1)
    assert aten._scaled_dot_product_flash_attention_for_cpu(query, on_meta(3), on_meta())[1].shape == (0, 2, 5)


def test_the_meta_device_has_its_own_refusals():
    with pytest.raises(NotImplementedError, match="range_cpu"):
        aten.range(0, 3, dtype=torch.bool, device="meta")
    with pytest.raises(NotImplementedError, match="dtype should be floating point or complex"):
        aten.norm.ScalarOpt_dtype(on_meta(3), 2, dtype=torch.int64)
    with pytest.raises(IndexError):
        aten.roll(on_meta(), [1], [0])
    with pytest.raises(ZeroDivisionError):
        aten.smooth_l1_loss_backward(on_meta(), on_meta(0), on_meta(0), 1, 1.0)
    with pytest.raises(RuntimeError, match="device"):
        aten.binary_cross_entropy_with_logits(torch.ones(3, dtype=torch.int64), on_meta(3))


def test_a_single_number_goes_to_an_output_without_data():
    out = on_meta()
    assert aten.xlogy.OutScalar_Self(2, torch.ones(()), out=out) is out
    assert aten.amax.out(torch.ones(2), [0], out=out).is_meta
    assert aten.linspace.Scalar_Tensor_out(0, torch.ones(()), 3, out=out).shape == (3,)
    with pytest.raises(RuntimeError, match="cross-device"):
        aten.abs.out(torch.ones(()), out=out)


# ---- values ----


def test_an_unknown_reduction_of_the_soft_margin_is_the_first_element():
    x, y = torch.tensor([[1.0, -2.0], [0.5, 3.0]]), torch.ones(2, 2)
    terms = aten.soft_margin_loss(x, y, 0)
    assert aten.soft_margin_loss(x, y, 3).shape == ()
    assert aten.soft_margin_loss(x, y, 3).item() == terms[0, 0].item()
    assert aten.soft_margin_loss(on_meta(2, dtype=torch.int8), on_meta(2, dtype=torch.bool), 0).dtype == torch.int8


def test_a_product_that_cannot_be_folded_is_refused():
    x = torch.arange(6.0).reshape(2, 3)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        torch.kron(x.t(), torch.ones(2, 2))
    assert torch.kron(x, torch.ones(1, 1)).tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        torch.isin(torch.tensor(1.0), x.t())


def test_an_order_of_polygamma_that_is_cut_off_to_none_has_no_limit():
    assert torch.polygamma(2**62, torch.tensor([0.5, 1.0, 2.0])).tolist() == [-INF] * 3
    assert torch.polygamma(0, torch.tensor([1.0])).item() == pytest.approx(-0.5772156, abs=1e-6)


def test_sums_keep_what_is_no_number_in_whole_blocks_of_64_bytes():
    x = torch.full((20,), NAN)
    assert aten._add_relu.Tensor(x, x).isnan().tolist() == [True] * 16 + [False] * 4
    assert aten._add_relu.Scalar(x.double(), 1.0).isnan().tolist() == [True] * 16 + [False] * 4
    assert aten._add_relu.Tensor(x[::2], x[::2]).tolist() == [0] * 10


def test_nothing_lies_as_it_was_given():
    x = torch.empty(1, 0, 5).expand(3, 0, 5)
    assert aten.channel_shuffle(x, 1).stride() == x.stride()
    assert aten.flatten_dense_tensors([torch.ones(2)[::2]]).stride() == torch.ones(2)[::2].view(-1).stride()


def test_slopes_among_integers_are_integers():
    grad, x, y = torch.tensor([3, 2, 1]), torch.tensor([5, 0, -5]), torch.tensor([0, 0, 0])
    assert aten.smooth_l1_loss_backward(grad, x, y, 0, 2.0).tolist() == [3, 0, -1]
    assert aten.smooth_l1_loss_backward(grad, x, y, 1, 2.0).tolist() == [0, 0, 0]


def test_a_gradient_of_mish_has_the_type_of_the_input():
    assert aten.mish_backward(torch.empty(0, dtype=torch.float16), torch.ones((), dtype=torch.float64)).dtype == torch.float64


def test_an_index_into_nothing_leaves_nothing_of_what_it_does_not_speak_of():
    assert aten._unsafe_masked_index(torch.empty(3, 0, 2), torch.ones(3, 0, 2), [None], 1.0).shape == (3, 0, 0)


def test_powers_nought_and_one_go_to_outputs_of_any_type():
    x = torch.tensor([[2, 0], [0, 3]], dtype=torch.int8)
    for n, expected in ((0, [[1, 0], [0, 1]]), (1, [[2, 0], [0, 3]])):
        assert aten.linalg_matrix_power.out(x, n, out=torch.empty(0, dtype=torch.float64)).tolist() == expected
    with pytest.raises(NotImplementedError, match="linalg.inv"):
        aten.linalg_matrix_power.out(x, -1, out=torch.empty(0))


# ---- refusals ----


def test_fused_sums_go_to_outputs_of_their_own_type():
    x = torch.ones(2)
    assert aten._add_relu.out(x, x, out=torch.empty(0)).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="does not hold sums"):  # PyTorch gives back another tensor than the output
        aten._add_relu.out(x, x, out=torch.empty(0, dtype=torch.float64))


def test_coefficients_of_another_type_are_refused():
    x = torch.ones(1, 4)
    assert aten._compute_linear_combination(x, torch.full((2, 1), 2.0)).tolist() == [[2.0] * 4] * 2
    with pytest.raises(RuntimeError, match="cannot be combined"):  # PyTorch reads the bits of one type as the other's
        aten._compute_linear_combination(x, torch.ones(2, 1, dtype=torch.float64))


def test_randomised_slopes_have_bounds_in_order():
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="must be finite"):
        aten.rrelu(x, 0.0, INF)
    for lower, upper in ((1.0, 0.0), (0.0, NAN)):
        with pytest.raises(RuntimeError, match="from <= to"):
            aten.rrelu_with_noise(-x, torch.zeros(2), lower, upper, True)
        assert aten.rrelu_with_noise(x, torch.zeros(2), lower, upper, True).tolist() == [1, 1]  # none is drawn


def test_the_refusal_that_comes_first():
    with pytest.raises(RuntimeError, match="Accept only 4 dims"):
        aten._scaled_dot_product_flash_attention_for_cpu(torch.ones(1, 1, 1), torch.ones(1), torch.ones(1))
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        aten._convert_indices_from_csr_to_coo.out(torch.ones(2), torch.ones(1), out=torch.ones(1))
    with pytest.raises(NotImplementedError, match="check_uniform_bounds"):
        aten.rand.out([0, -1], out=torch.ones(1, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="gradOutput time unexpected"):
        aten.fractional_max_pool3d_backward(torch.ones(1, 4, 3), torch.ones(1, 5, 5, 5), [1, 1, 1], [2, 2, 2], torch.ones(1))
    with pytest.raises(NotImplementedError, match="erf_vml_cpu"):
        aten.infinitely_differentiable_gelu_backward(torch.ones(2, dtype=torch.complex64), torch.ones(1))
    with pytest.raises(RuntimeError, match="exceeds dimension size"):
        aten.glu_jvp(torch.ones(3, 4, 4, 3, 1), torch.ones(1, 3, 1, 5), torch.ones(()), -1)
    with pytest.raises(RuntimeError, match="but got"):
        aten.norm.ScalarOpt_dtype(torch.ones(2, dtype=torch.complex64), 2, dtype=torch.complex64)


def test_powers_have_no_modulus_and_dimensions_no_names():
    x = torch.arange(3)
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \*\* or pow\(\): 'Tensor', 'int', 'int'"):
        pow(x, 2, 3)
    assert not hasattr(x, "names")
    with pytest.raises(TypeError, match="unexpected keyword argument 'names'"):
        torch.full((2,), 2, names=None)


def test_functions_of_elements_take_tensors_of_one_type():
    x = torch.arange(3)
    with pytest.raises(TypeError, match="map_: expected torch.LongTensor for 'other' \\(got torch.FloatTensor\\)"):
        x.map_(x.float(), lambda a, b: a)
    with pytest.raises(TypeError, match="map2_: expected torch.LongTensor for argument 'y' \\(got torch.FloatTensor\\)"):
        x.map2_(x, x.float(), lambda a, b, c: a)
    assert x.map_(torch.ones(3, dtype=torch.int64), lambda a, b: a + b).tolist() == [1, 2, 3]


def test_no_zeros_of_a_negative_size():
    with pytest.raises(RuntimeError) as raised:
        torch.zeros(2, -1)
    assert str(raised.value) == "zeros: Dimension size must be non-negative."


def test_a_batch_norm_of_no_channels():
    assert torch.nn.functional.batch_norm(torch.zeros(2, 0, 4), None, None, training=True).shape == (2, 0, 4)
    with pytest.raises(IndexError):
        torch.nn.functional.batch_norm(torch.tensor(1.0), None, None, training=True)


# ---- arguments of a wrong kind ----

functional = torch.nn.functional
x, image, places = torch.ones(2, 3), torch.ones(1, 1, 2, 2), torch.zeros(1, 2, 2, 2)


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: functional.grid_sample(image, places, align_corners="no"), TypeError, "'align_corners' .* must be bool, not str"),
        (lambda: functional.affine_grid(torch.ones(1, 2, 3), (1, 1, 2, 2), 2.5), TypeError, "must be bool, not float"),
        (lambda: functional.normalize("abc"), AttributeError, "norm"),
        (lambda: functional.glu(3), AttributeError, "dim"),
        (lambda: functional.glu(torch.tensor(1.0)), RuntimeError, "glu does not support scalars"),
        (lambda: torch.norm(None), AttributeError, "NoneType"),
        (lambda: torch.einsum(2.5, x, x), TypeError, "'equation' .* must be str, not float"),
        (lambda: torch.stft(x.reshape(-1).repeat(3), 2.5, 2), TypeError, "stft.. received an invalid combination"),
        (lambda: torch.repeat_interleave(torch.tensor(1.5), 2, 0), IndexError, "Dimension"),
    ],
)
def test_arguments_of_a_wrong_kind(call, kind, text):
    with pytest.raises(kind, match=text) as caught:
        call()
    assert caught.type is kind


def test_no_order_is_the_default_one():
    assert torch.equal(functional.normalize(x, None), functional.normalize(x))
