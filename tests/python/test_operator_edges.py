"""What operators do at the edges of their arguments, as PyTorch does it; found by random calls."""
import math
import subprocess
import sys

import pytest

import umbra as torch
from built import PROGRAM, ROOT

aten = torch.ops.aten
META = torch.zeros(3, device="meta")


@pytest.mark.parametrize("call", [
    lambda x: x.copy_(META),
    lambda x: x.index_fill_(0, torch.tensor([1]), torch.zeros((), device="meta")),
    lambda x: torch.add(x, META, out=x),
    lambda x: torch.bucketize(x, torch.zeros(2, device="meta")),
    lambda x: x[META.long()],
])
def test_a_call_with_a_meta_tensor_never_seems_to_have_computed_anything(call):
    x = torch.ones(3)
    with pytest.raises((RuntimeError, NotImplementedError)):
        call(x)
    assert x.tolist() == [1, 1, 1]


def test_a_fused_step_refuses_lists_of_other_lengths():
    p, g = [torch.ones(2)], [torch.ones(2)]
    options = dict(lr=0.1, weight_decay=0.0, momentum=0.9, dampening=0.0, nesterov=False, maximize=False, is_first_step=False)
    with pytest.raises(RuntimeError, match="grads.size"):
        aten._fused_sgd_(p, [], [torch.zeros(2)], **options)
    with pytest.raises(RuntimeError, match="momentum_buffer_list.size"):
        aten._fused_sgd_(p, g, [], **options)
    with pytest.raises(RuntimeError, match="momentum_buffer_list.empty"):
        aten._fused_sgd_(p, g, [torch.zeros(2)], **{**options, "momentum": 0.0})
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        aten._fused_sgd_(p, [g[0].double()], [torch.zeros(2)], **options)


def test_numbers_below_those_of_sizes_are_dimensions_out_of_range():
    least = -2**63 + 1
    with pytest.raises(IndexError):
        torch.softmax(torch.ones(2), least)
    with pytest.raises(RuntimeError):
        torch.ones(2).expand(least)


def test_slopes_at_the_corners():
    ends = torch.tensor([-3.0, 3.0])
    assert aten.hardswish_backward(torch.ones(2), ends).tolist() == [0, 1]
    assert aten.elu(torch.zeros(3), math.nan).tolist() == [0, 0, 0]
    assert aten.elu(torch.zeros(3), 1.0, 1.0, math.inf).tolist() == [0, 0, 0]


def test_gradients_of_losses_have_the_type_of_the_input():
    one = torch.ones(3)
    for backward, rest in ((aten.mse_loss_backward, ()), (aten.smooth_l1_loss_backward, (1.0,)), (aten.soft_margin_loss_backward, ())):
        assert backward(one.double(), one, one, 0, *rest).dtype == torch.float32
        with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
            backward(one, one.long(), one, 0, *rest)
    with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
        aten.huber_loss_backward(one.double(), one, one, 0, 1.0)


def test_a_mean_is_shared_out_among_the_elements_of_the_input():
    grad, x, y = torch.ones(()), torch.full((3,), 2.0), torch.ones(2, 3)
    for backward in (aten.smooth_l1_loss_backward, aten.huber_loss_backward):
        assert torch.allclose(backward(grad, x, y, 1, 1.0), torch.full((2, 3), 1 / 3))


def test_the_mask_of_a_dropout_may_be_of_numbers():
    assert torch.allclose(aten.native_dropout_backward(torch.ones(2), torch.tensor([0.5, 2.0]), 2.0), torch.tensor([1.0, 4.0]))


@pytest.mark.parametrize("values, k, place", [([0] * 5, 1, 3), ([3, 1, 1, 2, 1, 1], 2, None), ([1.0, math.nan, math.nan, 0.0], 3, 2)])
def test_which_of_equal_elements_kthvalue_points_at(values, k, place):
    value, index = torch.kthvalue(torch.tensor(values), k)
    assert place is None or index.item() == place
    assert values[index.item()] == value.item() or math.isnan(value.item())


def test_sums_of_powers_count_everything_for_the_power_zero():
    assert aten.linalg__powsum(torch.tensor([0.0, 1, 2]), 0).item() == 3
    with pytest.raises(NotImplementedError, match="powsum_cpu"):
        aten.linalg__powsum(torch.tensor([0, 1, 2]), 2)


def test_logarithms_and_polygammas_at_their_limits():
    assert torch.log2(torch.zeros((), dtype=torch.complex64)).item() == complex(-math.inf, 0)
    assert torch.polygamma(100, torch.tensor([3.8])).isnan().all()


def test_shares_of_nothing_are_equal():
    assert torch.allclose(aten._sample_dirichlet(torch.zeros(2, 4)), torch.full((2, 4), 0.25))


@pytest.mark.parametrize("call", [
    lambda out: torch.argsort(torch.ones(2), stable=True, out=out),
    lambda out: torch.msort(torch.ones(2), out=out),
    lambda out: torch.linalg.svdvals(torch.ones(2, 2), out=out),
    lambda out: torch.tril(torch.ones(2, 2), out=out),
    lambda out: torch.isposinf(torch.ones(2), out=out),
    lambda out: torch.clamp_max(torch.ones(2), 3, out=out),
    lambda out: torch.conj_physical(torch.ones(2), out=out),
])
def test_outputs_of_another_type_are_refused(call):
    with pytest.raises(RuntimeError):
        call(torch.empty(0, dtype=torch.complex128))


@pytest.mark.parametrize("call", [
    lambda x: torch.clamp_max(x, 1e300), lambda x: torch.celu(x, 1e300), lambda x: torch.add(x, x, alpha=1e300), lambda x: torch.addcmul(x, x, x, value=1e300),
])
def test_parameters_that_overflow_are_refused(call):
    with pytest.raises(RuntimeError, match="value cannot be converted to type float without overflow"):
        call(torch.ones(3))
    call(torch.ones(3, dtype=torch.double))


def test_conjugates_are_of_complex_tensors():
    with pytest.raises(RuntimeError):
        aten._conj(torch.ones(2))


def test_one_number_for_a_list_of_tensors_has_no_dimensions():
    with pytest.raises(RuntimeError, match="scalar tensor expected to be 0 dim but it has 1 dimensions and 1 elements."):
        torch._foreach_mul([torch.ones(2)], torch.ones(1))


def test_the_page_of_operators_is_up_to_date():
    if not PROGRAM.exists():
        pytest.skip("the command-line program is not built")
    done = subprocess.run([sys.executable, ROOT / "tools/operator_table.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


EMPTY, ROW, TURNED = torch.zeros(4, 0, 1, 3, 2), torch.zeros(3, 1).t(), torch.zeros(5, 4).t()


@pytest.mark.parametrize("call, expected", [
    (lambda x: torch.pow(x, 2.0), [(6, 6, 6, 2, 1), (3, 1), (1, 4)]),
    (lambda x: torch.pow(2.0, x), [(6, 6, 6, 2, 1), (3, 1), (5, 1)]),
    (lambda x: torch.nan_to_num(x), [(6, 6, 6, 2, 1), (1, 1), (1, 4)]),
    (lambda x: torch.isfinite(x.long()), [(6, 6, 6, 2, 1), (1, 1), (1, 4)]),
    (lambda x: torch.nn.functional.hardtanh(x), [(6, 6, 6, 2, 1), (1, 1), (1, 4)]),
    (lambda x: torch.frexp(x)[0], [(6, 6, 6, 2, 1), (1, 1), (1, 4)]),
    (aten.lift_fresh_copy, [(6, 6, 6, 2, 1), (3, 1), (5, 1)]),
])
def test_layouts_of_results_without_elements_of_rows_and_of_transposes(call, expected):
    assert [call(x).stride() for x in (EMPTY, ROW, TURNED)] == expected


@pytest.mark.parametrize("call", [
    lambda: aten.scatter.reduce(torch.ones(2), 5, torch.zeros(2), torch.ones(2), reduce="none"),
    lambda: torch.baddbmm(torch.ones(1), torch.ones(2), torch.ones(2)),
    lambda: torch.addbmm(torch.ones(1), torch.ones(()), torch.ones(2)),
    lambda: aten._softmax(torch.ones(2), 7, True),
    lambda: torch.ones(2).index_put_([torch.zeros(1, dtype=torch.long)] * 2, torch.ones((), dtype=torch.long)),
    lambda: aten._pdist_forward(torch.ones(())),
])
def test_dimensions_that_are_not_there_are_told_first(call):
    with pytest.raises(IndexError):
        call()


def test_strided_tensors_have_no_sparse_parts():
    for op in (aten._nnz, aten._indices, aten._values):
        with pytest.raises(NotImplementedError):
            op(torch.ones(2))


def test_filling_where_there_are_no_rows():
    assert torch.zeros(3, 0).t().index_fill(1, torch.tensor([0]), 1.0).shape == (0, 3)


@pytest.mark.parametrize("equation, sizes, strides", [
    ("ed,ad->ade", [(5, 4), (2, 4)], (20, 1, 4)), ("ab,bd->da", [(2, 3), (3, 4)], (2, 1)), ("aeb,bd->eda", [(2, 5, 3), (3, 4)], (8, 1, 4)),
    ("gab,gbd->dag", [(7, 2, 3), (7, 3, 4)], (2, 1, 8)), ("ab,bd,e->dae", [(2, 3), (3, 4), (5,)], (1, 20, 4)),
    ("ab,bd,de->ea", [(2, 3), (3, 4), (4, 5)], (1, 5)), ("fbd,cbaeg->edb", [(2, 3, 4), (1, 3, 2, 5, 1)], (12, 3, 1)),
    ("bildsk,biokl->bolsd", [(2, 3, 4, 5, 6, 3), (2, 3, 7, 3, 4)], (840, 30, 210, 5, 1)),
])
def test_products_by_names_lie_in_memory_as_in_torch(equation, sizes, strides):
    product = torch.einsum(equation, *(torch.ones(size) for size in sizes))
    assert product.stride() == strides


def test_a_product_by_names_takes_the_path_that_it_is_given():
    a, b, c = torch.randn(2, 3), torch.randn(3, 4), torch.randn(4, 5)
    assert torch.allclose(torch.ops.aten.einsum("ab,bd,de->ae", [a, b, c], path=[1, 2, 0, 1]), a @ b @ c, atol=1e-5)
    with pytest.raises(RuntimeError, match="path parameter to have size 4 but got 2"):
        torch.ops.aten.einsum("ab,bd,de->ae", [a, b, c], path=[1, 2])


def test_a_batch_without_variation_and_epsilon_is_normalised_to_zeros():
    out, mean, invstd = aten._native_batch_norm_legit.no_stats(torch.zeros(2, 3, 2), None, None, True, 0.1, 0.0)
    assert out.abs().sum().item() == 0 and invstd.tolist() == [0, 0, 0]


def test_an_infinite_part_of_a_complex_sum_leaves_the_other_a_nan():
    total = torch.tensor([1 + 2j]) + float("inf")
    assert total.real.item() == float("inf") and total.imag.isnan().item()


def test_numbers_around_a_mean_take_the_shape_that_output_and_mean_have_in_common():
    assert torch.normal(torch.ones(3, 1), 2.0, out=torch.ones(3)).shape == (3, 3)
    with pytest.raises(RuntimeError, match="must match"):
        torch.normal(torch.ones(2), 2.0, out=torch.ones(3))


def test_what_is_rolled_along_dimensions_keeps_its_layout_where_it_is_empty():
    x = torch.ones(0, 3, 4, 4).transpose(1, 3)
    assert torch.roll(x, [1], [1]).stride() == x.stride()
    assert torch.roll(x, [1]).stride() == (48, 12, 3, 1)


def test_polynomials_of_high_degrees_follow_their_limits():
    x = torch.tensor([0.5, -0.3, 2.0], dtype=torch.double)
    n = 2**26
    near, far = torch.special.legendre_polynomial_p(x, n + 1), torch.special.laguerre_polynomial_l(x.abs(), n + 1)
    assert near[2].isnan() and abs(near[0].item()) < 2e-4 and near.isfinite().tolist() == [True, True, False]
    # (n + 1) P(n + 1) = (2 n + 1) x P(n) - n P(n - 1) holds between degrees on both sides of the limit.
    p = [torch.special.legendre_polynomial_p(x[:2], n + k) for k in (1, 2, 3)]
    assert torch.allclose((n + 3) * p[2], (2 * n + 5) * x[:2] * p[1] - (n + 2) * p[0], atol=1e-3)
    assert far.isfinite().all()


# ---- calls of backward operators by themselves ----


def test_lengths_of_a_weight_norm_have_any_shape_with_one_for_each_slice():
    v, lengths = torch.arange(6.0).reshape(2, 3), torch.tensor([1.0, 2.0])
    w, norms = aten._weight_norm_interface(v, lengths, 0)
    expected, columns = aten._weight_norm_interface(v, lengths.reshape(2, 1), 0)
    assert norms.shape == (2,) and torch.equal(w, expected) and torch.equal(norms, columns.reshape(2))
    of_v, of_g = aten._weight_norm_interface_backward(torch.ones(2, 3), v, lengths, norms, 0)
    assert of_g.shape == (2,) and of_v.shape == (2, 3)
    with pytest.raises(RuntimeError, match="one length for each"):
        aten._weight_norm_interface(v, torch.ones(2, 1), 1)


def test_weight_norms_of_half_precision_have_their_norms_in_single():
    w, norms = aten._weight_norm_interface(torch.ones(2, 3, dtype=torch.half), torch.ones(2, 1, dtype=torch.half), 0)
    assert w.dtype == torch.half and norms.dtype == torch.float32
    assert w[0, 0].item() == pytest.approx(0.577, abs=1e-3)
    nothing, none = aten._weight_norm_interface(torch.ones(0, 3, dtype=torch.int64), torch.ones(4), 0)
    assert nothing.shape == (0, 3) and none.tolist() == [0, 0, 0, 0]


def test_a_gradient_of_glu_has_the_type_of_its_input_and_broadcasts_to_half_of_it():
    assert aten.glu_backward(torch.ones(1), torch.ones(4), 0).shape == (4,)
    for grad in (torch.ones(5), torch.ones(2, 1)):
        with pytest.raises(RuntimeError):
            aten.glu_backward(grad, torch.ones(4), 0)
    with pytest.raises(RuntimeError, match="Found dtype Double"):
        aten.glu_backward(torch.ones(2, dtype=torch.float64), torch.ones(4), 0)


def test_slopes_that_were_drawn_count_in_whichever_order_their_bounds_are():
    noise = torch.tensor([0.25, 1.0])
    assert aten.rrelu_with_noise_backward(torch.ones(2), torch.ones(2), noise, 3, 1, True, False).tolist() == [0.25, 1.0]


def test_an_absolute_loss_falls_where_its_lines_meet():
    difference = torch.tensor([-0.5, 0.0, 0.5, float("nan")])
    slopes = aten.smooth_l1_loss_backward(torch.ones(4), difference, torch.zeros(4), 0, 0.0)
    assert slopes.tolist()[:3] == [-1, -1, 1] and slopes[3].isnan()


def test_gradients_of_softmax_have_the_type_of_the_gradient_on_the_host():
    g = torch.ones(2, dtype=torch.float64)
    for op in (aten._softmax_backward_data, aten._log_softmax_backward_data):
        assert op(g, g, 0, torch.float32).dtype == torch.float64
        with pytest.raises(RuntimeError, match="expected scalar type Float but found Half"):
            op(torch.ones(2), torch.ones(2), 0, torch.half)


def test_gradients_of_dropout_are_promoted_as_products():
    whole = torch.ones(2, dtype=torch.int64)
    assert aten.native_dropout_backward(torch.ones((), dtype=torch.float64), whole, 0.5).dtype == torch.float64
    assert aten.native_dropout_backward(whole, torch.ones(2, dtype=torch.float64), 0.5).dtype == torch.float64


def test_a_sparse_gradient_of_gather_is_sparse():
    index = torch.tensor([[2, 0]])
    places = aten.gather_backward(torch.tensor([[5.0, 7.0]]), torch.zeros(1, 3), 1, index, True)
    assert places.layout == torch.sparse_coo
    dense = aten.gather_backward(torch.tensor([[5.0, 7.0]]), torch.zeros(1, 3), 1, index, False)
    assert torch.equal(places.to_dense(), dense)


def test_adding_with_a_relu_gives_numbers():
    x = torch.tensor([float("inf"), float("-inf"), float("nan"), 2.0], dtype=torch.float64)
    assert aten._add_relu.Scalar(x, 0.0).tolist() == [torch.finfo(torch.float64).max, 0, 0, 2]


def test_a_real_transform_of_no_elements_has_no_first_frequency():
    with pytest.raises(RuntimeError):
        aten._fft_r2c(torch.ones(2, 0), [1], 0, True)


def test_the_median_of_no_bools_is_true():
    assert aten.median(torch.zeros(0, dtype=torch.bool)).item() is True


def test_autocasting_leaves_halves_as_they_are():
    half = torch.ones(2, dtype=torch.half)
    assert aten._autocast_to_reduced_precision(half, True, True, torch.bfloat16, torch.bfloat16) is half


def test_one_step_and_none_are_of_any_type():
    assert torch.linspace(0.5, 1.0, 0, dtype=torch.bool).shape == (0,)
    assert torch.linspace(0.5, 1.0, 1, dtype=torch.bool).tolist() == [True]


def test_an_output_that_is_resized_no_longer_lies_over_itself():
    out = torch.zeros(1).expand(3)
    assert aten.native_dropout_backward.out(torch.ones(2), torch.ones(2), 0.5, out=out).tolist() == [0.5, 0.5]
    with pytest.raises(RuntimeError, match="more than one element"):
        aten.neg.out(torch.ones(2), out=torch.zeros(1).expand(3))


def test_joining_empty_vectors_takes_any_dimension():
    assert torch.cat([torch.ones(0)], 3).shape == (0,)


def test_logarithms_of_sigmoids_lie_row_by_row():
    assert aten.log_sigmoid_forward(torch.ones(2, 5).t())[0].stride() == (2, 1)


def test_adding_with_a_relu_ends_at_the_largest_number_of_the_first_type():
    assert aten._add_relu.Scalar(torch.ones(1, dtype=torch.int8), 1000.5).tolist() == [127]
    assert aten._add_relu.Scalar(torch.ones(1, dtype=torch.int64), float("inf")).tolist() == [2.0**63]


def test_complex_steps_to_infinity_have_no_imaginary_part():
    out = torch.zeros(4, dtype=torch.complex64)
    assert torch.linspace(1, float("inf"), 4, out=out).imag.tolist() == [0, 0, 0, 0]


def test_targets_of_bytes_keep_their_sign_in_a_soft_margin_loss():
    target = torch.tensor([0, 3], dtype=torch.uint8)
    slopes = aten.soft_margin_loss_backward(torch.ones(2), torch.tensor([0.5, 2.0], dtype=torch.float64), target, 0)
    assert slopes.tolist() == [0, -3]


def test_a_weight_without_dimensions_takes_part_in_the_type_of_lerp():
    ends = torch.tensor([1, 2]), torch.tensor([3, 4])
    assert torch.lerp(*ends, torch.tensor(0.5)).tolist() == [2.0, 3.0] and torch.lerp(*ends, torch.tensor(0.5)).dtype == torch.float32
    assert torch.lerp(torch.ones(2), torch.zeros(2), torch.tensor(1j)).tolist() == [1 - 1j, 1 - 1j]
    with pytest.raises(RuntimeError, match="expected dtype long int for `weight` but got dtype float"):
        torch.lerp(*ends, torch.tensor([0.5]))


def test_volumes_of_doubles_do_not_keep_their_format():
    volume, kernel = torch.rand(2, 3, 4, 5, 6), torch.rand(2, 3, 2, 2, 2)
    last = volume.contiguous(memory_format=torch.channels_last_3d)
    assert torch.conv3d(last, kernel).is_contiguous(memory_format=torch.channels_last_3d)
    result = torch.conv3d(last.double(), kernel.double())
    assert result.is_contiguous()
    torch.testing.assert_close(result, torch.conv3d(volume.double(), kernel.double()))
    assert torch.conv3d(last.double().to("meta"), kernel.double().to("meta")).is_contiguous()
