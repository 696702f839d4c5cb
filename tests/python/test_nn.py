"""Modules and optimisers."""
import copy

import pytest

import umbra
from umbra import nn


def test_registration_and_state():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    other = copy.deepcopy(net)
    with umbra.no_grad():
        for p in other.parameters():
            p.add_(1)
    assert str(other.load_state_dict(net.state_dict())) == "<All keys matched successfully>"
    assert umbra.equal(other[0].weight, net[0].weight)
    with pytest.raises(RuntimeError, match="Missing key"):
        net.load_state_dict({})
    with pytest.raises(TypeError, match="cannot assign"):
        net[0].weight = 3


def test_text():
    net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
    assert repr(net).splitlines()[1] == "  (0): Conv2d(3, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))"
    assert "ReLU(inplace=True)" in repr(net)


def test_hooks():
    seen = []
    layer = nn.Linear(2, 2)
    layer.register_forward_pre_hook(lambda module, args: seen.append("before"))
    handle = layer.register_forward_hook(lambda module, args, output: output * 0)
    assert layer(umbra.ones(1, 2)).abs().sum().item() == 0 and seen == ["before"]
    handle.remove()
    assert layer(umbra.ones(1, 2)).abs().sum().item() != 0


@pytest.mark.parametrize("make", [lambda p: umbra.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: umbra.optim.AdamW(p, lr=0.05),
                                  lambda p: umbra.optim.Adam(p, lr=0.05)])
def test_training_lowers_the_loss(make):
    umbra.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = make(net.parameters())
    x = umbra.randn(32, 3)
    target = x.sum(1, keepdim=True)
    losses = []
    for _ in range(30):
        loss = nn.functional.mse_loss(net(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_batch_norm_keeps_running_statistics():
    norm = nn.BatchNorm2d(3)
    norm(umbra.randn(4, 3, 2, 2) + 5)
    assert norm.num_batches_tracked.item() == 1 and norm.running_mean.mean().item() > 0.3
    norm.eval()
    norm(umbra.randn(4, 3, 2, 2))
    assert norm.num_batches_tracked.item() == 1


def test_attention_layer():
    umbra.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    assert layer(umbra.randn(2, 5, 8)).shape == (2, 5, 8)


def test_attention_needs_the_mask_it_is_told_about():
    attention = umbra.nn.MultiheadAttention(4, 2)
    x = umbra.randn(3, 1, 4)
    with pytest.raises(RuntimeError, match="Need attn_mask if specifying the is_causal hint"):
        attention(x, x, x, is_causal=True)
    mask = umbra.full((3, 3), float("-inf")).triu(1)
    hinted = attention(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)[0]
    plain = attention(x, x, x, attn_mask=mask)[0]
    assert umbra.allclose(hinted, plain, atol=1e-6)


def test_sums_of_normalisations_do_not_depend_on_which_thread_is_first():
    threads = umbra.get_num_threads()
    umbra.set_num_threads(4)
    try:
        umbra.manual_seed(0)
        image = umbra.randn(8, 16, 40, 40, dtype=umbra.float64).to(memory_format=umbra.channels_last)
        rows = umbra.randn(3000, 64)

        def run():
            weights = [umbra.ones(n, dtype=x.dtype, requires_grad=True) for n, x in ((16, image), (64, rows), (16, image))]
            y = umbra.nn.functional.batch_norm(image, None, None, weights[0], training=True)
            z = umbra.nn.functional.layer_norm(rows, (64,), weights[1])
            g = umbra.nn.functional.group_norm(image, 4, weights[2])
            ((y * image).sum() + (z * rows).sum() + (g * image).sum()).backward()
            return [y.detach()] + [w.grad for w in weights]
        first = run()
        for _ in range(30):
            assert all(umbra.equal(a, b) for a, b in zip(run(), first))
    finally:
        umbra.set_num_threads(threads)
