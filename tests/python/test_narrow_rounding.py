"""Where results on the way are rounded to a narrow type: PyTorch computes some operators step by step in the elements' own type."""
import pytest
import umbra as torch

F = torch.nn.functional
NARROW = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])


@NARROW
def test_quotients_of_narrow_floats_are_rounded_before_they_are_made_whole(dtype):
    torch.manual_seed(0)
    x, y = (torch.randn(4000) * 20).to(dtype), torch.randn(4000).to(dtype)
    assert torch.equal(torch.div(x, y, rounding_mode="trunc"), (x / y).trunc())
    remainder = torch.fmod(x, y)
    quotient = ((x - remainder) / y).float()
    quotient = torch.where((remainder != 0) & ((y < 0) ^ (remainder < 0)), quotient - 1, quotient)
    whole = quotient.floor()
    whole = torch.where(quotient - whole > 0.5, whole + 1, whole).to(dtype)
    assert torch.equal(torch.div(x, y, rounding_mode="floor"), whole) and torch.equal(torch.floor_divide(x, y), whole)
    # A single number divides exactly.
    assert torch.equal(torch.div(x, 1.3, rounding_mode="floor"), torch.div(x.float(), 1.3, rounding_mode="floor").to(dtype))


@NARROW
def test_logits_of_narrow_floats_are_rounded_at_each_step(dtype):
    x = torch.linspace(-0.1, 1.1, 997).to(dtype)
    assert torch.equal(torch.logit(x).nan_to_num(9), (x / (1 - x)).log().nan_to_num(9))
    kept = x.clamp(torch.tensor(0.1, dtype=dtype).item(), 1 - torch.tensor(0.1, dtype=dtype).item())
    assert torch.equal(x.clone().logit_(0.1), (kept / (1 - kept)).log())


@NARROW
def test_narrow_floats_find_their_bins_by_rounded_steps(dtype):
    torch.manual_seed(0)
    x = torch.randn(1000).to(dtype)
    low, high, bins = x.min(), x.max(), 100
    place = ((x - low) * torch.full((1000,), bins).to(dtype) / (high - low)).long().clamp(max=bins - 1)
    assert torch.histc(x, bins).long().tolist() == torch.bincount(place, minlength=bins).tolist()


@NARROW
def test_steps_of_addr_are_rounded(dtype):
    torch.manual_seed(0)
    self, a, b = torch.randn(20, 30).to(dtype), torch.randn(20).to(dtype), torch.randn(30).to(dtype)
    beta, alpha = (torch.full((1, 1), v).to(dtype) for v in (0.3, 1.7))
    wanted = self * beta.expand(20, 30) + (a[:, None] * alpha.expand(20, 1)) * b
    assert torch.equal(torch.addr(self, a, b, beta=0.3, alpha=1.7), wanted)


@NARROW
def test_adaptive_averages_in_three_dimensions_add_up_in_their_own_type(dtype):
    torch.manual_seed(0)
    x = torch.randn(1, 2, 4, 4, 4).to(dtype)
    total = torch.zeros(1, 2).to(dtype)
    for i in range(2):
        for j in range(2):
            for k in range(2):
                total = total + x[:, :, i, j, k]
    assert torch.equal(F.adaptive_avg_pool3d(x, 2)[:, :, 0, 0, 0], total / 2 / 2 / 2)


@NARROW
def test_weights_of_linear_interpolation_along_a_line_are_narrow(dtype):
    torch.manual_seed(0)
    x = torch.randn(1, 1, 5).to(dtype)
    place = torch.arange(7).float() * (4 / 6)
    left = place.floor().long().clamp(max=4)
    share = (place - left).to(dtype)
    wanted = x.float()[0, 0][left] * (1 - share).float() + x.float()[0, 0][(left + 1).clamp(max=4)] * share.float()
    assert torch.equal(F.interpolate(x, 7, mode="linear", align_corners=True)[0, 0], wanted.to(dtype))


@NARROW
def test_samples_of_volumes_are_rounded_at_each_step(dtype):
    image = torch.arange(8.0).reshape(1, 1, 2, 2, 2).to(dtype)
    grid = torch.tensor([0.3, -0.1, 0.7]).reshape(1, 1, 1, 1, 3).to(dtype)
    ix, iy, iz = ((grid.reshape(3) + 1) / 2).split(1)
    total = torch.zeros(1).to(dtype)
    for place, value in enumerate(image.flatten().split(1)):
        x, y, z = place & 1, place >> 1 & 1, place >> 2
        weight = (ix if x else 1 - ix) * (iy if y else 1 - iy) * (iz if z else 1 - iz)
        total = total + value * weight
    assert F.grid_sample(image, grid, align_corners=True).item() == total.item()


def test_cubic_interpolation_of_bytes_counts_the_edge_as_often_as_it_is_hit():
    x = torch.tensor([[10, 200, 30, 90]], dtype=torch.uint8).reshape(1, 1, 1, 4)
    assert F.interpolate(x, (1, 6), mode="bicubic").flatten().tolist() == [0, 121, 191, 52, 44, 95]
    assert F.interpolate(x, (1, 3), mode="bicubic", align_corners=True).flatten().tolist() == [10, 127, 90]


def test_numbers_are_scaled_by_powers_that_are_out_of_range():
    tiny, exponent = torch.tensor([2.0 ** -100, 0.0, 3.0]), torch.tensor([200, 300, -150])
    assert torch.ldexp(tiny, exponent).tolist() == [2.0 ** 100, 0, 2.0 ** -148]
    assert torch.ldexp(torch.tensor([2.0 ** -10]).half(), torch.tensor([20])).tolist() == [1024]
    assert torch.allclose(torch.ldexp(torch.tensor([1 + 2j], dtype=torch.complex128), torch.tensor([200])), torch.tensor([2.0 ** 200 * (1 + 2j)], dtype=torch.complex128))
    assert tiny.ldexp_(exponent).tolist() == [2.0 ** 100, 0, 2.0 ** -148]


def test_polar_of_halfs_is_rounded_once():
    torch.manual_seed(0)
    size, angle = torch.rand(500).half(), torch.randn(500).half()
    real = torch.view_as_real(torch.polar(size, angle))[:, 0]
    assert real.tolist() == (size.float() * angle.float().cos()).half().tolist()
