"""Recurrent layers, and packed sequences. A layer of an LSTM is one call where nobody watches, and step by step where somebody does: both are the same layer."""
import itertools

import pytest
import umbra as torch
from call_log import CallLog
from umbra import nn
from umbra.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence, unpack_sequence
from umbra.utils._python_dispatch import TorchDispatchMode


class Watch(TorchDispatchMode):
    """Lets calls pass and keeps their names."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


def network(dtype, **options):
    torch.manual_seed(0)
    return nn.LSTM(4, 6, num_layers=2, **options).to(dtype)


def observe(lstm, data, states, watched):
    leaves = [data, *states, *lstm.parameters()]
    for leaf in leaves:
        leaf.grad = None
    watch = Watch()
    if watched:
        with watch:
            out, (hidden, cells) = lstm(data, tuple(states))
    else:
        out, (hidden, cells) = lstm(data, tuple(states))
    (out.square().sum() + hidden.mul(2).sum() + cells.square().sum()).backward()
    return [out, hidden, cells, *(leaf.grad for leaf in leaves)], watch.names


@pytest.mark.parametrize("dtype, bidirectional, batch_first, bias", list(itertools.product(
    [torch.float32, torch.float64], [False, True], [False, True], [False, True])))
@pytest.mark.parametrize("batch, time", [(1, 1), (3, 5), (40, 3)])
def test_whole_layers_are_their_steps(dtype, bidirectional, batch_first, bias, batch, time):
    lstm = network(dtype, bidirectional=bidirectional, batch_first=batch_first, bias=bias)
    data = torch.randn((batch, time, 4) if batch_first else (time, batch, 4), dtype=dtype, requires_grad=True)
    states = [torch.randn(4 if bidirectional else 2, batch, 6, dtype=dtype, requires_grad=True) for _ in range(2)]
    whole, _ = observe(lstm, data, states, watched=False)
    steps, names = observe(lstm, data, states, watched=True)
    assert sum(name in ("aten.addmm.default", "aten.mm.default") for name in names) >= 2 * time  # a product for each step
    assert not any("umbra" in name for name in names)
    for a, b in zip(whole, steps):
        assert a.stride() == b.stride()
        torch.testing.assert_close(a, b, rtol=1e-4 if dtype == torch.float32 else 1e-10, atol=1e-5 if dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_samples_are_shared_out(threads):
    before = torch.get_num_threads()
    lstm = network(torch.float64)
    data = torch.randn(3, 50, 4, dtype=torch.float64, requires_grad=True)
    states = [torch.zeros(2, 50, 6, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    try:
        torch.set_num_threads(1)
        alone, _ = observe(lstm, data, states, watched=False)
        torch.set_num_threads(threads)
        shared, _ = observe(lstm, data, states, watched=False)
    finally:
        torch.set_num_threads(before)
    for a, b in zip(alone, shared):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("needed", [0, 1, 2, 3])
def test_only_one_argument_needs_a_gradient(needed):
    lstm = network(torch.float64).requires_grad_(False)
    tensors = [torch.randn(3, 2, 4, dtype=torch.float64), *(torch.randn(2, 2, 6, dtype=torch.float64) for _ in range(2)), lstm.weight_hh_l1]
    tensors[needed].requires_grad_()

    def gradient(watched):
        watch = Watch() if watched else torch.enable_grad()
        with watch:
            out, (_, cells) = lstm(tensors[0], (tensors[1], tensors[2]))
        return torch.autograd.grad(out.square().sum() + cells.sum(), tensors[needed])[0]
    torch.testing.assert_close(gradient(False), gradient(True), rtol=1e-10, atol=1e-12)


def test_derivatives_of_derivatives_and_tangents():
    lstm = nn.LSTM(3, 4, bidirectional=True).double()
    inputs = [torch.randn(3, 2, 3, dtype=torch.float64), *(torch.randn(2, 2, 4, dtype=torch.float64) for _ in range(2)),
              *(p.detach().clone() for p in lstm.parameters())]
    inputs = [t.requires_grad_() for t in inputs]

    def run(data, hidden, cell, *weights):
        return tuple(torch.lstm(data, (hidden, cell), list(weights), True, 1, 0.0, False, True, False))
    assert torch.autograd.gradcheck(run, inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(run, inputs)


def test_states_that_do_not_fit_are_refused_as_before():
    lstm = nn.LSTM(4, 6)
    weights = list(lstm.parameters())
    with pytest.raises(RuntimeError):
        torch.lstm(torch.randn(3, 2, 4), (torch.zeros(1, 5, 6), torch.zeros(1, 5, 6)), weights, True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError):
        torch.lstm(torch.randn(3, 2, 4), (torch.zeros(1, 2, 6).double(), torch.zeros(1, 2, 6)), weights, True, 1, 0.0, False, False, False)


def test_functions_by_their_plain_names():
    from umbra import _VF
    assert _VF.lstm is torch.lstm and _VF.gru_cell is torch.gru_cell
    with pytest.raises(AttributeError):
        _VF.nonsense  # noqa: B018
    with pytest.raises(AttributeError):
        _VF.Tensor  # noqa: B018


def test_an_lstm_is_its_cell_step_by_step():
    torch.manual_seed(0)
    network, cell = nn.LSTM(3, 4), nn.LSTMCell(3, 4)
    for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(cell, kind).data.copy_(getattr(network, kind + "_l0").data)
    x = torch.randn(5, 2, 3)
    out, (hidden, last) = network(x)
    state, steps = None, []
    for step in x:
        state = cell(step, state)
        steps.append(state[0])
    torch.testing.assert_close(out, torch.stack(steps))
    torch.testing.assert_close(hidden[0], state[0])
    torch.testing.assert_close(last[0], state[1])


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_packed_sequences_give_what_each_sequence_gives_alone(kind):
    torch.manual_seed(1)
    network = kind(3, 4, num_layers=2, bidirectional=True)
    sequences = [torch.randn(n, 3) for n in (2, 5, 3)]
    packed_out, _ = network(pack_sequence(sequences, enforce_sorted=False))
    for alone, together in zip(sequences, unpack_sequence(packed_out), strict=True):
        torch.testing.assert_close(network(alone.unsqueeze(1))[0].squeeze(1), together)


def test_gradients_reach_every_weight_of_a_recurrent_network():
    network = nn.GRU(3, 4, num_layers=2, bidirectional=True, batch_first=True)
    network(torch.randn(2, 5, 3))[0].square().sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in network.parameters())


def test_packing_is_undone():
    padded = torch.arange(24.0).view(4, 3, 2)
    lengths = torch.tensor([4, 2, 1])
    packed = pack_padded_sequence(padded, lengths)
    assert packed.batch_sizes.tolist() == [3, 2, 1, 1]
    back, found = pad_packed_sequence(packed)
    assert found.tolist() == [4, 2, 1]
    assert torch.equal(back[:2, 1], padded[:2, 1]) and not back[2:, 1].any()


def test_unsorted_lengths_are_refused():
    with pytest.raises(RuntimeError, match="must be sorted in decreasing order"):
        pack_padded_sequence(torch.zeros(4, 2, 1), torch.tensor([2, 4]))


@pytest.mark.parametrize("width", [1, 3, 16, 20])
def test_an_lstm_without_a_history_is_the_one_with(width):
    torch.manual_seed(0)
    net, x = nn.LSTM(4, width, num_layers=2, bidirectional=True), torch.randn(5, 3, 4)
    watched, (hidden, cell) = net(x)
    with torch.no_grad():
        plain, (plain_hidden, plain_cell) = net(x)
    torch.testing.assert_close(plain, watched.detach())
    torch.testing.assert_close(plain_hidden, hidden.detach())
    torch.testing.assert_close(plain_cell, cell.detach())


def test_an_lstm_has_derivatives_of_any_order_and_direction():
    torch.manual_seed(0)
    net = nn.LSTM(2, 3, num_layers=2, bidirectional=True).double()
    x = torch.randn(4, 2, 2, dtype=torch.float64, requires_grad=True)
    weight = net.weight_hh_l0.detach().requires_grad_()

    def run(x, weight):
        out, (hidden, cell) = torch.func.functional_call(net, {"weight_hh_l0": weight}, (x,))
        return out.sum() + (hidden * cell).sum()
    assert torch.autograd.gradcheck(run, (x, weight), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(run, (x, weight))


def test_a_step_of_an_lstm_is_one_node_unless_somebody_watches():
    torch.manual_seed(0)
    cell, x = nn.LSTMCell(3, 4), torch.randn(2, 3)
    hidden, _ = cell(x)
    assert "LstmStep" in type(hidden.grad_fn).__name__
    with CallLog() as log:
        watched, _ = cell(x)
    assert "aten.tanh.default" in log.seen and not any("lstm_step" in name for name in log.seen)
    assert torch.allclose(hidden, watched)
    for from_one, from_parts in zip(torch.autograd.grad(hidden.sum(), cell.parameters()), torch.autograd.grad(watched.sum(), cell.parameters())):
        assert torch.allclose(from_one, from_parts, atol=1e-6)


def test_recurrent_layers_say_what_they_are():
    assert all(cls.__doc__ for cls in (nn.RNN, nn.LSTM, nn.GRU, nn.RNNCell, nn.LSTMCell, nn.GRUCell))
