"""Values, layouts and refusals that random calls beside PyTorch 2.15 found to differ from its own."""
import math
import warnings

import pytest
import umbra as torch
from umbra.fx.experimental.proxy_tensor import make_fx

aten = torch.ops.aten


def test_results_without_elements_are_row_major_where_nothing_is_computed():
    x = torch.empty(2, 0, 3, device="meta").permute(2, 1, 0)
    assert (x + 1).stride() == (2, 2, 1)
    assert (x * torch.empty(2, device="meta")).stride() == (2, 2, 1)
    assert torch.where(x > 0, x, 1.0).stride() == (2, 2, 1)
    y = torch.empty(2, 0, 3).permute(2, 1, 0)
    assert (y + 1).stride() == (1, 3, 0)


def test_degrees_and_radians_keep_the_layout_of_their_input():
    x = torch.arange(6).reshape(2, 1, 3)[::2]
    assert x.stride() == (6, 3, 1)
    assert torch.deg2rad(x).stride() == torch.rad2deg(x.float()).stride() == (6, 3, 1)
    assert torch.equal(torch.rad2deg(torch.deg2rad(torch.tensor([180.0]))), torch.tensor([180.0]))
    assert torch.equal(torch.func.vmap(torch.deg2rad)(x), torch.deg2rad(x))


def test_polygamma_cuts_its_order_off_to_32_bits():
    x = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    torch.testing.assert_close(aten.polygamma(2**32 + 1, x), aten.polygamma(1, x))
    assert aten.polygamma(2**31, x).isnan().all()


@pytest.mark.parametrize("p", [math.nan, math.inf, -1.0, 2.0])
def test_rows_of_one_element_have_their_size_as_norm(p):
    table = torch.tensor([[1.98]])
    assert aten.embedding_renorm(table, torch.tensor([0]), 1.0, p).item() == pytest.approx(1.0)


def test_norm_of_nothing_is_zero_for_huge_orders_too():
    assert torch.linalg.vector_norm(torch.empty(2, 0), 1e300).item() == 0
    assert torch.linalg.vector_norm(torch.ones(2), 1e300).item() == 1


def test_sum_of_powers_of_no_integers_is_an_integer():
    assert aten.linalg__powsum(torch.empty(0, dtype=torch.int64), math.inf).dtype == torch.int64


def test_masked_index_of_nothing_keeps_the_dimensions_that_are_not_indexed():
    out = aten._unsafe_masked_index(torch.empty(0, 2, dtype=torch.int64), torch.zeros(1, 1), [torch.tensor([3]), None], 7)
    assert out.tolist() == [[7, 7]]


def test_gelu_gradient_by_parts_has_the_common_type_of_its_inputs():
    def result(grad, self):
        return aten.infinitely_differentiable_gelu_backward(torch.ones((), dtype=grad), torch.ones((), dtype=self)).dtype
    assert result(torch.uint8, torch.int64) == torch.int64
    assert result(torch.float64, torch.int32) == torch.float64
    assert result(torch.float16, torch.float32) == torch.float32


def test_cropping_keeps_the_layout():
    x = torch.zeros(4, 5, dtype=torch.bool).t()
    assert torch.nn.functional.pad(x, (0, -1)).stride() == (1, 5)
    assert torch.nn.functional.pad(x, (0, 1)).stride() == (5, 1)


def test_randomized_relu_passes_the_noise_on_where_its_bounds_are_no_numbers():
    grad = aten.rrelu_with_noise_backward(torch.tensor([3.0]), torch.tensor([-1.0]), torch.tensor([-2.0]), 0.1, math.nan, True, False)
    assert grad.item() == -6


def test_any_and_all_take_outputs_of_bytes():
    out = torch.empty(0, dtype=torch.uint8)
    assert torch.any(torch.tensor([[0.0, 2.0], [0.0, 0.0]]), 1, out=out) is out
    assert out.tolist() == [1, 0]
    assert torch.all(torch.tensor([1.0]), out=torch.empty((), dtype=torch.uint8)).item() == 1
    with pytest.raises(RuntimeError, match="only supports bool tensor for result"):
        torch.any(torch.tensor([1.0]), out=torch.empty((), dtype=torch.int32))


def test_scattering_to_no_places_asks_nothing_of_the_value():
    x = torch.zeros(3, dtype=torch.int64)
    assert x.scatter_(0, torch.empty(0, dtype=torch.int64), math.nan).tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="without overflow"):
        x.scatter_(0, torch.tensor([0]), math.nan)


def test_singular_factors_are_told_by_info_alone():
    assert torch._lu_with_info(torch.zeros(2, 2), True, True)[2].item() == 1


def test_quantiles_take_outputs_of_their_own_type_alone():
    for quantile in (torch.quantile, torch.nanquantile):
        with pytest.raises(RuntimeError, match="must be same dtype as the input tensor"):
            quantile(torch.ones(3), 0.5, out=torch.empty(0, dtype=torch.float64))
        assert quantile(torch.ones(3), 0.5, out=torch.empty(())).item() == 1


def test_refusals_name_the_type_before_the_number():
    with pytest.raises(NotImplementedError, match="hardshrink_cpu"):
        torch.nn.functional.hardshrink(torch.tensor([1, 2]), 1e300)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        aten.soft_margin_loss_backward(torch.ones(3), torch.ones(()), torch.ones(()), 1)


def test_parts_are_copied_into_lists_of_outputs():
    x = torch.arange(6.0).reshape(3, 2)
    outs = [torch.empty(0), torch.empty(0)]
    assert aten.split_with_sizes_copy.out(x, [1, 2], 0, out=outs) is None
    assert [o.tolist() for o in outs] == [[[0, 1]], [[2, 3], [4, 5]]]
    aten.unbind_copy.int_out(x, 1, out=outs)
    assert [o.tolist() for o in outs] == [[0, 2, 4], [1, 3, 5]]
    aten._foreach_neg.out([x, x[0]], out=outs)
    assert torch.equal(outs[0], -x) and torch.equal(outs[1], -x[0])
    with pytest.raises(RuntimeError, match="expected an out= argument of size 2, got size 1"):
        aten.split_copy.Tensor_out(x, 2, 0, out=outs[:1])
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        aten.split_copy.Tensor_out(x, 2, 0, out=[torch.empty(5), torch.empty(5)])
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):  # PyTorch loses the gradient
        aten.unbind_copy.int_out(x.clone().requires_grad_(), 1, out=outs)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        aten.unbind_copy.int_out(x, 1, out=[torch.empty(0, dtype=torch.int64)] * 2)
    with pytest.raises(RuntimeError, match="Expected out tensor to have device cpu, but got meta"):
        aten._foreach_neg.out([x], out=[torch.empty(0, device="meta")])


def test_complex_numbers_without_an_imaginary_part_fill_real_tensors():
    mask = torch.tensor([True, False])
    assert torch.zeros(2, dtype=torch.int64).masked_fill(mask, torch.tensor(3 + 0j)).tolist() == [3, 0]
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.zeros(2, dtype=torch.int64).masked_fill(mask, torch.tensor(3 + 1j))
    with pytest.raises(NotImplementedError, match="masked_fill.*UInt16"):
        torch.zeros(2, dtype=torch.uint16).masked_fill(mask, 1)


def test_shifts_in_place_leave_unknown_operands_to_them():
    class Shifter:
        def __rlshift__(self, other):
            return "shifted"
    x = torch.ones(2, dtype=torch.int64)
    x <<= Shifter()
    assert x == "shifted"
    y = torch.ones(2, dtype=torch.int64)
    z = y
    y <<= 2
    assert z is y and y.tolist() == [4, 4]
    with pytest.raises(TypeError, match="unsupported operand type"):
        y >>= object()


def test_roots_and_powers_of_infinite_complex_numbers():
    inf = math.inf
    roots = torch.tensor([complex(0, inf), complex(-inf, 1)]).rsqrt()
    assert torch.view_as_real(roots[0]).isnan().all()
    assert torch.exp2(torch.tensor(complex(inf, 1.0))).tolist() == complex(inf, inf)
    assert torch.exp2(torch.tensor([2 + 0j])).tolist() == [pytest.approx(4 + 0j)]


@pytest.mark.parametrize("call, message", [
    (lambda x, out: torch.isposinf(x, out=out), "isposinf does not support non-boolean outputs"),
    (lambda x, out: torch.signbit(x, out=out), "signbit does not support non-boolean outputs"),
    (lambda x, out: torch.nonzero(x, out=out), "nonzero: Expected out tensor to have scalar type Long"),
    (lambda x, out: torch.complex(x, x, out=out), "Expected object of scalar type ComplexFloat but got scalar type Float"),
])
def test_outputs_of_another_type_are_refused_in_pytorchs_words(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(torch.ones(2), torch.empty(2))


def test_bounds_that_leave_no_number_of_the_type_are_refused():
    x = torch.ones(2, dtype=torch.uint8)
    for call in (lambda: torch.clamp(x, max=-1), lambda: x.clone().clamp_(max=-300), lambda: torch.clamp_max(x, -1)):
        with pytest.raises(RuntimeError, match="Clamp max value -.* is outside the representable range of Byte"):
            call()
    with pytest.raises(RuntimeError, match="Clamp min value 300 is outside the representable range of Char"):
        torch.clamp_min(x.to(torch.int8), 300)
    with pytest.raises(RuntimeError, match="type c10::Half without overflow"):
        torch.clamp(torch.ones(2, dtype=torch.float16), max=1e6)
    assert torch.clamp(x, -1, 300).tolist() == [1, 1]


@pytest.mark.parametrize("step", [math.inf, -math.inf, math.nan])
def test_sequences_have_finite_steps(step):
    for make in (torch.arange, torch.range):
        with pytest.raises(RuntimeError, match="step must be finite but got"):
            make(0, 1, step)


def test_gradients_of_dense_copies_have_the_type_of_the_input():
    assert aten.to_dense_backward(torch.ones(3, dtype=torch.uint8), torch.ones(2, dtype=torch.int64)).dtype == torch.int64


def test_strided_operands_of_sparse_products_are_refused_before_their_sizes():
    with pytest.raises(RuntimeError, match="can only be called on sparse tensors"):
        torch.smm(torch.tensor(1.0), torch.ones(2))
    with pytest.raises(RuntimeError, match="can only be called on sparse tensors"):
        torch.sspaddmm(torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2))
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch._sparse_sum(torch.ones(2, 2), [5])


def test_smooth_loss_without_a_width_has_no_slope():
    grad = aten.smooth_l1_loss_backward(torch.ones(2), torch.ones(2), torch.zeros(2), 0, math.nan)
    assert grad.isnan().all()


def test_lists_that_are_too_short_are_refused():
    for convert in (torch.Tensor.to_sparse_bsr, torch.Tensor.to_sparse_bsc):
        for blocksize in ([], [1], [1, 1, 1]):
            with pytest.raises(RuntimeError, match="blocksize needs to be a tuple of size 2"):
                convert(torch.ones(2, 2), blocksize)
    meta = torch.ones(2, 2, 2, device="meta")
    with pytest.raises(RuntimeError, match="fixed-size array of size 4"):
        aten._cudnn_rnn_backward(meta, [meta], 1, None, meta, None, meta, None, None, None, 0, 1, 0, 1, False, 0.0, True, False, [], None, meta, [True])


def test_gradients_of_sequences_are_asked_for_nothing_that_fits():
    of_input, of_weight, of_bias = aten.conv_tbc_backward(torch.ones(()), torch.ones(2, 3), torch.ones(()), torch.ones(4), 1)
    assert of_input.tolist() == torch.zeros(2, 3).tolist() and of_weight.item() == 0 and of_bias.tolist() == [1] * 4


def test_a_sparse_gradient_of_gathering_goes_by_the_gradients_own_sizes():
    grad = aten.gather_backward(torch.ones(3), torch.ones(2), 7, torch.zeros(3, dtype=torch.int64), True)
    assert grad._indices().tolist() == [[0, 1, 2]]
    with pytest.raises(IndexError):
        aten.gather_backward(torch.ones(3), torch.ones(2, 2), 0, torch.zeros(3, dtype=torch.int64), True)


def test_any_other_normalization_of_a_transform_is_by_the_count():
    x = torch.ones(4, dtype=torch.complex64)
    assert aten._fft_c2c(x, [0], 7, True)[0].item() == aten._fft_c2c(x, [0], 2, True)[0].item() == 1


def test_steps_of_optimisers_write_leaves():
    x = torch.ones(2, requires_grad=True)
    aten._fused_sgd_([x], [torch.ones(2)], [], weight_decay=0.0, momentum=0.0, lr=0.5, dampening=0.0, nesterov=False, maximize=False, is_first_step=True)
    assert x.tolist() == [0.5, 0.5] and x.grad_fn is None


def test_a_layer_of_nothing_is_nothing():
    x, rest = torch.ones(0, 3, 0, 5), [torch.ones(2)] * 12
    assert aten._transformer_encoder_layer_fwd(x, 5, 1, *rest[:4], True, True, 1e-5, *rest[4:]).shape == x.shape


def test_outputs_that_get_another_size_are_warned_of():
    with pytest.warns(UserWarning, match="does not match the computed number of elements 5"):
        torch.arange(5, out=torch.ones(3))
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        torch.kron(torch.ones(2), torch.ones(2), out=torch.ones(3))


def test_chances_have_no_tangent():
    with torch.autograd.forward_ad.dual_level():
        p = torch.autograd.forward_ad.make_dual(torch.tensor([0.0, 1.0]), torch.ones(2))
        assert torch.autograd.forward_ad.unpack_dual(torch.bernoulli(p)).tangent.tolist() == [0, 0]


def test_an_order_too_large_for_the_type_is_infinite():
    x = torch.tensor([[0.0, 1.0, 2.0], [3.0, 3.0, 3.5]])
    assert torch.pdist(x, 1e300).tolist() == [3.0]
    assert torch.cdist(x, x, 1e300)[0].tolist() == [0.0, 3.0]
    assert torch.linalg.vector_norm(torch.ones(0), math.nan).item() == 0


def test_layouts_of_results():
    x = torch.ones(2, 3).t()
    assert torch.rrelu(x).stride() == (2, 1)
    assert torch.fake_quantize_per_tensor_affine(torch.ones(5, 1).t(), 3.0, 0, 0, 1).stride() == (1, 1)


def test_padding_that_takes_away_more_than_there_is_shows_what_is_reflected():
    x = torch.arange(40.0, dtype=torch.float64).reshape(2, 1, 5, 4)
    for pad, want in (([2, -5, 0, 0], [2, 6, 10, 14, 18]), ([-5, 2, 0, 0], [1, 5, 9, 13, 17]), ([3, -6, 0, 0], [3, 7, 11, 15, 19])):
        assert torch.ops.aten.reflection_pad2d(x, pad)[0].flatten().tolist() == want
    assert torch.ops.aten.replication_pad2d(x, [2, -5, 0, 0])[0].flatten().tolist() == [0, 4, 8, 12, 16]
    assert torch.ops.aten.replication_pad1d(torch.arange(5.0).reshape(1, 1, 5), [2 ** 62, -2 ** 62]).tolist() == [[[0] * 5]]


def test_second_derivatives_of_pools_want_images():
    grad = torch.rand((), requires_grad=True)
    out = torch.ops.aten.adaptive_max_pool3d_backward(grad, torch.rand((), device="meta"), torch.tensor(0))
    with pytest.raises(RuntimeError, match="a pooled image has 3 dimensions or more"):
        out.sum().backward()


def test_matrices_without_elements_may_have_any_type():
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.zeros(2, 0, 0, dtype=dtype)
        assert torch.linalg.det(x).tolist() == [1, 1]
        assert torch.linalg.cholesky(x).shape == torch.linalg.solve(x, x).shape == (2, 0, 0)
        assert torch.linalg.eigvalsh(x).shape == torch.linalg.svdvals(x).shape == (2, 0)
        u, s, vh = torch.linalg.svd(torch.zeros(3, 0, dtype=dtype))
        assert u.tolist() == torch.eye(3).tolist() and u.dtype == dtype and vh.shape == (0, 0)
    with pytest.raises(NotImplementedError, match="Half"):
        torch.linalg.svdvals(torch.ones(2, 2, dtype=torch.float16))


def test_scans_and_searches_of_nothing_may_have_any_type():
    x = torch.zeros((), dtype=torch.complex64)
    assert [t.tolist() for t in torch.cummin(x, 0)] == [0, 0]
    assert torch.cumsum(torch.zeros(3, 0), 0, out=torch.zeros(0, dtype=torch.bool)).shape == (3, 0)
    assert torch.bucketize(torch.zeros(0, 1, dtype=torch.complex64), torch.rand(4)).shape == (0, 1)
    assert torch.ops.aten.channel_shuffle(torch.ones(3, 0, 5, 4), 100).shape == (3, 0, 5, 4)
    with pytest.raises(NotImplementedError):
        torch.cummin(torch.zeros(1, dtype=torch.complex64), 0)


def test_rows_of_an_embedding_are_summed_in_any_type():
    index = torch.tensor([0, 0, 2])
    for dtype, scaled in ((torch.int64, [[0, 0], [0, 0], [1, 1]]), (torch.complex64, [[4.5, 2.5], [0, 0], [1, 1]])):
        grad = torch.tensor([[5, 3], [4, 2], [1, 1]]).to(dtype)
        assert torch.ops.aten.embedding_dense_backward(grad, index, 3, -1, False).tolist() == [[9, 5], [0, 0], [1, 1]]
        assert torch.ops.aten.embedding_dense_backward(grad, index, 3, -1, True).tolist() == scaled
    assert torch.ops.aten.embedding_dense_backward(torch.ones(3, 1, dtype=torch.bool), index, 3, -1, False).tolist() == [[True], [False], [True]]


def test_gradients_of_squares_of_integers_are_integers():
    x, y = torch.tensor([5, 1]), torch.tensor([2, 3])
    assert torch.ops.aten.mse_loss_backward(torch.tensor(3), x, y, 0).tolist() == [18, -12]
    assert torch.ops.aten.mse_loss_backward(torch.tensor(3), x, y, 1).tolist() == [9, -6]


def test_types_and_places_of_results():
    assert torch.cosine_similarity(torch.rand(5, 2, 3), torch.rand((), dtype=torch.float64), 2).dtype == torch.float64
    column = torch.rand(1, 1, 1, 5).transpose(0, 3)
    assert torch.isinf(column).stride() == (1, 1, 1, 1)
    assert torch.abs(column.to(torch.complex64)).stride() == (1, 5, 5, 5)
    assert torch.ops.aten._fft_r2c(torch.rand(1, 3, 1), [0], 1, True).stride() == (1, 1, 3)
    assert torch.ops.aten._foreach_powsum.Scalar([torch.rand(1, 0)], 0.0, torch.int8)[0].dtype == torch.int8
    rows = torch.rand(2, 3, device="meta")
    assert torch.ops.aten._linalg_svd(rows)[2].stride() == (3, 1)
    assert torch.linalg.eig(torch.rand(2, 2, device="meta"))[1].stride() == (2, 1)


def test_sequences_of_unlike_sizes_are_broadcast_into_their_rows():
    padded = torch.nn.utils.rnn.pad_sequence([torch.ones(3, 2), torch.full((2, 1), 2.0)], batch_first=True, padding_value=-1)
    assert padded.tolist() == [[[1, 1], [1, 1], [1, 1]], [[2, 2], [2, 2], [-1, -1]]]
    x = torch.ones(1, 2, requires_grad=True)
    torch.nn.utils.rnn.pad_sequence([torch.ones(2, 2), x], padding_side="left").square().sum().backward()
    assert x.grad.tolist() == [[2, 2]]


def test_outputs_of_another_type_are_copied_to_and_lie_in_rows():
    a, double = torch.tensor([[2.0, 1.0], [1.0, 3.0]]), lambda: torch.empty(0, dtype=torch.float64)
    assert torch.geqrf(a, out=(double(), double()))[0].stride() == (2, 1)
    assert torch.cholesky_solve(a, a, out=double()).dtype == torch.float64
    assert torch.linalg.householder_product(a, a[0], out=double()).stride() == (2, 1)
    assert torch.fft.fft(a, out=torch.empty(0, dtype=torch.complex128)).dtype == torch.complex128
    assert torch.inner(torch.ones(0, 1), torch.tensor(2.0), out=torch.empty(0, 4)).stride() == (1, 0)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype long int, but got int instead"):
        torch.argmax(a, out=torch.empty(0, dtype=torch.int32))


def test_one_number_of_a_logarithmic_scale_has_to_fit():
    assert torch.logspace(1.5, 3, 1, dtype=torch.int32).tolist() == [31]
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.logspace(30, 20, 1, dtype=torch.int8)


def test_rows_of_complex_tables_are_scaled():
    table = torch.ones(3, 3, dtype=torch.complex128) * (1 + 1j)
    torch.embedding_renorm_(table, torch.tensor([0, 2]), 1.0, 2.0)
    assert table.abs().square().sum(1).tolist() == pytest.approx([1, 6, 1], abs=1e-5)


def test_pooling_without_sizes_is_refused():
    call = aten.fractional_max_pool3d_backward
    with pytest.raises(RuntimeError, match="gradOutput time unexpected"):
        call(torch.ones(5, 1, 2, 1), torch.ones(5, 1, 2, 1), [1], [], torch.zeros(1, 5, dtype=torch.int64))
    with pytest.raises(IndexError, match="no dimensions"):
        call(torch.tensor(1.0), torch.ones(5, 1, 2, 1), [1], [], torch.zeros(1, 5, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="Expected HxW to be greater than 0, got 0"):
        torch.native_group_norm(torch.ones(2, 4, 0), None, None, 2, 4, 0, 2, 1e-5)


def test_integers_beyond_int64_beside_floats_are_floats():
    x = torch.ones(2)
    assert (x * 2**63).tolist() == [2.0**63, 2.0**63] and ((2**64 - 1) * x).tolist() == [2.0**64, 2.0**64]
    assert (x / (2**64 - 1)).tolist() == [2.0**-64, 2.0**-64] and (x < 2**63).tolist() == [True, True]
    assert torch.empty(2).fill_(2**63).tolist() == [2.0**63, 2.0**63]
    large = torch.tensor(2**63, dtype=torch.uint64)
    assert float(large) == 2.0**63 and int(large) == 2**63
    assert torch.full((2,), large, dtype=torch.float32).tolist() == [2.0**63, 2.0**63]


def test_arguments_that_do_not_fit_are_type_errors():
    x = torch.ones(2)
    calls = [lambda: torch.broadcast_tensors(x, 3), lambda: torch.atleast_2d(x, 3), lambda: torch.block_diag(x, 3), lambda: torch.cartesian_prod(x, 3),
             lambda: torch.meshgrid(x, 3), lambda: torch.unique_consecutive(3), lambda: torch.chain_matmul(torch.ones(2, 2), 3), lambda: torch.nonzero(3),
             lambda: torch.is_conj(3), lambda: torch.is_complex(None), lambda: torch.is_same_size(x, 3), lambda: x.split(1.5)]
    for call in calls:
        with pytest.raises(TypeError):
            call()
    with pytest.raises(RuntimeError, match="Expected 3D or 4D tensor"):
        torch.nn.functional.adaptive_avg_pool2d(torch.ones(3, 2), 2)


def test_older_and_named_arguments():
    x = torch.arange(4.0).reshape(2, 2)
    assert torch.add(torch.ones(2, dtype=torch.int32), 10, 0.5).tolist() == [6.0, 6.0]  # alpha, then the other
    assert x.std(None, correction=0).item() == pytest.approx(1.118034) and x.var(None, keepdim=True).shape == (1, 1)
    assert torch.promote_types(type1=torch.int32, type2=torch.float32) == torch.float32 and torch.can_cast(from_=torch.int32, to=torch.float32)
    assert x.is_set_to(tensor=x)


def test_ranges_of_types_without_kernels_are_refused():
    for dtype in (torch.uint16, torch.uint64, torch.float8_e4m3fn):
        with pytest.raises(NotImplementedError, match="arange_cpu"):
            torch.arange(3, dtype=dtype)
    with pytest.raises(NotImplementedError, match="aminmax_cpu"):
        torch.histc(torch.ones(3).to(torch.float8_e4m3fn))
    with pytest.raises(NotImplementedError, match="linspace_cpu"):
        torch.histc(torch.ones(3).to(torch.float8_e4m3fn), 5, 0, 3)


def test_integers_do_not_wrap_around_as_thresholds():
    with pytest.raises(RuntimeError, match="value cannot be converted to type int without overflow"):
        torch.nn.functional.threshold(torch.tensor([1, 2], dtype=torch.int32), 2**31, 0)
    assert torch.nn.functional.threshold(torch.tensor([1, 5]), 2, 0).tolist() == [0, 5]


def test_no_type_is_the_usual_one_for_functions():
    assert torch.randint(0, 3, (2,), dtype=None).dtype == torch.randint(3, (2,), dtype=None).dtype == torch.int64
    x = torch.ones(2, 3)
    assert x.contiguous(memory_format=torch.preserve_format).data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="Expected the output tensor to have dtype"):
        torch.inner(x, x, out=torch.empty(2, 2, dtype=torch.float64))


@pytest.mark.parametrize("call", [
    lambda m, v, b, k: torch.addmm(m, m, m, alpha=k), lambda m, v, b, k: torch.addmm(m, m, m, beta=k),
    lambda m, v, b, k: torch.addmv(v, m, v, alpha=k), lambda m, v, b, k: torch.addmv(v, m, v, beta=k),
    lambda m, v, b, k: torch.addr(m, v, v, alpha=k), lambda m, v, b, k: torch.addr(m, v, v, beta=k),
    lambda m, v, b, k: torch.baddbmm(b, b, b, alpha=k), lambda m, v, b, k: torch.addbmm(m, b, b, beta=k),
])
def test_factors_that_their_type_cannot_hold_are_refused(call):
    def given(dtype):
        return torch.ones(2, 2, dtype=dtype), torch.ones(2, dtype=dtype), torch.ones(1, 2, 2, dtype=dtype)
    for dtype, factor, name in ((torch.int8, 300, "int8_t"), (torch.int32, 2**40, "int"), (torch.float32, 1e300, "float")):
        with pytest.raises(RuntimeError, match=f"value cannot be converted to type {name} without overflow"):
            call(*given(dtype), factor)
    call(*given(torch.int8), 100)
    call(*given(torch.float32), float("inf"))


def test_a_factor_of_a_product_of_integers_fits_their_type():
    ones = torch.ones(2, dtype=torch.int8)
    with pytest.raises(RuntimeError, match="value cannot be converted to type int8_t without overflow"):
        torch.addcmul(ones, ones, ones, value=300)
    assert torch.addcmul(ones, ones, ones, value=100).tolist() == [101, 101]


def test_truth_into_bytes_counts_elements_as_bytes():
    bytes_ = torch.empty(0, dtype=torch.uint8)
    assert torch.any(torch.tensor([[0.5], [0.0], [256.0], [3.0]]), 1, out=bytes_).tolist() == [0, 0, 0, 1]
    assert torch.all(torch.tensor([[256, 1], [3, 2]]), 1, out=bytes_).tolist() == [0, 1]
    assert torch.any(torch.tensor([0.5]), 0, out=torch.empty((), dtype=torch.uint8)).item() == 1  # one element alone
    assert torch.all(torch.tensor([2, 3], dtype=torch.uint8), out=torch.empty((), dtype=torch.bool)).item() is True
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        torch.any(torch.ones(2, device="meta"), 0, out=torch.empty((), dtype=torch.uint8, device="meta"))


def test_a_captured_truth_into_bytes_counts_them_too():
    def into_bytes(x):
        return torch.any(x, 1, out=torch.zeros(2, dtype=torch.uint8))

    x = torch.tensor([[0.5, 0.0], [0.0, 3.0]])
    captured = make_fx(torch.func.functionalize(into_bytes))(x)
    assert captured(x).tolist() == into_bytes(x).tolist() == [0, 1]
    assert captured(x + 1).tolist() == into_bytes(x + 1).tolist() == [1, 1]


def test_sums_with_a_relu_of_integers_end_at_their_first_type():
    small, wide = torch.tensor([100, -3, 2], dtype=torch.int8), torch.tensor([100, 1, 250])
    assert aten._add_relu(small, wide).tolist() == [127, 0, 127]
    assert aten._add_relu(wide, small).tolist() == [200, 0, 252]


def test_bounds_of_a_half_have_to_be_halves():
    half = torch.ones(2, dtype=torch.float16)
    with pytest.raises(RuntimeError, match="cannot be converted to type c10::Half without overflow"):
        torch.nn.functional.hardtanh(half, -1e6, 1e6)
    assert torch.nn.functional.hardtanh(half, -3, 300).tolist() == [1, 1]


def test_overloads_that_python_does_not_have():
    p = torch.full((3,), 0.5)
    for call in (lambda: torch.bernoulli(p, p), lambda: p.bernoulli(p), lambda: torch.bernoulli(p, p=p)):
        with pytest.raises(TypeError, match="invalid combination of arguments"):
            call()
    assert aten.bernoulli.Tensor(p, p).shape == (3,)
    with pytest.raises(TypeError):
        torch.tensor([1, 2]).repeat_interleave()
    assert torch.repeat_interleave(torch.tensor([1, 2])).tolist() == [0, 1, 1]


def test_values_of_sparse_tensors_that_are_one_number():
    with pytest.raises(RuntimeError, match="sparse_dim = 1, dense_dim = 0"):
        aten._validate_sparse_coo_tensor_args(torch.zeros(1, 5, dtype=torch.int64), torch.tensor(1.0), [])


def test_groups_that_do_not_divide_what_a_convolution_gives():
    text = r"Given groups=2, expected weight to be divisible by 2 at dimension 0, but got weight of size \[\[3, 1, 2\]\] instead"
    with pytest.raises(RuntimeError, match=text):
        torch.nn.functional.conv1d(torch.ones(1, 2, 5), torch.ones(3, 1, 2), groups=2)


def test_masks_of_attention_are_bools_or_of_the_query_s_type():
    x = torch.rand(1, 2, 3)
    with pytest.raises(RuntimeError, match="Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: long int"):
        torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=torch.zeros(2, 2, dtype=torch.int64))


@pytest.mark.parametrize("p, expected", [(math.inf, [0.6, 0.5]), (-math.inf, [0.2, 0.1])])
def test_pools_of_infinite_power_are_the_largest_and_the_smallest(p, expected):
    x = torch.tensor([[[-0.6, -0.2, 0.1, 0.5]]])
    assert torch.allclose(torch.nn.functional.lp_pool1d(x, p, 2), torch.tensor([[expected]]))
    assert torch.allclose(torch.jit.script(torch.nn.LPPool1d(p, 2))(x), torch.tensor([[expected]]))
    with pytest.raises(ValueError, match="norm_type must be a non-zero value, but got 0"):
        torch.nn.LPPool1d(0, 2)


@pytest.mark.parametrize("call, text", [
    (lambda: torch.cov(torch.tensor(3.0)), "degrees of freedom is <= 0"),
    (lambda: torch.nn.functional.upsample(torch.ones(1, 1, 3), size=4), "`nn.functional.upsample` is deprecated"),
])
def test_calls_that_warn(call, text):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        call()
    assert text in str(told[0].message)


@pytest.mark.parametrize("train, needed", [(True, "save_mean and save_invstd"), (False, "running_mean and running_var")])
def test_the_gradient_of_a_batch_norm_without_its_statistics_is_refused(train, needed):
    with pytest.raises(RuntimeError, match=f"{needed} are needed"):
        torch.ops.aten.native_batch_norm_backward(torch.ones(2, 2), torch.ones(2, 2), None, None, None, None, None, train, 1e-5, [True, True, True])


def test_of_nothing_neither_dimensions_nor_bounds_are_looked_at():
    assert torch.roll(torch.ones(2, 0), [1, 2], [5, 9]).shape == (2, 0)
    assert aten.uniform_(torch.zeros(0, dtype=torch.complex64), 3.0, -1.0).shape == (0,)
    assert aten._fft_c2r(torch.zeros(2, 3, dtype=torch.complex64), [1], 0, 0).shape == (2, 0)
    assert aten.multilabel_margin_loss(torch.ones(0, 3), torch.ones(0, 3), 0).shape == (0,)


def test_dropout_of_complex_numbers_has_a_mask_of_bools():
    x = torch.ones(3, 2, dtype=torch.complex64)
    out, mask = torch.native_dropout(x, 0.5, True)
    assert mask.dtype == torch.bool and torch.equal(out, x * mask * 2)
    with pytest.raises(RuntimeError, match="p to be in"):
        torch.native_dropout(x, 1.5, True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_both_dropouts_scale_alike(dtype):
    x = torch.linspace(.5, 2, 512, dtype=dtype)
    for p in (.4, .15, .3):
        torch.manual_seed(0)
        expected = torch.dropout(x, p, True)
        torch.manual_seed(0)
        found = torch.native_dropout(x, p, True)[0]
        assert torch.allclose(found, expected, rtol=1e-6, atol=0) if dtype == torch.float32 else torch.equal(found, expected)


def test_nothing_is_repeated_whatever_size_is_said():
    assert aten.repeat_interleave.self_Tensor(torch.ones(0, 1, 2), torch.tensor(0), None, output_size=1).shape == (0,)
    with pytest.raises(RuntimeError, match="allocated size"):
        aten.repeat_interleave.self_Tensor(torch.ones(2), torch.tensor(1), None, output_size=1)


def test_numbers_without_a_place_do_not_leave_their_range_on_the_way():
    """What the undefined-behaviour sanitizer saw of random calls."""
    numbers = torch.tensor([0.5, -1.0, 2.0, 0.25, 1.5, -0.75, 0.1, 3.0])
    for width in (-1, 8, 63, 64, 100):
        upper, lower = torch.ops.aten.choose_qparams_optimized(numbers, 8, 5, 0.16, width)
        assert (upper.tolist(), lower.tolist()) == ([3.0], [-1.0])
    for dims in (2**62, -2**63 + 1, -1, 3):
        with pytest.raises(RuntimeError, match=rf"dense_to_sparse: dense_dim argument must be in \[0,2\] range, but {dims} is given"):
            torch.rand(2, 3).to_sparse(layout=torch.sparse_coo, dense_dim=dims)
    for pad in (2**63 - 1, 2**62):
        with pytest.raises((RuntimeError, IndexError)):
            torch.ops.aten.conv_tbc_backward(torch.ones(3, 2, 2), torch.ones(3, 2, 3), torch.ones(1, 2, 2), torch.ones(2), pad)
    nothing = torch.ops.aten.conv_tbc_backward(torch.ones(3, 2, 2), torch.ones(3, 2, 3), torch.ones(1, 2, 2), torch.ones(2), -2**62)
    assert [t.abs().sum().item() for t in nothing[:2]] == [0, 0] and nothing[2].tolist() == [6.0, 6.0]
