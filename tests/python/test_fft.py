"""Fourier transforms: values against NumPy, layouts, derivatives against differences."""
import math

import numpy as np
import pytest
import umbra as torch
from umbra._subclasses.fake_tensor import FakeTensorMode


def signal(*shape, dtype=torch.float64, seed=0):
    generator = np.random.default_rng(seed)
    values = generator.standard_normal(shape)
    return torch.tensor(values + 1j * generator.standard_normal(shape) if dtype.is_complex else values, dtype=dtype)


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 5, 12])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_one_dimension(name, n, norm):
    x = signal(3, 8, 4, dtype=torch.float64 if name in ("rfft", "ihfft") else torch.complex128)
    ours = getattr(torch.fft, name)(x, n=n, dim=1, norm=norm)
    theirs = getattr(np.fft, name)(x.numpy(), n=n, axis=1, norm=norm)
    np.testing.assert_allclose(ours.resolve_conj().numpy(), theirs, atol=1e-10)


@pytest.mark.parametrize("dims", [None, (0,), (2, 0), (1, 2)])
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_several_dimensions(name, dims):
    x = signal(3, 4, 6, dtype=torch.float64 if name == "rfftn" else torch.complex128)
    ours = getattr(torch.fft, name)(x, dim=dims)
    theirs = getattr(np.fft, name)(x.numpy(), axes=dims)
    np.testing.assert_allclose(ours.resolve_conj().numpy(), theirs, atol=1e-10)
    np.testing.assert_allclose(getattr(torch.fft, name)(x.permute(2, 0, 1), dim=dims).numpy(),
                               getattr(np.fft, name)(x.permute(2, 0, 1).numpy(), axes=dims), atol=1e-10)


@pytest.mark.parametrize("n", [6, 8, 15, 25, 32, 48, 64, 98, 100, 128, 240, 256, 300, 384, 512, 700, 1000, 1024, 2560, 3000, 4096])
def test_every_way_through_a_side(n):
    for dtype, tolerance in ((torch.complex64, 2e-6), (torch.complex128, 4e-15)):
        x = signal(19, n, dtype=dtype, seed=n)
        for name in ("fft", "ifft"):
            expected = getattr(np.fft, name)(x.numpy().astype(np.complex128), axis=1)
            scale = np.sqrt((np.abs(expected) ** 2).mean())
            transform = getattr(torch.fft, name)
            columns = x.t().contiguous()
            for ours in (transform(x), transform(x[:2]), transform(x, out=x.clone()), transform(columns, dim=0).t(),
                         transform(columns.t()), transform(x.t().contiguous().unsqueeze(0), dim=1)[0].t()):
                assert np.abs(ours.numpy() - expected[:len(ours)]).max() <= tolerance * scale


def test_large_transforms_do_not_depend_on_threads():
    x = signal(64, 1000, dtype=torch.complex64)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = torch.fft.fft2(x)
        torch.set_num_threads(2)
        two = torch.fft.fft2(x)
    finally:
        torch.set_num_threads(before)
    assert torch.allclose(one, two, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(one.numpy(), np.fft.fft2(x.numpy()), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("n", [512, 1024, 2048])
def test_rows_that_meet_in_the_cache(n):
    """Rows of some lengths go through buffers."""
    x = signal(3, 11, n)
    np.testing.assert_allclose(torch.fft.rfft(x).numpy(), np.fft.rfft(x.numpy()), atol=1e-9)
    np.testing.assert_allclose(torch.fft.fft(x.to(torch.complex128)).numpy(), np.fft.fft(x.numpy()), atol=1e-9)
    np.testing.assert_allclose(torch.fft.irfft(torch.fft.rfft(x)).numpy(), x.numpy(), atol=1e-9)


def test_what_is_transformed_lies_together():
    x = signal(3, 4, 5, 6, dtype=torch.complex64)
    assert torch.fft.fft(x, dim=0).stride() == (1, 90, 18, 3)
    assert torch.fft.fftn(x, dim=(1, 2)).stride() == (120, 5, 1, 20)
    assert torch.fft.fft(x.permute(3, 1, 0, 2), dim=3).stride() == (5, 30, 120, 1)
    with FakeTensorMode() as mode:
        assert torch.fft.fftn(mode.from_tensor(x), dim=(1, 2)).stride() == (120, 5, 1, 20)


@pytest.mark.parametrize("function", [
    lambda x: torch.fft.fft(x), lambda x: torch.fft.ifft(x, n=9), lambda x: torch.fft.rfft(x.real), lambda x: torch.fft.irfft(x),
    lambda x: torch.fft.irfft(x, n=7), lambda x: torch.fft.hfft(x), lambda x: torch.fft.rfft2(x.imag), lambda x: torch.fft.irfftn(x, dim=(1, 0)),
    lambda x: torch.fft.ihfft(x.real), lambda x: torch.fft.fft2(x, norm="ortho"), lambda x: torch.fft.fftshift(x),
])
def test_derivatives(function):
    def number(x):
        out = function(x)
        out = torch.view_as_real(out.resolve_conj()) if out.is_complex() else out
        return (out * torch.arange(1, out.numel() + 1, dtype=torch.float64).reshape(out.shape).sin()).sum()

    x, along = signal(3, 5, dtype=torch.complex128), signal(3, 5, dtype=torch.complex128, seed=1)
    difference = (number(x + along) - number(x - along)).item() / 2
    leaf = x.clone().requires_grad_()
    gradient, = torch.autograd.grad(number(leaf), leaf)
    assert math.isclose((gradient.conj() * along).sum().real.item(), difference, rel_tol=1e-9, abs_tol=1e-9)
    assert math.isclose(torch.func.jvp(number, (x,), (along,))[1].item(), difference, rel_tol=1e-9, abs_tol=1e-9)


def test_vmap_is_a_loop():
    x = signal(3, 4, 6)
    for function in (torch.fft.rfft, torch.fft.fft2, lambda t: torch.fft.irfft(torch.fft.rfft(t), n=6)):
        assert torch.allclose(torch.func.vmap(function, in_dims=1)(x), torch.stack([function(x[:, i]) for i in range(4)]))


@pytest.mark.parametrize("call, error", [
    (lambda x: torch.fft.rfft(x.to(torch.complex64)), TypeError),
    (lambda x: torch.fft.fft(x, n=0), RuntimeError),
    (lambda x: torch.fft.fft(x, norm="some"), RuntimeError),
    (lambda x: torch.fft.fft(x, dim=2), IndexError),
    (lambda x: torch.fft.fft2(x, dim=(0, 0)), RuntimeError),
    (lambda x: torch.fft.fftn(x, s=(1, 2, 3)), RuntimeError),
    (lambda x: torch.fft.fft(x.half()), NotImplementedError),
    (lambda x: torch.fft.fft(torch.tensor(1.0)), IndexError),
])
def test_what_is_refused(call, error):
    with pytest.raises(error):
        call(signal(3, 4, dtype=torch.float32))


def test_frequencies():
    np.testing.assert_allclose(torch.fft.fftfreq(5, 0.3).numpy(), np.fft.fftfreq(5, 0.3), rtol=1e-6)
    np.testing.assert_allclose(torch.fft.rfftfreq(6, 0.3).numpy(), np.fft.rfftfreq(6, 0.3), rtol=1e-6)


FRAMES = torch.zeros(9, 5, dtype=torch.complex64)


@pytest.mark.parametrize("call, error, text", [
    (lambda: torch.istft(torch.zeros(9, dtype=torch.complex64), 16), IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got -3)"),
    (lambda: torch.istft(torch.zeros((), dtype=torch.complex64), 16), IndexError, "Dimension out of range (expected to be in range of [-1, 0], but got -2)"),
    (lambda: torch.istft(FRAMES.expand(2, 2, 9, 5), 16), RuntimeError,
     "istft(CPUComplexFloatType[2, 2, 9, 5], n_fft=16, hop_length=4, win_length=16, window=None, center=1, normalized=0, onesided=None, length=None, "
     "return_complex=0) : expected a tensor with 3 or 4 dimensions, but got 5"),
    (lambda: torch.istft(FRAMES[:0], 16, center=False, length=3, normalized=True), RuntimeError,
     "istft(CPUComplexFloatType[0, 5], n_fft=16, hop_length=4, win_length=16, window=None, center=0, normalized=1, onesided=None, length=3, "
     "return_complex=0) : input tensor cannot be empty."),
    (lambda: torch.istft(FRAMES, -3), RuntimeError,
     "istft(CPUComplexFloatType[9, 5], n_fft=-3, hop_length=-1, win_length=-3, window=None, center=1, normalized=0, onesided=None, length=None, "
     "return_complex=0) : expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 when onesided=True, but got 9"),
    (lambda: torch.istft(FRAMES, 16, 17), RuntimeError,
     "istft(CPUComplexFloatType[9, 5], n_fft=16, hop_length=17, win_length=16, window=None, center=1, normalized=0, onesided=None, length=None, "
     "return_complex=0) : expected 0 < hop_length <= win_length"),
    (lambda: torch.istft(FRAMES, 16, 4, 17), RuntimeError,
     "istft(CPUComplexFloatType[9, 5], n_fft=16, hop_length=4, win_length=17, window=None, center=1, normalized=0, onesided=None, length=None, "
     "return_complex=0) : expected 0 < win_length <= n_fft"),
    (lambda: torch.istft(FRAMES, 16, 4, 16, torch.ones(4, 4)), RuntimeError,
     "istft(CPUComplexFloatType[9, 5], n_fft=16, hop_length=4, win_length=16, window=torch.FloatTensor{[4, 4]}, center=1, normalized=0, onesided=None, "
     "length=None, return_complex=0) : Invalid window shape. window has to be 1D and length of `win_length`"),
    (lambda: torch.istft(FRAMES, 16, 4, 16, torch.zeros(16)), RuntimeError,
     "istft(CPUComplexFloatType[9, 5], n_fft=16, hop_length=4, win_length=16, window=torch.FloatTensor{[16]}, center=1, normalized=0, onesided=None, "
     "length=None, return_complex=0) window overlap add min: 1\n[ CPUBoolType{} ]"),
], ids=["1d", "0d", "4d", "empty", "bins", "hop", "window length", "window shape", "window of zeros"])
def test_istft_names_the_call_that_it_refuses(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == text


def test_a_dimension_of_one_number_may_have_any_stride():
    x = signal(2, 3, 8).to(torch.complex128)
    far = torch.as_strided(x, (1, 3, 8), (2**60, 8, 1))
    assert torch.equal(torch.fft.fft(far), torch.fft.fft(x[:1]))
    assert torch.equal(torch.fft.fft(far, dim=1), torch.fft.fft(x[:1], dim=1))
    assert torch.equal(torch.fft.ifft(torch.as_strided(x, (3, 1), (8, 2**60))), x[0, :, :1])
