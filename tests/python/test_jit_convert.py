"""Programs of TorchScript as exported ones."""
import pytest
import umbra as torch
from umbra import Tensor, nn
from umbra._export.converter import TS2EPConverter


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x: Tensor, n: int = 2) -> Tensor:
        y = self.inner(x)
        for i in range(n):
            y = y * 2 + self.shift
        if bool(y.sum() > 0):
            y = torch.sin(y)
        else:
            y = torch.cos(y)
        return y


def test_parameters_and_buffers_keep_their_names_and_branches_on_data_become_cond():
    compiled = torch.jit.script(Scaled())
    program = TS2EPConverter(compiled, (torch.ones(3, 4),)).convert()
    assert sorted(program.state_dict) == ["inner.bias", "inner.weight", "shift"]
    assert any("cond" in str(n.target) for n in program.graph.nodes)
    for x in (torch.ones(3, 4), -10 * torch.ones(3, 4)):
        assert bool((program.module()(x) - compiled(x)).abs().max() < 1e-5)


def test_traces_and_functions_are_converted():
    traced = torch.jit.trace(nn.Sequential(nn.Linear(4, 2), nn.ReLU()), torch.ones(1, 4))
    x = torch.ones(3, 4)
    assert bool((TS2EPConverter(traced, (x,)).convert().module()(x) == traced(x)).all())
    function = torch.jit.trace(lambda a: a.view(a.shape[0] * 2, -1) + 1, torch.ones(2, 4))
    assert TS2EPConverter(function, (x,)).convert().module()(x).shape == (6, 2)


def test_a_program_that_sets_attributes_is_refused():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0

        def forward(self, x: Tensor) -> Tensor:
            self.n += 1
            return x + self.n

    counts = torch.jit.script(Counts())
    with pytest.raises(NotImplementedError, match="'n'"):
        TS2EPConverter(counts, (torch.ones(1),)).convert()
    assert counts.n == 0


def test_what_branches_on_data_cannot_carry_is_refused_by_name():
    def appends(x: Tensor):
        out = [x]
        if bool(x.sum() > 0):
            out.append(x)
        return out[-1]

    with pytest.raises(NotImplementedError, match="aten::append"):
        TS2EPConverter(torch.jit.script(appends), (torch.ones(1),)).convert()


def test_sizes_that_go_through_tensor_arithmetic_stay_numbers():
    def padded(x):
        return nn.functional.pad(x, (0, (7 - x.shape[1] % 7) % 7))

    halves = torch.jit.trace(lambda x: x.view(x.shape[0], x.shape[1] // 2, 2), torch.ones(2, 4), check_trace=False)  # not run before
    assert TS2EPConverter(halves, (torch.ones(2, 6),)).convert().module()(torch.ones(2, 6)).shape == (2, 3, 2)
    traced = torch.jit.trace(padded, torch.ones(2, 4))
    for width, expected in ((4, 7), (7, 7), (9, 14)):
        x = torch.ones(2, width)
        assert TS2EPConverter(traced, (x,)).convert().module()(x).shape == (2, expected)
