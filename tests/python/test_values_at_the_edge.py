"""What is no number, overflows, or does not fit its type: PyTorch 2.15's answers, found by random calls beside it."""
import math

import numpy
import pytest
import umbra as torch
import umbra.nn.functional as F

nan, inf = math.nan, math.inf


@pytest.mark.parametrize("count", [1, 9, 72])
def test_remainders_of_quotients_beyond_the_type(count):
    large, small = torch.full((count,), 5e37), torch.full((count,), 1e-30)
    assert torch.fmod(large, small).tolist() == pytest.approx([float(numpy.fmod(numpy.float32(5e37), numpy.float32(1e-30)))] * count)
    assert not torch.remainder(large, -small).isnan().any()
    assert torch.floor_divide(large, small).tolist() == [inf] * count
    assert torch.div(-large, small, rounding_mode="floor").tolist() == [-inf] * count
    assert torch.fmod(torch.full((count,), inf), small).isnan().all()


def test_a_loss_of_scores_that_are_no_numbers_is_none():
    scores = torch.log_softmax(torch.zeros(4, 1, 3, dtype=torch.float64), -1)
    scores[0, 0, 1] = nan
    for zero_infinity in (False, True):
        loss = F.ctc_loss(scores, torch.tensor([[1, 2]]), [4], [2], reduction="none", zero_infinity=zero_infinity)
        assert loss.isnan().all()


def test_the_gradient_of_a_batch_norm_in_evaluation_does_not_read_the_input():
    for shape in ((3, 2), (3, 2, 5)):
        x = torch.full(shape, nan, requires_grad=True)
        F.batch_norm(x, torch.zeros(2), torch.ones(2), torch.tensor([1.0, 2.0]), None, False).sum().backward()
        assert not x.grad.isnan().any()


def test_distances_of_what_is_no_number():
    x, y = torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[1.0, nan, 9.0], [nan, 2.0, 3.0]])
    assert torch.cdist(x, y, math.inf).tolist() == [[6, 0]]
    assert torch.cdist(x.expand(20, 3), y.repeat(10, 1), math.inf)[3, :2].tolist() == [6, 0]
    assert torch.cdist(x, y, 0.0).isnan().all() and torch.pdist(torch.cat([x, y]), 0.0).isnan().all()


def test_samples_at_places_that_are_none():
    image, grid = torch.arange(1.0, 13).reshape(1, 1, 3, 4), torch.tensor([[[[nan, 0.3], [0.2, nan], [nan, nan], [inf, 0.1]]]])
    for align in (True, False):
        assert F.grid_sample(image, grid, "bilinear", "zeros", align).isnan().all()
        assert F.grid_sample(image, grid, "bicubic", "border", align).isnan().all()
        assert F.grid_sample(image, grid, "nearest", "zeros", align).flatten().tolist() == [0, 0, 0, 0]
        assert F.grid_sample(image, grid, "nearest", "border", align).flatten().tolist() == [5, 3, 1, 8]
        assert F.grid_sample(image, grid, "nearest", "reflection", align).flatten().tolist() == [5, 3, 1, 5]
    volume = torch.arange(1.0, 25).reshape(1, 1, 2, 3, 4)
    assert F.grid_sample(volume, torch.full((1, 1, 1, 1, 3), nan), "nearest", "border", True).item() == 24


def test_running_sums_of_complex_exponentials_start_from_the_later_of_two_alike():
    z = torch.tensor([1 - 2j, 1 + 2j], dtype=torch.complex128)
    assert torch.logcumsumexp(z, 0)[1].imag.item() == pytest.approx(math.pi)


def test_a_number_that_is_filled_in_has_to_fit():
    mask = torch.tensor([True, False])
    for dtype, value in ((torch.uint8, -2.5), (torch.int8, 300.0), (torch.int64, nan), (torch.float16, 1e6)):
        with pytest.raises(RuntimeError, match="without overflow"):
            torch.ones(2, dtype=dtype).masked_fill(mask, torch.tensor(value))
    with pytest.raises(RuntimeError, match="c10::Half without overflow"):
        F.threshold(torch.ones(2, dtype=torch.float16), 0.5, 2**40)


def test_sums_without_what_is_no_number_as_integers():
    x = torch.tensor([[1.5, nan], [2.5, 3.0]])
    assert torch.nansum(x, dtype=torch.int64).item() == 6
    assert torch.nansum(x, 1, dtype=torch.int8).tolist() == [1, 5]


def test_types_and_sizes_that_kernels_do_not_have():
    def refused(call, error=NotImplementedError):
        with pytest.raises(error):
            call()

    for dtype in (torch.float16, torch.bfloat16):
        refused(lambda: F.avg_pool3d(torch.ones(1, 2, 2, 2, dtype=dtype), 1))
    for dtype in (torch.uint16, torch.complex32, torch.float8_e5m2):
        image = torch.ones(1, 4, 2, 2).to(dtype)
        for shuffle in (F.pixel_shuffle, F.pixel_unshuffle, F.channel_shuffle):
            refused(lambda: shuffle(image, 2))
    for dtype in (torch.int8, torch.int32, torch.uint8):
        refused(lambda: F.conv_transpose1d(torch.ones(1, 1, 3, dtype=dtype), torch.ones(1, 1, 2, dtype=dtype)))
    assert F.conv_transpose1d(torch.ones(1, 1, 3, dtype=torch.int64), torch.ones(1, 1, 2, dtype=torch.int64)).tolist() == [[[1, 2, 2, 1]]]
    refused(lambda: F.conv2d(torch.ones(1, 1, 2, 2).to(torch.float8_e5m2), torch.ones(1, 1, 1, 1).to(torch.float8_e5m2)))
    refused(lambda: F.avg_pool3d(torch.ones(1, 1, 5, 5), 2, padding=1), RuntimeError)
    refused(lambda: F.conv_transpose2d(torch.ones(1, 2, 1, 9), torch.ones(2, 2, 2, 2), padding=1), RuntimeError)


def test_of_a_number_or_nothing_any_type_has_a_mode():
    number = torch.tensor(3 + 1j)
    assert torch.mode(number)[0].item() == 3 + 1j and torch.mode(number)[1].item() == 0
    assert torch.mode(torch.ones(0, 3, dtype=torch.complex64), 1)[0].shape == (0,)
    assert torch.amax(torch.ones(3, 0, dtype=torch.complex64), 0).shape == (0,)


def test_arrays_without_elements_keep_their_strides():
    for array in (numpy.zeros((0, 3)), numpy.zeros((3, 0, 2))):
        assert torch.from_numpy(array).stride() == tuple(s // array.itemsize for s in array.strides)


@pytest.mark.parametrize("call", [
    lambda wrong: F.pad(torch.ones(1, 2), wrong), lambda wrong: F.pad(torch.ones(1, 2), [1, 1], value=wrong),
    lambda wrong: F.adaptive_avg_pool2d(torch.ones(1, 2, 2), wrong), lambda wrong: F.adaptive_max_pool3d(torch.ones(1, 2, 2, 2), wrong),
    lambda wrong: F.unfold(torch.ones(1, 1, 2, 2), wrong), lambda wrong: F.fold(torch.ones(1, 4, 1), wrong, 2),
    lambda wrong: F.soft_margin_loss(torch.ones(2), wrong), lambda wrong: F.multi_margin_loss(torch.ones(1, 2), torch.zeros(1, dtype=torch.int64), margin=wrong)])
def test_arguments_of_a_wrong_type_are_type_errors(call):
    for wrong in ("a", [1.5, 1], object()):
        with pytest.raises(TypeError):
            call(wrong)


def test_the_gradient_of_a_variance_without_a_degree_of_freedom():
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    assert torch.autograd.grad(x.var(correction=3), x)[0].tolist() == [inf, inf]
    one = torch.tensor([2.0], requires_grad=True)
    assert torch.autograd.grad(one.var(correction=2), one)[0].isnan().all()
    assert torch.autograd.grad(x.var(0, correction=0), x)[0].tolist() == [-1, 1]


def test_products_of_nothing_are_of_any_type():
    def bools(*shape):
        return torch.ones(shape, dtype=torch.bool)

    assert torch.bmm(bools(2, 3, 0), bools(2, 0, 4)).tolist() == [[[False] * 4] * 3] * 2
    assert torch.mm(bools(0, 3), bools(3, 4)).shape == (0, 4)
    assert torch.mv(bools(3, 0), bools(0)).tolist() == [False] * 3
    with pytest.raises(NotImplementedError):
        torch.mm(bools(2, 3), bools(3, 4))


def test_a_number_beyond_64_bits_is_as_true_as_any():
    x = torch.ones(3)
    assert torch.ops.aten.sum.dim_IntList(x, [0], 2**70).tolist() == [3]
    for wrong in (1, "a", 2**70):
        with pytest.raises(TypeError):
            torch.unique(x, sorted=wrong)
        with pytest.raises(TypeError):
            torch.nonzero(x, as_tuple=wrong)
        with pytest.raises(TypeError):
            torch.cdist(x[None], wrong)
    with pytest.raises(TypeError):
        x.split("a")


@pytest.mark.parametrize("name", "float double half bfloat16 int long short char byte bool cfloat cdouble cpu".split())
def test_conversions_by_name_take_a_memory_format_and_nothing_else(name):
    x = torch.arange(16.0).reshape(1, 4, 2, 2)
    assert getattr(x, name)(memory_format=torch.channels_last).stride() == (16, 1, 8, 4)
    assert getattr(x, name)(memory_format=None).stride() == (16, 4, 2, 1)
    for call in (lambda f: f(foo=1), lambda f: f(1), lambda f: f(torch.channels_last), lambda f: f(memory_format=1)):
        with pytest.raises(TypeError):
            call(getattr(x, name))


def test_methods_do_not_ignore_what_they_do_not_know():
    x = torch.ones(2, 2)
    for call in (lambda: x.numpy(foo=1), lambda: x.numpy(1), lambda: x.numpy(force=torch.ones(2)), lambda: x.type(foo=1),
                 lambda: x.is_contiguous(foo=torch.contiguous_format), lambda: x.new_tensor([1], dtype=[]), lambda: torch.stft(x[0], "a")):
        with pytest.raises(TypeError):
            call()
    assert x.numpy(force=True).shape == (2, 2) and x.type(dtype=torch.float64).dtype == torch.float64
