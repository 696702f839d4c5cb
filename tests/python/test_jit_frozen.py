"""Modules of TorchScript behind an interface: those that the run chooses among, and those that are frozen."""
import pytest
import umbra as torch
from jit_refusals import refused
from script_files import reloaded
from umbra import Tensor, nn

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


# ---- modules that the run chooses ----

@torch.jit.interface
class Block(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Added(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class Scaled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 5


class Chosen(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Added(), Scaled()])
        self.named = nn.ModuleDict({"added": Added(), "scaled": Scaled()})

    def forward(self, x: Tensor, i: int, name: str) -> Tensor:
        by_number: Block = self.blocks[i]
        by_name: Block = self.named[name]
        return by_number.forward(x) + by_name.forward(x)


def test_a_module_is_chosen_when_the_program_runs():
    for module in (torch.jit.script(Chosen()), reloaded(torch.jit.script(Chosen()))):
        assert module(torch.ones(1), 0, "scaled").item() == 7 and module(torch.ones(1), 1, "scaled").item() == 10
        with pytest.raises(RuntimeError, match="does not have a field with name '5'"):
            module(torch.ones(1), 5, "scaled")


def test_modules_are_chosen_only_through_an_interface_that_all_of_them_have():
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Added(), Scaled()])

        def forward(self, x: Tensor, i: int) -> Tensor:
            return self.blocks[i](x)

    class Other(nn.Module):
        def forward(self, x: int) -> int:
            return x

    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Added(), Other()])

        def forward(self, x: Tensor, i: int) -> Tensor:
            block: Block = self.blocks[i]
            return block.forward(x)

    assert "Expected integer literal for index but got a variable or non-integer" in refused(Plain())
    assert "Attribute 1 is not of annotated type" in refused(Mixed())


# ---- frozen modules ----

class Remembers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(2))
        self.seen = [1]

    def forward(self, x: Tensor):
        self.total.add_(x)
        self.seen.append(2)
        return self.total.sum(), len(self.seen)


def test_a_frozen_module_keeps_what_its_methods_change():
    frozen = torch.jit.freeze(torch.jit.script(Remembers().eval()))
    results = [frozen(torch.ones(2)) for _ in range(2)]
    assert [(total.item(), count) for total, count in results] == [(2.0, 2), (4.0, 3)]
    assert [name for name, _ in frozen.named_buffers()] == ["total"]


def test_a_frozen_module_computes_what_follows_from_its_parameters():
    class Doubled(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        def forward(self, x: Tensor):
            return x + self.weight * 2

    frozen = torch.jit.freeze(torch.jit.script(Doubled().eval()))
    assert [n.kind() for n in frozen.graph.nodes() if n.kind() != "prim::Constant"] == ["aten::add"]
    assert frozen(torch.zeros(2)).tolist() == [2.0, 2.0]


class Through(nn.Module):
    block: Block

    def __init__(self):
        super().__init__()
        self.block = Scaled()
        self.inner = Remembers()

    def forward(self, x: Tensor):
        return self.block.forward(x)


def test_modules_behind_interfaces_are_frozen_as_what_they_are():
    frozen = torch.jit.freeze(torch.jit.script(Through().eval()))
    assert frozen(torch.ones(1)).item() == 5
    assert "prim::CallMethod" not in [n.kind() for n in frozen.graph.nodes()]


def test_attributes_of_modules_inside_are_kept_by_their_paths():
    frozen = torch.jit.freeze(torch.jit.script(Through().eval()), ["inner.total"])
    assert [name for name, _ in frozen.named_buffers()] == ["inner.total"]
    with pytest.raises(RuntimeError, match="Unknown name: inner.nothing"):
        torch.jit.freeze(torch.jit.script(Through().eval()), ["inner.nothing"])
