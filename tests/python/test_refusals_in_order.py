"""Calls that are wrong in several ways: which of them is said, as PyTorch has it; and what looks wrong and is not."""
import pytest

import umbra as torch
from refusals import refused

aten = torch.ops.aten


def whole(*sizes):
    return torch.ones(sizes, dtype=torch.int64)


@pytest.mark.parametrize("call, kind, text", [
    (lambda x: aten._softmax_backward_data(x, torch.rand(3), 5, torch.float32), RuntimeError, "to have same size"),
    (lambda x: aten._softmax_backward_data(x, x, 5, torch.float32), IndexError, "out of range"),
    (lambda x: aten._log_softmax_backward_data.out(whole(2, 0), torch.rand(1), 1, torch.int8, out=whole(1).to(torch.uint8)), RuntimeError, "Expected out tensor to have dtype"),
    (lambda x: aten.hash_tensor(whole(0), [-1, -1]), IndexError, "Expected reduction dim -1 to have non-zero size"),
    (lambda x: aten.hash_tensor(whole(2), [0, 0]), RuntimeError, "appears multiple times"),
    (lambda x: aten.hash_tensor(whole(2), [0, 0, 5]), IndexError, "but got 5"),
    (lambda x: aten.any.dims(x, [0, 0, 5]), IndexError, "but got 5"),
    (lambda x: aten.logit_backward.grad_input(x, x.to(torch.complex64), None, grad_input=whole(2)), RuntimeError, "can't be cast"),
    (lambda x: aten.log_sigmoid_backward(whole(0, 3), whole(1), whole(2, 0)), RuntimeError, "The size of tensor a"),
    (lambda x: aten.split_with_sizes(x, [-2 ** 63 + 1], 5), RuntimeError, "stored inline"),
    (lambda x: aten.reflection_pad2d_backward(x, x, [-2 ** 63 + 1]), RuntimeError, "stored inline"),
    (lambda x: aten.rand.out([-1], out=whole(2)), RuntimeError, "negative dimension"),
    (lambda x: aten.rand.out([2], out=whole(2)), NotImplementedError, "check_uniform_bounds"),
    (lambda x: aten.fractional_max_pool3d_backward(torch.rand(()), torch.rand(2, 3, 5, 4, 1), [2, 3], [2, 0], whole(0)), IndexError, "no dimensions"),
    (lambda x: aten.batch_norm(x, None, None, None, whole(3, 0), True, 0.1, 1e-5, False), IndexError, "out of range"),
    (lambda x: aten._native_batch_norm_legit(whole(4, 1), None, None, whole(1), torch.rand(1), True, 0.1, 1e-5), NotImplementedError, "batch_norm"),
    (lambda x: aten.native_batch_norm_backward(torch.rand(1, 5), torch.rand(()), None, None, None, None, None, True, 1e-5, [True] * 3), IndexError, "no dimensions"),
    (lambda x: aten.logit_backward(whole(1), whole(1), float("nan")), NotImplementedError, "logit_backward_cpu"),
    (lambda x: aten.grid_sampler_3d(whole(1, 1, 2, 2, 2), torch.rand(1, 1, 1, 1, 3), 0, 9, True), NotImplementedError, "grid_sampler3d_cpu"),
    (lambda x: aten.rrelu_(x.to(torch.complex64), 1, float("inf"), True), NotImplementedError, "rrelu_with_noise_out_cpu"),
    (lambda x: aten.native_group_norm(whole(0, 1), None, None, 0, 0, 3, 0, 1e-5), RuntimeError, "channels to be greater than 0"),
    (lambda x: aten.rrelu_(x, float("nan"), 1), RuntimeError, "Lower bound"),
    (lambda x: aten.rrelu(x, float("nan"), 1), RuntimeError, "must be finite"),
    (lambda x: aten.native_batch_norm.out(x.reshape(1, -1), None, x.double(), None, None, False, 1.0, 1.0, out=x, save_mean=x, save_invstd=x), RuntimeError, "mixed dtype"),
    (lambda x: aten.embedding_renorm_(whole(2, 4), torch.tensor(3), 0.5, 2.0), IndexError, "index 3 out of range"),
    (lambda x: aten.embedding_renorm_(whole(2, 4), torch.tensor(1), 0.5, 2.0), NotImplementedError, "norm"),
    (lambda x: torch.histc(torch.tensor([255], dtype=torch.uint8)), RuntimeError, "uint8_t without overflow"),
    (lambda x: torch.histc(torch.tensor([True])), NotImplementedError, "linspace_cpu"),
    (lambda x: torch.histc(x.to(torch.complex64)), TypeError, "aminmax"),
    (lambda x: torch.histc(x, 10, 0, 1e300), RuntimeError, "type float without overflow"),
    (lambda x: aten._histogramdd_from_bin_cts(whole(0, 2), [2, 2]), NotImplementedError, "histogram_cpu"),
    (lambda x: aten.multilabel_margin_loss(whole(1), torch.tensor([2.9])), RuntimeError, "argument #2 'target' is out of range"),
    (lambda x: aten.multilabel_margin_loss(whole(1), torch.tensor([0])), NotImplementedError, "multilabel_margin_loss_forward_out_frame"),
    (lambda x: torch.multinomial(whole(2, 2, 2), 1), RuntimeError, "1 or 2 dim"),
    (lambda x: torch.zeros(2, dtype=torch.uint64).random_(3, None), RuntimeError, "to - 1 is out of bounds"),
    (lambda x: torch.randperm(5, dtype=torch.uint64), NotImplementedError, "randperm"),
    (lambda x: torch.native_dropout(whole(2), 0.4, True), RuntimeError, "can't be cast to the desired output type Long"),
    (lambda x: aten.adaptive_avg_pool2d.out(whole(1, 3, 1), [3, 2], out=x), RuntimeError, "expected dtype long int for `output` but got dtype float"),
    (lambda x: aten.adaptive_avg_pool2d.out(torch.rand(1, 3, 1), [3, 2], out=x.double()), RuntimeError, "expected dtype float for `output` but got dtype double"),
])
def test_what_is_said_first(call, kind, text):
    refused(kind, lambda: call(torch.rand(2)), text)


def test_rows_of_nothing_are_no_index_error():
    refused(RuntimeError, lambda: torch.rand(0, 4).index_select(0, whole(1)), "self indexing axis dim should be positive")
    refused(RuntimeError, lambda: aten.embedding(torch.rand(0, 4), whole(2)), "self indexing axis dim should be positive")
    refused(IndexError, lambda: torch.rand(0).index_select(0, whole(1)))
    assert torch.rand(0, 4).index_select(0, whole(0)).shape == (0, 4)


def test_nothing_may_be_repeated_however_often():
    assert torch.rand(3, 0).repeat(1, -2).shape == (3, 0)
    refused(RuntimeError, lambda: torch.rand(3, 2).repeat(1, -2), "negative dimension")
    refused(RuntimeError, lambda: torch.rand(3, 0, device="meta").repeat(1, -2))


def test_sizes_that_make_nothing_may_be_negative_where_a_tensor_is_resized():
    x = torch.rand(2).resize_(-1, 0, 3)
    assert (tuple(x.shape), x.stride(), x.numel()) == ((-1, 0, 3), (3, 3, 1), 0)
    assert aten.randn.out([0, -1], out=torch.rand(2)).shape == (0, -1)
    assert aten.randint.out(4, [0, -1], out=torch.rand(2)).shape == (0, -1)
    refused(RuntimeError, lambda: aten.randint.out(4, [0, -1], out=torch.rand(2, device="meta")), "negative dimension")
    for sizes in ([-1], [-1, 2], [-1, -1, 0]):  # the last has more elements than can be counted, until the zero
        refused(RuntimeError, lambda: torch.rand(2).resize_(sizes))
    refused(RuntimeError, lambda: torch.empty(0, -1), "negative dimension")
    refused(RuntimeError, lambda: x.clone(), "negative dimension")


def test_a_threshold_has_to_fit_the_type_that_is_computed_in():
    inf = float("inf")
    assert aten.threshold_backward(torch.ones(1, dtype=torch.float16), whole(1), inf).dtype is torch.float16
    refused(RuntimeError, lambda: aten.threshold_backward(whole(1), whole(1), inf), "without overflow")


def test_a_mode_of_hashes_has_32_bits():
    assert aten.hash_tensor(whole(3), [0], mode=2 ** 32) == aten.hash_tensor(whole(3), [0])
    refused(RuntimeError, lambda: aten.hash_tensor(whole(3), [0], mode=1), "Unknown hash_tensor mode")


def test_types_of_kernels_come_before_sizes():
    refused(NotImplementedError, lambda: aten.arange.start(float("inf"), -1, dtype=torch.complex64), "arange_cpu")
    refused(NotImplementedError, lambda: aten.trace(torch.ones((), dtype=torch.bool)), '"trace"')


def test_sizes_come_before_dimensions():
    refused(RuntimeError, lambda: aten.split.Tensor(torch.ones(3), -1, 7), "non-negative")
    refused(RuntimeError, lambda: aten.repeat_interleave.self_Tensor(torch.ones(3), torch.ones(2, 2), 7), "0-dim or 1-dim")
    refused(RuntimeError, lambda: aten._pad_enum(torch.ones(3), [1], 9), "divisible by 2")
    refused(IndexError, lambda: aten.reflection_pad1d_backward(torch.ones(1), torch.ones(3, 2, 3, 3), [2]))
    refused(IndexError, lambda: aten.replication_pad1d_backward(torch.ones(()), torch.ones(2), [2, 1]))


def test_products_of_sizes_that_overflow_are_runtime_errors():
    refused(RuntimeError, lambda: torch.randn([3, 2**62, 7, 0]))


def test_a_flat_index_may_be_of_any_type_that_gather_takes():
    assert aten.take_along_dim(torch.tensor([1.0, 2.0]), torch.tensor([1, 0, 1], dtype=torch.int32)).tolist() == [2, 1, 2]


@pytest.mark.parametrize("kind, call", [
    (TypeError, lambda: aten._chunk_cat.out([torch.rand(3)], 0, 1, out=torch.zeros(1, dtype=torch.int64))),
    (RuntimeError, lambda: aten._embedding_bag_per_sample_weights_backward(torch.rand(3), torch.rand(2, 3), torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64), 0)),
    (RuntimeError, lambda: aten._transform_bias_rescale_qkv(torch.ones(1, 0, 3, dtype=torch.int64), torch.ones(3), -1)),
    (RuntimeError, lambda: aten.hash_tensor(torch.ones(2, dtype=torch.complex64), mode=3)),
    (RuntimeError, lambda: aten.fft_rfftn(torch.tensor(1.0, dtype=torch.float16), [])),
    (RuntimeError, lambda: aten.diff(torch.rand(4), -1, 3)),
    (RuntimeError, lambda: aten.adaptive_avg_pool2d.out(torch.ones(3, dtype=torch.int64), [1, 1], out=torch.zeros(0))),
    (RuntimeError, lambda: aten.linalg_cond.out(torch.ones(2, 2, dtype=torch.float16), None, out=torch.zeros(0, dtype=torch.int64))),
    (RuntimeError, lambda: aten.mse_loss.out(torch.rand(3), torch.ones(3, dtype=torch.complex64), 1, out=torch.zeros(0))),
    (RuntimeError, lambda: aten.smooth_l1_loss.out(torch.rand(3), torch.ones(3, dtype=torch.complex64), 0, out=torch.zeros(0))),
    (IndexError, lambda: aten.nansum(torch.ones((), dtype=torch.complex64), [-1, 2])),
    (IndexError, lambda: aten.nuclear_norm.dim_out(torch.rand(2, 2), [0, 3], out=torch.zeros(0, dtype=torch.int64))),
    (RuntimeError, lambda: aten.nuclear_norm.dim_out(torch.ones((), dtype=torch.bfloat16), [4, 3], out=torch.zeros(0, dtype=torch.int64))),
    (NotImplementedError, lambda: aten.clamp_.Tensor(torch.ones((), dtype=torch.complex64), torch.ones(3))),
    (NotImplementedError, lambda: aten.clamp.Tensor(torch.ones(2, dtype=torch.complex64), None, torch.ones(3))),
])
def test_what_is_said_of_several_mistakes(kind, call):
    refused(kind, call)
