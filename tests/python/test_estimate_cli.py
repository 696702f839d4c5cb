"""`umbra estimate` on files that were exported here."""
import subprocess

import pytest

import umbra
from built import PROGRAM
from umbra import nn

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="the command-line program is not built")


def run(*arguments):
    return subprocess.run([PROGRAM, "estimate", *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def path(tmp_path):
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    program = umbra.export.export(model, (umbra.ones(8, 64),), dynamic_shapes=({0: umbra.export.Dim("batch", max=4096)},))
    umbra.export.save(program, tmp_path / "mlp.pt2")
    return tmp_path / "mlp.pt2"


def test_a_call_and_a_training_step_of_a_size(path, tmp_path):
    call, step = run(path, "--size", "32"), run(path, "--size", "32", "--training", "--plot", tmp_path / "plot.html")
    assert call.returncode == step.returncode == 0, call.stderr + step.stderr
    assert "2.097 MFLOP" in call.stdout and "5.243 MFLOP" in step.stdout and "132.4 kB" in call.stdout
    assert "<svg" in (tmp_path / "plot.html").read_text()


def test_sizes_that_are_not_there_or_not_allowed_are_refused(path):
    assert run(path, "--size", "s31=32").stdout == run(path, "--size", "32").stdout
    for wrong, words in ((["batch=32"], "has no size batch; it has s31, and a number alone is enough"), (["32", "s31=8"], "s31 is given twice"), (["=3"], "NAME=NUMBER")):
        refused = run(path, "--size", *wrong)
        assert refused.returncode == 1 and words in refused.stderr
    too_large = run(path, "--size", "5000")
    assert too_large.returncode == 1 and "4096" in too_large.stderr
