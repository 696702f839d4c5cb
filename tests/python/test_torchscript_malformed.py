"""TorchScript archives that are damaged or hostile are refused with an error that says what is wrong."""
import pathlib
import subprocess
import sys

import pytest
import umbra as torch

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from malformed_torchscript import malformed  # noqa: E402


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 4)

    def forward(self, x):
        y = self.linear(x)
        if y.sum() > 0:
            y = torch.relu(y)
        return y


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("malformed")
    torch.jit.save(torch.jit.script(Net()), str(folder / "good.pt"))
    good = (folder / "good.pt").read_bytes()
    (folder / "all").mkdir()
    names = []
    for name, contents in malformed(good):
        assert contents != good, f"{name} is not malformed"
        (folder / "all" / name).write_bytes(contents)
        names.append(name)
    assert len(names) == len(set(names)) >= 60
    (folder / "all" / "good").write_bytes(good)
    done = subprocess.run([sys.executable, str(HERE / "malformed_torchscript.py"), str(folder / "all")], capture_output=True, text=True, timeout=300, check=False)
    assert "MUST NOT RUN" not in done.stdout.replace("echo A READER MUST NOT RUN THIS'", "")
    lines = dict(line.split("\t", 1) for line in done.stdout.splitlines())
    missing = sorted(set(names) - set(lines))
    assert not missing, f"the process ended with status {done.returncode} at {missing[0]}: {done.stderr[-500:]}"
    return lines


def test_the_sound_one_loads(outcomes):
    assert outcomes["good"] == "loaded"


def test_every_other_is_refused(outcomes):
    accepted = [name for name, outcome in outcomes.items() if outcome == "loaded" and name != "good"]
    assert accepted == []


def test_errors_are_about_the_file(outcomes):
    odd = {name: outcome for name, outcome in outcomes.items()
           if outcome.split(":")[0] not in ("RuntimeError", "ValueError", "NotImplementedError", "CompileError", "Error", "AttributeError", "TypeError") and name != "good"}
    assert odd == {}


@pytest.mark.parametrize("name, said", [
    ("code_not_utf8", "is not UTF-8"), ("text_not_utf8", "is not UTF-8"), ("class_not_utf8", "is not UTF-8"), ("without_constants.pkl", "torch.save"),
    ("runs_code", "os.system"), ("short_storage", "storage"), ("unknown_class", ".Other"), ("deep_brackets", "nested too deeply"),
    ("calls_itself", "recursive"), ("does_not_end", "does not come to an end"), ("big_endian", "little-endian"),
])
def test_the_fault_is_named(outcomes, name, said):
    assert said in outcomes[name]


def test_a_method_that_does_not_compile_says_so_each_time(tmp_path):
    torch.jit.save(torch.jit.script(Net()), str(tmp_path / "good.pt"))
    (tmp_path / "bad.pt").write_bytes(dict(malformed((tmp_path / "good.pt").read_bytes()))["unknown_operator"])
    module = torch.jit.load(str(tmp_path / "bad.pt"))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no_such"):
            module(torch.ones(2, 3))
