"""Numbers on their way from one type to another: what does not fit is refused, or converted as PyTorch's x86 build does."""
import pytest
import umbra as torch

nan, inf = float("nan"), float("inf")


@pytest.mark.parametrize("source", [torch.float32, torch.float64])
@pytest.mark.parametrize("count", [1, 100])
def test_floats_out_of_range_become_defined_integers(source, count):
    values = [nan, inf, -inf, 300, -300, 70000, 3e9, -3e9, 1e10, 2.0 ** 63, -2.0 ** 63, 1e20, -1e20]
    least32, least64 = -2 ** 31, -2 ** 63
    wanted = {
        torch.int8: [0, 0, 0, 44, -44, 112, 0, 0, 0, 0, 0, 0, 0],
        torch.uint8: [0, 0, 0, 44, 212, 112, 0, 0, 0, 0, 0, 0, 0],
        torch.int16: [0, 0, 0, 300, -300, 4464, 0, 0, 0, 0, 0, 0, 0],
        torch.uint16: [0, 0, 0, 300, 65236, 4464, 0, 0, 0, 0, 0, 0, 0],
        torch.int32: [least32, least32, least32, 300, -300, 70000] + 7 * [least32],
        torch.uint32: [0, 0, 0, 300, 2 ** 32 - 300, 70000, 3000000000, 1294967296, 1410065408, 0, 0, 0, 0],
        torch.int64: [least64, least64, least64, 300, -300, 70000, 3000000000, -3000000000, 10 ** 10] + 4 * [least64],
        torch.uint64: [2 ** 63, 0, 2 ** 63, 300, 2 ** 64 - 300, 70000, 3000000000, 2 ** 64 - 3000000000, 10 ** 10, 2 ** 63, 2 ** 63, 0, 2 ** 63],
    }
    for dtype, answers in wanted.items():
        for value, answer in zip(values, answers):
            row = torch.full((2 * count,), value, dtype=torch.float64).to(source)
            assert row.to(dtype).tolist() == 2 * count * [answer], (dtype, value)
            assert row[::2].to(dtype).tolist() == count * [answer], (dtype, value)


@pytest.mark.parametrize("value, dtype, name", [
    (300, torch.uint8, "uint8_t"), (-256, torch.uint8, "uint8_t"), (-0.5, torch.uint8, "uint8_t"), (128, torch.int8, "int8_t"),
    (-128.5, torch.int8, "int8_t"), (3e9, torch.int32, "int"), (2 ** 31, torch.int32, "int"), (nan, torch.int64, "int64_t"), (2.0 ** 63, torch.int64, "int64_t"),
    (1e39, torch.float32, "float"), (1e39, torch.complex64, "c10::complex<float>"), (1 + 1j, torch.int16, "int16_t"),
])
def test_a_number_that_does_not_fit_is_refused(value, dtype, name):
    target = torch.zeros(2, dtype=dtype)
    for fill in (lambda: torch.full((2,), value, dtype=dtype), lambda: target.fill_(value), lambda: target.new_full((1,), value),
                 lambda: target.scatter_(0, torch.tensor([0]), value), lambda: target.masked_fill(torch.tensor([True, False]), value),
                 lambda: target.__setitem__(0, value), lambda: torch.constant_pad_nd(target, [1, 0], value)):
        with pytest.raises(RuntimeError, match=f"value cannot be converted to type {name} without overflow"):
            fill()
    assert target.tolist() == [0, 0]


def test_numbers_that_just_fit():
    for value, dtype, answer in [(-255, torch.uint8, 1), (255.9, torch.uint8, 255), (127.9, torch.int8, 127), (-128.0, torch.int8, -128),
                                 (2.0 ** 31 - 0.5, torch.int32, 2 ** 31 - 1), (-2.0 ** 63, torch.int64, -2 ** 63), (-1, torch.uint64, 2 ** 64 - 1),
                                 (65520, torch.float16, inf), (1e39, torch.bfloat16, inf), (2 + 3j, torch.bool, True)]:
        assert torch.full((1,), value, dtype=dtype).tolist() == [answer]


def test_data_for_integers_is_checked():
    for value, dtype in [(300.5, torch.int8), (1e10, torch.int32), (nan, torch.int32), (inf, torch.int64), (-1.0, torch.uint8)]:
        with pytest.raises(RuntimeError, match=f"value cannot be converted to type {str(dtype)[6:]} without overflow"):
            torch.tensor([value], dtype=dtype)
    with pytest.raises(TypeError, match="must be real number, not complex"):
        torch.tensor([1j], dtype=torch.float32)
    with pytest.raises(TypeError, match="'complex' object cannot be interpreted as an integer"):
        torch.tensor([1 + 0j], dtype=torch.int32)


def test_arange_of_integers_counts_in_integers():
    assert torch.arange(0, 3, 0.5, dtype=torch.int64).tolist() == [0] * 6
    assert torch.arange(-1.5, 3, dtype=torch.int32).tolist() == [-1, 0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="int64_t without overflow"):
        torch.arange(0, 1e20, 1e19, dtype=torch.int64)


def test_float8_saturates_or_not():
    values = torch.tensor([448., 449, 464, 480, 1e5, inf, -465, -inf, nan, 61439, 61440])
    e4m3 = values.to(torch.float8_e4m3fn).float().tolist()
    assert e4m3[:8] == [448] * 6 + [-448, -448] and e4m3[8] != e4m3[8] and e4m3[9:] == [448, 448]
    e5m2 = values.to(torch.float8_e5m2).float().tolist()
    assert e5m2[:8] == [448, 448, 448, 512, inf, inf, -448, -inf] and e5m2[8] != e5m2[8] and e5m2[9:] == [57344, inf]


@pytest.mark.parametrize("name, bits, largest", [
    ("float8_e5m2fnuz", [0, 0, 64, 194, 57, 96, 99, 127, 128, 24, 20, 128, 128], 57344),
    ("float8_e4m3fnuz", [0, 0, 64, 196, 50, 127, 128, 128, 128, 1, 0, 128, 128], 240),
    ("float8_e8m0fnu", [0, 0, 127, 128, 125, 135, 136, 143, 143, 117, 116, 255, 255], 2.0 ** 127),
])
def test_8_bit_floats_without_infinity(name, bits, largest):
    dtype = getattr(torch, name)
    values = torch.tensor([0., -0., 1, -1.5, 0.3, 240, 448, 57344, 70000, 2.0 ** -10, 2.0 ** -11, inf, nan])
    assert values.to(dtype).view(torch.uint8).tolist() == bits
    assert torch.finfo(dtype).max == largest and torch.tensor([1.0, 2.0]).to(dtype).tolist() == [1, 2]
    every = torch.arange(256, dtype=torch.uint8).view(dtype)
    back = every.float().to(dtype)
    assert torch.equal(back.view(torch.uint8), every.view(torch.uint8)) and every.double().isnan().sum().item() == 1


@pytest.mark.parametrize("arguments, keywords", [
    ((torch.float64, torch.float32), {}), (("cpu", "cpu"), {}), ((torch.float64, "cpu"), {}), ((torch.float64, True, True, True), {}),
    ((torch.float64,), {"dtype": torch.float32}), ((torch.float64, None), {}), ((), {"other": torch.ones(1)}), ((torch.float64,), {"copy": 1}),
])
def test_to_refuses_arguments_that_fit_none_of_its_forms(arguments, keywords):
    with pytest.raises(TypeError, match=r"to\(\) received an invalid combination of arguments - got \("):
        torch.ones(2).to(*arguments, **keywords)


def test_to_takes_its_three_forms():
    x = torch.ones(2)
    assert x.to("cpu", torch.float64, True, True).dtype == torch.float64
    assert x.to(None, torch.int8).dtype == torch.int8
    assert x.to(tensor=torch.ones(1, dtype=torch.int32)).dtype == torch.int32
    assert x.to() is x and x.to(torch.float32, False, True) is not x
