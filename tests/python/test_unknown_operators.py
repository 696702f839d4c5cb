"""Files whose programs call operators that are not there: they can be shown, changed and saved, and running them names what is missing."""
import subprocess
import sys

import pytest
import umbra as torch
from umbra.export import load, save

WRITER = """
import sys
import umbra as torch
torch.library.define("elsewhere::split_up", "(Tensor x, int n, *, float s=1.0) -> (Tensor, Tensor)")
torch.library.define("elsewhere::each", "(Tensor[] xs) -> Tensor[]")
torch.library.register_fake("elsewhere::split_up")(lambda x, n, *, s=1.0: (torch.empty_like(x), x.new_empty((n,))))
torch.library.register_fake("elsewhere::each")(lambda xs: [torch.empty_like(x) for x in xs])

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        a, b = torch.ops.elsewhere.split_up(x * self.weight, 4, s=2.5)
        c, d = torch.ops.elsewhere.each([a, x])
        return a + c, b, d

program = torch.export.export(Model(), (torch.ones(2, 3),))
torch.export.save(program, sys.argv[1])
print(program.graph)
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("files") / "program.pt2")
    return path, subprocess.run([sys.executable, "-c", WRITER, path], capture_output=True, text=True, check=True).stdout.strip()


def test_shows_as_it_was_written(written):
    path, text = written
    assert str(load(path).graph).strip() == text


def test_running_names_all_that_is_missing(written):
    with pytest.raises(NotImplementedError, match="torch.ops.elsewhere.split_up.default, torch.ops.elsewhere.each.default, which this build does not have"):
        load(written[0]).module()


def test_weights_are_there_and_the_program_is_saved_again(written, tmp_path):
    program = load(written[0])
    assert torch.equal(program.state_dict["weight"], torch.ones(3))
    save(program, tmp_path / "again.pt2")
    assert str(load(tmp_path / "again.pt2")) == str(program)
