"""Images that lie row by row and channel by channel at once (one channel, one element each): PyTorch goes by the stride of the channels."""
import pytest
import umbra as torch

F = torch.nn.functional


def by_channels(*sizes):
    return torch.rand(sizes).to(memory_format=torch.channels_last)


def test_what_was_asked_to_lie_by_channels_stays_so():
    x = by_channels(2, 1, 4, 4)
    assert x.stride() == (16, 1, 4, 1) and x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last)
    assert F.conv2d(x, torch.ones(2, 1, 3, 3)).stride() == (8, 1, 4, 2)
    assert F.max_pool2d(x, 2).stride() == (4, 1, 2, 1)
    assert F.interpolate(x, scale_factor=2.0).stride() == (64, 1, 8, 1)
    assert torch.cat([x, x], 1).stride() == (32, 1, 8, 2)
    assert F.pad(x, (1, 1)).stride() == (24, 1, 6, 1)
    plain = torch.rand(2, 1, 4, 4)
    assert F.conv2d(plain, torch.ones(2, 1, 3, 3)).stride() == (8, 4, 2, 1)
    assert F.conv2d(by_channels(2, 3, 1, 1), torch.ones(2, 3, 1, 1)).stride() == (2, 1, 2, 2)
    assert torch.cat([by_channels(2, 1, 1, 1)] * 2, 1).stride() == (2, 1, 1, 1)  # nothing to go by


def test_a_network_of_grey_images_lies_by_channels_throughout():
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2)).to(memory_format=torch.channels_last)
    assert net(by_channels(1, 1, 8, 8)).is_contiguous(memory_format=torch.channels_last)


def test_a_batch_norm_takes_them_for_rows():
    x = by_channels(2, 1, 4, 4).requires_grad_()
    out = F.batch_norm(x, None, None, training=True)
    assert out.stride() == (16, 16, 4, 1)
    assert torch.autograd.grad(out, x, torch.ones(2, 1, 4, 4), retain_graph=True)[0].stride() == (16, 1, 4, 1)
    assert torch.autograd.grad(out, x, by_channels(2, 1, 4, 4))[0].stride() == (16, 16, 4, 1)


def test_an_rms_norm_keeps_channels_last_and_nothing_else():
    assert F.rms_norm(by_channels(1, 3, 4, 4), (4,)).stride() == (48, 1, 12, 3)
    assert F.rms_norm(torch.rand(3, 4).t(), (3,)).stride() == (3, 1)


@pytest.mark.parametrize("antialias", [False, True])
def test_gradients_of_bicubic_images_lie_row_by_row(antialias):
    x = by_channels(1, 3, 2, 2).requires_grad_()
    out = F.interpolate(x, size=(4, 4), mode="bicubic", antialias=antialias)
    assert torch.autograd.grad(out, x, torch.ones_like(out))[0].stride() == (12, 4, 2, 1)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_gradients_of_volumes_by_their_nearest_elements_lie_row_by_row(mode):
    x = torch.rand(2, 3, 4, 5, 6).to(memory_format=torch.channels_last_3d).requires_grad_()
    out = F.interpolate(x, scale_factor=2.0, mode=mode)
    assert out.is_contiguous(memory_format=torch.channels_last_3d)
    assert torch.autograd.grad(out, x, torch.ones_like(out))[0].is_contiguous()


@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_takes_dimensions_of_one_element_to_lie_any_way(training):
    x = torch.arange(6.0).reshape(1, 3, 2, 1).permute(0, 2, 1, 3).requires_grad_()
    assert x.stride() == (6, 1, 2, 1)
    y = torch.nn.BatchNorm2d(2).train(training)(x)
    assert y.stride() == (6, 1, 2, 2)
    wide = torch.ones(1, 3, 2, 4).permute(0, 2, 1, 3)  # lies neither way
    assert torch.nn.BatchNorm2d(2).train(training)(wide).stride() == (24, 12, 4, 1)
