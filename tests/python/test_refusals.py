"""What operators refuse, by which exception and in which order: as PyTorch does."""
import pytest

import umbra as torch
from refusals import refused
from umbra._subclasses.fake_tensor import FakeTensorMode

aten = torch.ops.aten


# ---- outputs ----

def test_a_generated_out_variant_asks_its_operator_first():
    x = torch.rand(3)
    refused(NotImplementedError, lambda: aten.__lshift__.Scalar_out(x, 1, out=torch.zeros(3, dtype=torch.int64)), "lshift_cpu")
    y = torch.ones(3, dtype=torch.int64)
    refused(RuntimeError, lambda: aten.__lshift__.Scalar_out(y, 1, out=torch.zeros(3)), "Expected out tensor to have dtype")


def test_what_has_no_derivative_writes_its_output_though_inputs_require_gradients():
    x = torch.rand(3, requires_grad=True)
    out = torch.zeros(3)
    assert aten.ge.Scalar_out(x, 0, out=out).tolist() == [1, 1, 1]
    assert not out.requires_grad
    assert aten.logical_not.out(x, out=torch.ones(3)).tolist() == [0, 0, 0]
    refused(RuntimeError, lambda: aten.mul.out(x, x, out=out), "don't support automatic differentiation")


def test_outputs_of_a_generated_out_variant_refuse_to_be_differentiated():
    x = torch.rand(3, requires_grad=True)
    out = torch.zeros(3)
    assert aten.clone.out(x, out=out) is out and out.tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="is not implemented"):
        out.sum().backward()
    refused(RuntimeError, lambda: aten.clone.out(x, out=torch.zeros(3, requires_grad=True)), "automatic differentiation")


def test_an_out_variant_made_of_parts_refuses_its_arguments_before_gradients():
    x = torch.rand(2, 2, requires_grad=True)
    refused(RuntimeError, lambda: aten.outer.out(x, x, out=torch.zeros(2, 2)), "Expected 1-D argument self")
    v = torch.rand(2, requires_grad=True)
    refused(RuntimeError, lambda: aten.outer.out(v, v, out=torch.zeros(2, 2)), "automatic differentiation")


@pytest.mark.parametrize("call, kind, text", [
    (lambda x, out: aten.cat.out([x, x.reshape(3, 1)], out=out), TypeError, "can't be cast to the desired output type Long"),
    (lambda x, out: aten.hstack.out([x, x.reshape(1, 3)], out=out), TypeError, "can't be cast to the desired output type Long"),
    (lambda x, out: aten.stack.out([x, x], out=out), TypeError, "can't be cast to the desired output type Long"),
    (lambda x, out: aten.any.out(x, 7, out=torch.zeros(())), RuntimeError, "any only supports bool tensor for result, got: Float"),
    (lambda x, out: aten.hash_tensor.out(x, [7], out=out), RuntimeError, "dtype uint64"),
    (lambda x, out: aten.cummax.out(x, 7, values=out, indices=out), RuntimeError, "expected scalar_type Float but found Long"),
    (lambda x, out: aten.index.Tensor_out(x, [x], out=out), RuntimeError, "must have the same scalar type"),
    (lambda x, out: aten.index_copy.out(x, 0, x, x, out=out), RuntimeError, "Expected out tensor to have dtype"),
    (lambda x, out: aten.special_round.out(x, out=out), RuntimeError, "Found dtype Long but expected Float"),
    (lambda x, out: aten.narrow_copy.out(x, 5, 0, 1, out=out), RuntimeError, "self.dtype\\(\\) == output.dtype\\(\\)"),
    (lambda x, out: aten._int_mm.out(x, x, out=out), RuntimeError, "self must be a matrix"),
])
def test_the_type_of_an_output_is_looked_at_before_the_arguments(call, kind, text):
    refused(kind, lambda: call(torch.rand(3), torch.zeros(3, dtype=torch.int64)), text)


def test_an_output_of_another_type_than_the_softmax_of_integers_is_what_is_refused():
    x = torch.ones(3, dtype=torch.int64)
    refused(RuntimeError, lambda: aten._softmax.out(x, 0, False, out=torch.zeros(3)), "Expected out tensor to have dtype")
    refused(NotImplementedError, lambda: aten._softmax(x, 0, False), "softmax_lastdim_kernel_impl")
    assert aten._softmax(torch.zeros(0, dtype=torch.int64), 0, False).shape == (0,)


# ---- the meta device ----

@pytest.mark.parametrize("call", [
    lambda x: aten._aminmax(x), lambda x: aten.glu_jvp(x, x, x, 7), lambda x: aten.histogram.bin_ct(x, -1),
    lambda x: aten.unique_dim(x, 9), lambda x: aten.linalg_lstsq.out(x, x, solution=x, residuals=x, rank=x, singular_values=x),
    lambda x: aten.nonzero(x), lambda x: aten.thnn_conv2d(x, x, [1]), lambda x: aten.slow_conv3d_forward(x, x, [1], None, [1], [1]),
    lambda x: aten.slow_conv_dilated2d(x, x, [1]), lambda x: aten.linalg_lstsq(x, x), lambda x: aten._spdiags(x, x, [1]),
    lambda x: aten.sparse_sampled_addmm.out(x, x, x, out=torch.ones(2)),
])
def test_what_has_no_meta_kernel_says_so_before_anything_else(call):
    refused(NotImplementedError, lambda: call(torch.empty(3, device="meta")))


def test_fake_tensors_have_the_metadata_that_the_meta_device_lacks():
    with FakeTensorMode():
        low, high = aten._aminmax(torch.empty(3))
    assert low.shape == high.shape == ()


def test_nothing_is_copied_between_the_meta_device_and_memory():
    x, meta = torch.rand(3), torch.empty(3, device="meta")
    refused(RuntimeError, lambda: aten.cummax.out(x, 0, values=meta, indices=meta), "Attempting to copy from device cpu to device meta")
    refused(RuntimeError, lambda: aten.abs.out(meta, out=x), "Attempting to copy from device meta to device cpu")


def test_memory_of_the_host_that_is_not_there_is_a_runtime_error():
    refused(RuntimeError, lambda: torch.empty(2**58), "can't allocate memory")


# ---- arguments ----

def test_a_mask_of_outputs_has_its_length():
    x = torch.rand(1, 1, 2, 2)
    refused(RuntimeError, lambda: aten.grid_sampler_2d_backward(x, x, torch.rand(1, 2, 2, 2), 0, 0, False, [True]),
            "List with 1 elements to a fixed-size array of size 2")


@pytest.mark.parametrize("training, statistics, kind, text", [
    (True, (True, False), ValueError, "either both be None or neither"),
    (False, (False, False), ValueError, "running_mean must be defined in evaluation mode"),
    (False, (True, False), ValueError, "running_var must be defined in evaluation mode"),
])
def test_batch_norm_has_both_running_statistics_or_none(training, statistics, kind, text):
    mean, var = (torch.rand(3) if given else None for given in statistics)
    refused(kind, lambda: aten.native_batch_norm(torch.rand(2, 3), None, None, mean, var, training, 0.1, 1e-5), text)


def test_batch_norm_asks_for_dimensions_and_type_before_sizes():
    norm = lambda x, training: aten.native_batch_norm(x, torch.rand(7), None, torch.rand(3), torch.rand(3), training, 0.1, 1e-5)
    refused(IndexError, lambda: norm(torch.rand(3), True), "got 1")
    refused(NotImplementedError, lambda: norm(torch.ones(2, 3, dtype=torch.int64), True), "batch_norm")
    refused(RuntimeError, lambda: norm(torch.rand(2, 3), True), "weight should contain 3 elements not 7")
    refused(ValueError, lambda: aten._native_batch_norm_legit.no_stats(torch.rand(2, 3), None, None, False, 0.1, 1e-5))


def test_recurrent_cells_ask_for_the_dimensions_of_weights_first():
    x, h, w = torch.rand(2, 3), torch.rand(2, 4), torch.rand(4, 3)
    refused(IndexError, lambda: aten.rnn_tanh_cell(torch.rand(2, 3, 1), h, w, torch.rand(())), "specified as 1")
    refused(IndexError, lambda: aten.lstm_cell(torch.rand(2, 3, 1), [h, h], torch.rand(3), torch.rand(4, 4)), "got 1")
    refused(RuntimeError, lambda: aten.rnn_tanh_cell(x, torch.rand(()), w, torch.rand(4, 4)), "Expected 2D hidden0")


def test_narrow_copy_refuses_a_dimension_that_is_too_large_as_a_runtime_error():
    x = torch.rand(2, 3)
    refused(RuntimeError, lambda: torch.narrow_copy(x, 2, 0, 1), "to be true, but got false")
    refused(IndexError, lambda: torch.narrow_copy(x, -3, 0, 1), "Dimension out of range")


def test_losses_of_integers_are_refused():
    x = torch.ones(2, dtype=torch.int64)
    refused(RuntimeError, lambda: torch.nn.functional.kl_div(x, torch.rand(2)), "Integral inputs not supported")
    refused(NotImplementedError, lambda: torch.nn.functional.mse_loss(x, x), "mse_cpu")
    refused(RuntimeError, lambda: torch.nn.functional.mse_loss(x, torch.rand(3)), "must match")


def test_kernels_of_one_type_refuse_two():
    x, wide = torch.rand(3), torch.rand(3).double()
    refused(RuntimeError, lambda: aten._prelu_kernel(x, wide), "Found dtype Double but expected Float")
    refused(RuntimeError, lambda: aten.log_sigmoid_backward(wide, x, x), "Found dtype Double but expected Float")
    refused(RuntimeError, lambda: aten.log_sigmoid.out(x, out=wide), "expected scalar type Float but found Double")
    refused(RuntimeError, lambda: aten._add_relu.Tensor(x.half(), x.half()), "add_relu")


def test_masks_and_factors_are_checked():
    x = torch.rand(3)
    refused(RuntimeError, lambda: aten.masked_scatter_backward(x, x, [2]), "expected BoolTensor for mask")
    refused(RuntimeError, lambda: aten.fake_quantize_per_channel_affine_cachemask_backward(x, x), "ScalarType::Bool")
    refused(ValueError, lambda: aten.unfold_backward(x, [3], 0, 1, 0), "step is 0 but must be > 0")
    refused(IndexError, lambda: aten._weight_norm(torch.rand(2, 3, 4), x, 3), "Dimension out of range")
    refused(NotImplementedError, lambda: aten._weight_norm_interface(torch.ones(2, 3, dtype=torch.int64), x), "weight_norm_kernel")


def test_a_fused_rms_norm_minds_the_rank_of_the_normalised_shape_alone():
    x = torch.rand(2, 3, 4)
    out, scale = aten._fused_rms_norm(x, [9], None, None)
    assert out.shape == x.shape and scale.shape == (2, 3, 1)
    refused(ValueError, lambda: aten.rms_norm(x, [1, 2, 3, 4]), "at least 4 dimensions")


def test_an_empty_distance_asks_nothing():
    assert aten._pdist_forward(torch.zeros(1, dtype=torch.int64)).shape == (0,)
    refused(NotImplementedError, lambda: aten._pdist_forward(torch.ones(2, 3, dtype=torch.int64)), "pdist")
    grad = aten._cdist_backward(torch.rand(0, 2), torch.rand(0, 2), torch.rand(2, 2).long(), 2.0, torch.rand(()))
    assert grad.shape == (0, 2)


def test_in_place_scans_keep_their_type():
    refused(RuntimeError, lambda: torch.rand(3).cumsum_(0, dtype=torch.float64), "should match")
    refused(RuntimeError, lambda: torch.rand(3).cumprod_(0, dtype=torch.float64), "should match")
    assert torch.ones(3).cumsum_(0, dtype=torch.float32).tolist() == [1, 2, 3]


def test_a_result_of_a_negative_slope_does_not_tell_its_input():
    x = torch.rand(3)
    refused(RuntimeError, lambda: aten.leaky_relu_backward(x, x, -1.0, True), "negative slope")
    refused(RuntimeError, lambda: aten.elu_backward(x, -1.0, 1.0, 1.0, True, x), "negative slope")
    assert aten.leaky_relu_backward(x, x, -1.0, False).tolist() == x.tolist()


def test_the_two_outputs_of_aminmax_are_apart():
    out = torch.zeros(3)
    refused(ValueError, lambda: aten.aminmax.out(torch.rand(3, 3), dim=0, min=out, max=out), "must not overlap")


# ---- values ----

def test_padded_sequences_have_the_type_of_the_first():
    rows = torch.nn.utils.rnn.pad_sequence([torch.tensor([True]), torch.tensor([0.0, 2.0])])
    assert rows.dtype == torch.bool and rows.tolist() == [[True, False], [False, True]]


def test_a_sequence_fills_an_output_of_as_many_elements_in_its_own_shape():
    assert torch.arange(4, out=torch.zeros(2, 2)).tolist() == [[0, 1], [2, 3]]
    assert torch.linspace(1, 1, 1, out=torch.zeros(())).tolist() == 1
    assert torch.arange(3, out=torch.zeros(2, 2)).tolist() == [0, 1, 2]


def test_memory_that_is_set_is_read_by_the_type_of_the_tensor():
    x = torch.zeros(1, dtype=torch.int32)
    aten.set_.source_Tensor(x, torch.ones(2))
    assert x.dtype == torch.int32 and x.tolist() == [0x3F800000] * 2


def test_a_factorisation_without_elements_has_no_permutation_unless_asked():
    p, lower, upper = torch.linalg.lu(torch.zeros(2, 3, 0), pivot=False)
    assert p.shape == (0,) and lower.shape == (2, 3, 0) and upper.shape == (2, 0, 0)


def test_packed_data_has_a_dimension():
    refused(RuntimeError, lambda: aten._pad_packed_sequence(torch.tensor(0), torch.tensor([0, 0]), False, 0, 7), "dimension")


# ---- numbers and lists ----

def test_a_dimension_of_a_list_may_be_any_integer_of_64_bits():
    refused(IndexError, lambda: torch.ones(2, 2).squeeze([-2**63 + 1]), "got -9223372036854775807")
    refused(IndexError, lambda: torch.amin(torch.ones(2, 2), [0, -2**63 + 1]), "got -9223372036854775807")


def test_numbers_that_do_not_fit_are_refused_of_empty_tensors_too():
    text = "value cannot be converted to type float without overflow"
    refused(RuntimeError, lambda: torch.clamp_min(torch.ones(0), 1e300), text)
    refused(RuntimeError, lambda: torch.linspace(0, 1e300, 2), text)
    assert torch.linspace(0, 1e300, 1).tolist() == [0]


def test_lists_that_are_written_hold_no_lazy_conjugates():
    x = torch.ones(2, dtype=torch.complex64).conj()
    refused(RuntimeError, lambda: torch._foreach_sin_([x]), "mutable TensorLists with conjugate inputs")
    refused(RuntimeError, lambda: torch._foreach_sin_([x.imag]), "mutable TensorLists with negation inputs")


def test_operators_on_bits_write_no_leaf_that_requires_gradients():
    x = torch.ones(2, requires_grad=True)
    refused(RuntimeError, lambda: x.bitwise_and_(x), "a leaf Variable that requires grad")
    refused(NotImplementedError, lambda: aten.bitwise_and.Tensor_out(x, x, out=torch.ones(2)), "bitwise_and_cpu")
    refused(RuntimeError, lambda: aten.bitwise_and.Tensor_out(x, x, out=x), "automatic differentiation")


def test_all_dimensions_are_wrapped_before_one_is_found_twice():
    refused(IndexError, lambda: torch.amin(torch.ones(1, 1), [0, 0, 7]), "got 7")
    refused(IndexError, lambda: torch.logsumexp(torch.ones(1, 1), [0, 0, 7]), "got 7")
    refused(RuntimeError, lambda: torch.amin(torch.ones(1, 1), [0, 0]), "appears multiple times")


# ---- numbers that a type does not have ----

def test_parameters_too_large_for_the_type_are_refused_though_there_are_no_elements():
    refused(RuntimeError, lambda: aten.sub(torch.ones((), dtype=torch.complex64), torch.ones(()), alpha=1e300), "complex<float> without")
    refused(RuntimeError, lambda: aten.add(torch.ones(2, dtype=torch.int8), torch.ones(2, dtype=torch.int8), alpha=3000), "int8_t")
    refused(RuntimeError, lambda: aten.pow(torch.ones(0, dtype=torch.bfloat16), 1e300), "BFloat16 without overflow")
    refused(RuntimeError, lambda: aten.pow(torch.ones(2, dtype=torch.int32), 2**31), "int without overflow")
    refused(RuntimeError, lambda: aten.full_like(torch.ones(0, dtype=torch.int64), 1e300), "int64_t without overflow")
    refused(RuntimeError, lambda: aten.full_like(torch.ones(2, dtype=torch.float16), 1e300), "Half without overflow")
    refused(RuntimeError, lambda: aten._foreach_maximum([torch.ones(2)], 1e300), "float without overflow")
    refused(RuntimeError, lambda: aten.special_logit(torch.ones(0), 1e300), "float without overflow")


def test_one_element_of_a_narrow_type_takes_infinity_for_what_is_too_large():
    assert torch.zeros(1, dtype=torch.float16).fill_(1e300).tolist() == [float("inf")]


# ---- what outputs decide ----

def test_a_sum_is_computed_in_the_type_of_its_output():
    x = torch.tensor([0.5, 0.5, 1.0])
    assert aten.sum.IntList_out(x, None, False, out=torch.zeros((), dtype=torch.int64)).item() == 1
    assert aten.cumsum.out(x, 0, out=torch.zeros(3, dtype=torch.int64)).tolist() == [0, 0, 1]
    assert aten.prod.int_out(x, 0, False, out=torch.zeros((), dtype=torch.int64)).item() == 0
    assert aten.nansum.out(torch.tensor([1, 2]), None, False, out=torch.zeros(())).item() == 3
    refused(RuntimeError, lambda: aten.cumsum.out(x, 0, dtype=torch.float64, out=torch.zeros(3)), "Expected out tensor")
    refused(NotImplementedError, lambda: aten.nansum.out(x, None, False, out=torch.zeros((), dtype=torch.int64)), "nansum_cpu")


def test_nothing_has_no_extreme_of_any_type():
    refused(RuntimeError, lambda: aten.max(torch.ones(0)), "numel")
    refused(RuntimeError, lambda: aten.max(torch.ones(0, dtype=torch.complex64)), "numel")


def test_types_of_outputs_come_before_dimensions_and_kernels():
    long = dict(dtype=torch.int64)
    refused(RuntimeError, lambda: aten.mode.values(torch.ones(3), 7, False, values=torch.ones((), **long), indices=torch.ones((), **long)), "values output")
    z = torch.ones(3, dtype=torch.complex64)
    refused(RuntimeError, lambda: aten.kthvalue.values(z, 1, 0, False, values=torch.ones(()), indices=torch.ones((), **long)))
    refused(NotImplementedError, lambda: aten.kthvalue(z, 1), "kthvalue_cpu")
    refused(RuntimeError, lambda: aten.fft_rfft.out(torch.ones(3), None, 7, None, out=torch.ones(())), "complex output")
    refused(RuntimeError, lambda: aten.fft_hfft.out(torch.ones(3), None, 7, None, out=torch.ones((), **long)), "floating point output")
    a, tau = torch.ones(1, 1, **long), torch.ones(1, **long)
    refused(NotImplementedError, lambda: aten.geqrf.a(torch.ones(2, 2, dtype=torch.uint8), a=a, tau=tau), "geqrf_cpu")


# ---- derivatives ----

def test_reductions_that_are_told_to_give_integers_lose_no_derivative_silently():
    x = torch.rand(3, requires_grad=True)
    for call in (lambda: x.sum(dtype=torch.int64), lambda: x.cumsum(0, dtype=torch.int64), lambda: x.prod(dtype=torch.int64)):
        refused(RuntimeError, call, "Autograd not support dtype: Long")
    refused(RuntimeError, lambda: aten._foreach_maximum([x, torch.ones(1, dtype=torch.int32)], 7), "Autograd not support dtype: Int")
    assert not x.to(torch.int64).requires_grad


def test_a_leaf_among_written_tensors_is_named_before_types():
    z = torch.ones(2, dtype=torch.complex64)
    refused(RuntimeError, lambda: aten._foreach_trunc_([z, torch.rand(2, requires_grad=True)]), "leaf Variable")


# ---- memory ----

def test_memory_that_is_too_small_for_the_type_is_not_taken():
    for x in (torch.zeros((), dtype=torch.int64), torch.zeros(4, dtype=torch.int64)):
        refused(RuntimeError, lambda: aten.set_.source_Tensor(x, torch.zeros_like(x, dtype=torch.float16)), "out of bounds for storage")
    grown = aten.set_.source_Tensor(torch.zeros(2, dtype=torch.int64), torch.zeros(4, dtype=torch.float16))
    assert grown.shape == (4,) and grown.untyped_storage().nbytes() == 32


def test_statistics_of_a_batch_are_of_its_type():
    x, wide = torch.rand(2, 3), torch.zeros(3, dtype=torch.float64)
    refused(RuntimeError, lambda: torch.nn.functional.batch_norm(x, wide, wide), "mixed dtype")
    refused(RuntimeError, lambda: aten.batch_norm_update_stats(x, wide, wide, 0.1), "mixed dtype")
    refused(RuntimeError, lambda: aten.batch_norm_update_stats(torch.rand(0, 3), None, None, 0.1), "at least one element")


def test_outputs_of_means_are_of_the_type_that_is_told():
    refused(RuntimeError, lambda: aten.mean.dtype_out(torch.ones(3), dtype=torch.float64, out=torch.ones(())), "Expected out tensor")
    refused(RuntimeError, lambda: aten.renorm.out(torch.ones(2, 2), 3, 9, 1.0, out=torch.ones((), dtype=torch.int64)), "Expected out tensor")
    refused(RuntimeError, lambda: aten.clamp_min.out(torch.ones(3, dtype=torch.int64), 1.0, out=torch.ones(3, dtype=torch.float64)), "Found dtype")


def test_outputs_of_draws_are_of_any_type():
    out = torch.ones(1, dtype=torch.int8)
    assert aten.bernoulli.out(torch.zeros(3), out=out).tolist() == [0, 0, 0] and out.dtype == torch.int8


def test_triangles_have_places_in_two_types():
    refused(NotImplementedError, lambda: aten.triu_indices(0, 3, dtype=torch.uint8), "triu_indices")


def test_ranges_of_histograms_come_before_types():
    refused(RuntimeError, lambda: aten.histc(torch.ones(2, dtype=torch.complex64), 1, 1.0, 0.0), "larger than min")
    refused(NotImplementedError, lambda: aten.histc(torch.ones(2, dtype=torch.int64)), "histogram_cpu")


def test_an_index_that_requires_gradients_is_refused_for_its_type_alone():
    x, index = torch.ones(3), torch.ones(2, requires_grad=True)
    refused(IndexError, lambda: aten.scatter_add(x, 2, index, x), "Dimension out of range")
    refused(IndexError, lambda: aten.index_select.out(x, 3, index, out=torch.ones(1)), "Dimension out of range")
    assert aten.gather(x, 0, torch.ones(0, requires_grad=True)).shape == (0,)


def test_dimensions_of_a_reduction_are_all_in_range_before_one_is_found_twice():
    x = torch.ones(2)
    for call in (lambda: aten.sum.dim_IntList(x, [0, 0, 7]), lambda: aten.count_nonzero.dim_IntList(x, [0, 0, 7])):
        refused(IndexError, call, "out of range")
    refused(RuntimeError, lambda: aten.flip(x, [0, 0, 7]), "appears multiple times")


def test_outputs_of_linear_algebra_are_looked_at_before_matrices():
    refused(RuntimeError, lambda: aten.linalg_pinv.atol_rtol_float_out(torch.ones(4), out=torch.ones(2, dtype=torch.int64)), "safely castable")
    refused(RuntimeError, lambda: aten.nuclear_norm.out(torch.ones(2, 2, dtype=torch.float64), out=torch.ones(())), "linalg.matrix_norm expected out tensor dtype Double but got: Float")
    a, tau = aten.geqrf.a(torch.ones(2, 2), a=torch.ones(0, dtype=torch.float64), tau=torch.ones(0, dtype=torch.complex64))
    assert a.dtype == torch.float64 and tau.dtype == torch.complex64


def test_packed_sequences_are_looked_at_before_their_states():
    refused(RuntimeError, lambda: aten.lstm.data(torch.ones(2), torch.ones(1, 1), [torch.ones(1), torch.ones(1)], [], True, 1, 0.0, True, False), "should be 1D")
    refused(IndexError, lambda: aten.lstm.data(torch.ones(2), torch.ones(1), [torch.ones(1), torch.ones(1)], [], True, 1, 0.0, True, False))


def test_data_of_a_tensor_that_requires_gradients_is_of_a_type_that_has_some():
    x = torch.ones(2, requires_grad=True)
    refused(RuntimeError, lambda: aten.shallow_copy_data_(x, torch.ones(2, dtype=torch.int64)), "must be floating point")
    refused(RuntimeError, lambda: aten.shallow_copy_data_(torch.ones(2), torch.ones(2, device="meta")), "incompatible tensor type")


def test_a_list_of_gradients_that_are_wanted_has_its_length_though_nothing_computes_them():
    x = torch.ones(2, 2, 2)
    call = lambda mask, buffer=x: aten._cudnn_rnn_backward(x, [x], 1, buffer, x, None, x, None, None, None, 0, 1, 0, 1, False, 0.0, True, False, [], None, x, mask)
    refused(RuntimeError, lambda: call([True]), "fixed-size array of size 4")
    refused(RuntimeError, lambda: call([True] * 4, None), "weight_buf")
    refused(NotImplementedError, lambda: call([True] * 4), "Could not run")


def test_dense_dimensions_are_checked_before_there_is_a_matrix():
    refused(RuntimeError, lambda: torch.ones(2).to_sparse_csc(dense_dim=0), "dense_dim argument must be in")
    refused(IndexError, lambda: torch.ones(2).to_sparse_csr())
    refused(RuntimeError, lambda: torch.ones(2, 2).to_sparse_bsr((1, 1), -1), "dense_dim argument must be in")


def test_an_index_of_no_dimension_moves_nothing():
    refused(RuntimeError, lambda: aten.index(torch.ones(2, 2), [None]), "ntensor >= 3")
    assert aten.index(torch.ones(0, 2), [None]).shape == (0, 2)


def test_lists_ask_kernels_for_complex_extremes_and_single_tensors_do_not():
    x = torch.ones(2, dtype=torch.complex64)
    for call in (aten._foreach_minimum.List, aten._foreach_maximum.List, aten._foreach_minimum_.List):
        refused(NotImplementedError, lambda: call([x], [torch.ones(2)]), "imum_cpu")
        refused(RuntimeError, lambda: call([x], [torch.ones(3)]), "must match the size")
    refused(TypeError, lambda: torch.minimum(x, x), "not implemented for complex")
    refused(NotImplementedError, lambda: torch.clamp(x, torch.ones(3), torch.ones(2)), "clamp is not supported")


def test_smoothing_below_zero_is_none():
    scores, labels = torch.ones(3, 2), torch.zeros(3, dtype=torch.int64)
    assert torch.nn.functional.cross_entropy(scores, labels, label_smoothing=-1.0) == torch.nn.functional.cross_entropy(scores, labels)
    refused(ValueError, lambda: aten.cross_entropy_loss(scores, labels[:2], None, 1, -100, -1.0), "batch_size")
    refused(RuntimeError, lambda: aten.cross_entropy_loss(scores, labels, None, 1, -100, 2.0), "between 0.0 and 1.0")
    refused(RuntimeError, lambda: aten.cross_entropy_loss(scores, scores, None, 7, -100, 0.5), "Invalid reduction")


def test_padding_of_sparse_gradients_is_masked_in_indices_and_gradients():
    call = aten.embedding_sparse_backward
    refused(RuntimeError, lambda: call(torch.ones(2, 5), torch.ones(2), 3, 1, True), "scalar types: Long, Int")
    refused(IndexError, lambda: call(torch.ones(2, 5), torch.zeros(3, dtype=torch.int64), 3, 1, False), "does not match")
    refused(IndexError, lambda: call(torch.ones(2, 5), torch.tensor(0), 3, 1, False), "too many indices")


@pytest.mark.parametrize("call, text", [
    (lambda out: torch.nan_to_num(torch.ones(2), out=out), "dtype of out: Double should be same as input: Float"),
    (lambda out: torch.where(torch.ones(2) > 0, torch.ones(2), torch.ones(2), out=out), "Expected out type to be Float"),
    (lambda out: torch.linalg.vecdot(torch.ones(2, 2), torch.ones(2, 2), out=out), "Expected out of dtype"),
    (lambda out: aten.frobenius_norm.out(torch.ones(2, 2), [0], out=out), "Expected out tensor to have dtype"),
])
def test_outputs_of_a_wider_type_are_refused(call, text):
    refused(RuntimeError, lambda: call(torch.ones(2, dtype=torch.float64)), text)


def test_questions_about_real_numbers_name_complex_ones_before_outputs():
    x = torch.ones(2, dtype=torch.complex64)
    refused(TypeError, lambda: torch.isposinf(x, out=torch.ones(2)), "complex inputs")
    refused(NotImplementedError, lambda: torch.signbit(x, out=torch.ones(2)), "complex tensors")


def test_a_gradient_of_windows_has_the_dimension_that_they_slide_over():
    refused(IndexError, lambda: aten.unfold_backward(torch.ones(1), [3, 1, 3], 1, 3, 2))


def test_means_into_outputs_ask_for_a_cast_first():
    refused(RuntimeError, lambda: aten.mean.dtype_out(torch.ones(2), dtype=torch.int64, out=torch.ones(2, dtype=torch.int64)), "can't be cast")
    refused(NotImplementedError, lambda: aten.mean.dtype_out(torch.ones(2), dtype=torch.int64, out=torch.ones(2)), "could not infer")


def test_what_transforms_are_made_of_reads_signals_and_asks_for_no_dimension():
    refused(RuntimeError, lambda: aten._fft_r2c(torch.ones(()), [0], 0, True), "invalid for input of size 1")
    refused(RuntimeError, lambda: aten._fft_r2c(torch.ones(3), [4], 0, True), "signal_size")
    refused(IndexError, lambda: torch.fft.rfft(torch.ones(3), dim=4))


def test_drivers_of_nothing_are_not_asked_for():
    assert torch.linalg.svdvals(torch.ones(0, 2), driver="gesvd").shape == (0,)
    refused(RuntimeError, lambda: torch.linalg.svdvals(torch.ones(2, 2), driver="gesvd"), "only supported on CUDA")


def test_memory_is_taken_from_contiguous_tensors():
    refused(RuntimeError, lambda: aten.set_.source_Tensor_storage_offset(torch.ones(2), torch.ones(4)[::2], 0, [2], [1]), "must be contiguous")


def test_a_number_of_any_type_is_the_first_of_itself():
    values, indices = torch.kthvalue(torch.tensor(True), 1)
    assert values.item() is True and indices.item() == 0
    refused(NotImplementedError, lambda: torch.kthvalue(torch.tensor([True]), 1), "kthvalue_cpu")


def test_margins_of_narrow_numbers_are_refused():
    refused(NotImplementedError, lambda: aten.multi_margin_loss(torch.ones(2, dtype=torch.bfloat16), torch.tensor(0)), "BFloat16")
    refused(NotImplementedError, lambda: aten.multilabel_margin_loss_forward(torch.ones(2, dtype=torch.float16), torch.zeros(2, dtype=torch.int64), 1), "not implemented for 'Half'")


def test_means_of_numbers_are_told_a_type_that_has_fractions():
    refused(RuntimeError, lambda: torch.nanmean(torch.ones(2), dtype=torch.int64), "could not infer output dtype")
    refused(TypeError, lambda: aten._safe_softmax(torch.ones(2, dtype=torch.complex64), 0, torch.float32), "complex inputs")


def test_norms_of_matrices_are_written_to_their_own_type_only():
    x = torch.rand(2, 2)
    for call in (lambda out: aten.linalg_matrix_norm.str_ord_out(x, "nuc", out=out), lambda out: aten.linalg_matrix_norm.out(x, 2, out=out),
                 lambda out: aten.nuclear_norm.out(x, out=out), lambda out: aten.norm.out(x, 2, [0], out=out)):
        refused(RuntimeError, lambda: call(torch.zeros(0, dtype=torch.complex64)), "expected|Expected")
        assert call(torch.zeros(0)).dtype == torch.float32
    refused(NotImplementedError, lambda: torch.ops.aten.nuclear_norm(torch.ones(2, 0, dtype=torch.float16)), "Low precision")


def test_outputs_that_are_indices_may_require_gradients():
    x, grad = torch.rand(3, 3), torch.rand(0, requires_grad=True)
    refused(IndexError, lambda: aten.min.dim_min(x, 7, min=torch.zeros(0), min_indices=grad))
    refused(IndexError, lambda: aten.topk.values(x, 2, 7, values=torch.zeros(0), indices=grad))
    refused(RuntimeError, lambda: aten.topk.values(x, 2, 1, values=grad, indices=torch.zeros(0, dtype=torch.int64)), "automatic differentiation")
    refused(RuntimeError, lambda: aten.index.Tensor_out(x, [grad], out=torch.zeros(0)), "automatic differentiation")


def test_an_out_variant_made_of_parts_writes_what_has_no_history():
    x = torch.tensor([[1.0, 2.0], [2.0, 4.0]], requires_grad=True)
    assert aten.linalg_matrix_rank.atol_rtol_float_out(x, out=torch.zeros(0, dtype=torch.int64)).item() == 1
    refused(RuntimeError, lambda: aten.linalg_matrix_rank.atol_rtol_float_out(x.detach(), out=torch.rand(0, requires_grad=True)))


@pytest.mark.parametrize("name", ["_batch_norm_with_update_functional", "_native_batch_norm_legit_functional"])
def test_running_statistics_take_no_gradients_in_functional_forms(name):
    mean, rest = torch.zeros(3, requires_grad=True), (0.1, 1e-5)
    arguments = (torch.rand(2, 3), None, None, mean, torch.ones(3), *((True,) if "legit" in name else ()), *rest)
    refused(RuntimeError, lambda: getattr(aten, name)(*arguments), "not differentiable with respect to argument 'running_mean'")


def test_what_is_drawn_or_copied_is_not_written_where_gradients_are_required():
    x = torch.rand(3)
    for call in (lambda out: aten.randint_like.out(x, 3, out=out), lambda out: aten._to_copy.out(x, out=out), lambda out: aten.normal.out(x, out=out)):
        refused(RuntimeError, lambda: call(torch.rand(0, requires_grad=True)), "automatic differentiation")
    assert aten.ones_like.out(x, out=torch.rand(0, requires_grad=True)).tolist() == [1, 1, 1]


def test_a_product_says_its_type_before_it_is_computed():
    refused(RuntimeError, lambda: aten.cumprod.out(torch.rand(2), 0, dtype=torch.bool, out=torch.zeros(0)), "dtype")
    refused(NotImplementedError, lambda: torch.cumprod(torch.rand(2), 0, dtype=torch.bool))


def test_types_of_matrix_products():
    a, b, bias = torch.ones(2, 3, dtype=torch.float64), torch.ones(3, 2), torch.ones(2)
    for call in (lambda: torch.nn.functional.linear(a, b.t(), bias), lambda: torch.addmm(bias, a, b)):
        refused(RuntimeError, call, "^mat1 and mat2 must have the same dtype, but got Double and Float$")
    refused(RuntimeError, lambda: torch.addmm(bias.double(), a, b), "^self and mat2 must have the same dtype, but got Double and Float$")
    refused(RuntimeError, lambda: a @ b[:, 0], "^addmv input tensors must have the same dtype, but got Float, Double, and Float$")
    refused(RuntimeError, lambda: torch.baddbmm(b[None], a[None], b[None]), "expanded size of the tensor .2. must match the existing size .3.")
    refused(RuntimeError, lambda: torch.baddbmm(bias, a[None], b[None]), "^Input dtypes must be the same, got: input float, batch1: double, batch2: float$")
    refused(RuntimeError, lambda: torch.nn.functional.linear(a, a[:2], torch.ones(3).double()),
            "^The expanded size of the tensor .2. must match the existing size .3. at non-singleton dimension 1.  Target sizes: .2, 2..  Tensor sizes: .3.$")


def test_types_of_parameters():
    F, x = torch.nn.functional, torch.ones(2, 3, dtype=torch.float64)
    wrong = "^expected scalar type Double but found Float$"
    refused(RuntimeError, lambda: F.conv1d(x[None], torch.ones(1, 2, 1)), wrong)
    refused(RuntimeError, lambda: F.conv1d(x[None], torch.ones(1, 3, 1)), "to have 3 channels, but got 2 channels")  # sizes come first
    refused(RuntimeError, lambda: F.cross_entropy(x, torch.tensor([0, 1]), weight=torch.ones(3)), wrong)
    refused(RuntimeError, lambda: F.nll_loss(x[None, :, :, None], torch.zeros(1, 3, 1, dtype=torch.int64), weight=torch.ones(2)), wrong)
    refused(RuntimeError, lambda: F.multi_margin_loss(x, torch.tensor([0, 1]), weight=torch.ones(3)), wrong)
    refused(RuntimeError, lambda: F.batch_norm(x, torch.zeros(3), torch.ones(3), x[0]), wrong)
    refused(RuntimeError, lambda: F.group_norm(x, 1, torch.ones(3)), "all inputs must share same datatype")
    half = torch.ones(2, 3, dtype=torch.bfloat16)
    refused(RuntimeError, lambda: F.batch_norm(half, torch.zeros(3), torch.ones(3), half[0]), "^expected scalar type BFloat16 but found Float$")
    assert F.batch_norm(half, torch.zeros(3), torch.ones(3), torch.ones(3)).dtype is torch.bfloat16


def test_sizes_and_steps_that_mean_nothing():
    x = torch.ones(2, 3)
    refused(RuntimeError, lambda: x.view(2, -3), "^invalid shape dimension -3 at index 1 of shape .2, -3.$")
    refused(ValueError, lambda: x[::0], "^slice step cannot be zero$")
    refused(ValueError, lambda: x[::-1], "^step must be greater than zero$")
