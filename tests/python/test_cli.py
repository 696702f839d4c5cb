"""The command-line program: what it says of files, how it runs them, and its exit statuses."""
import pathlib
import subprocess

import pytest
import umbra as torch
from built import PROGRAM
from umbra.export import Dim, export, save

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="the command-line program is not built")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x, k=2):
        self.count.add_(1)
        return self.linear(x) * k


class Inverse(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.inv(x)


class Rows(torch.nn.Module):
    """What it gives does not depend on its parameter."""
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x.nonzero() * 2.0


def umbra(*arguments, status=0):
    done = subprocess.run([str(PROGRAM), *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def files(tmp_path):
    torch.manual_seed(0)
    net, x = Net(), torch.randn(4, 3)
    save(export(net, (x, 2), dynamic_shapes={"x": {0: Dim("n", max=8)}, "k": None}), tmp_path / "net.pt2")
    torch.safetensors.save_file({"i0": x}, str(tmp_path / "inputs.safetensors"))
    torch.safetensors.save_file({"o0": (net.linear(x) * 2).detach(), "buffer:count": torch.ones(())}, str(tmp_path / "expected.safetensors"))
    return tmp_path


class TestLooking:
    def test_info(self, files):
        text = umbra("info", files / "net.pt2")
        assert "x                        float32[s77, 3]" in text and "always 2" in text and "[0, 8]" in text
        assert "parameters               8" in text and "FLOP" in text

    def test_a_file_that_can_be_read_once(self, files):
        with open(files / "net.pt2", "rb") as file:
            done = subprocess.run(f"cat | {PROGRAM} info /dev/stdin", shell=True, stdin=file, capture_output=True, text=True)
        assert done.returncode == 0 and "FLOP" in done.stdout and "not known" not in done.stdout

    def test_show_and_weights(self, files):
        assert "torch.ops.aten.linear.default" in umbra("show", files / "net.pt2")
        assert "linear.weight" in umbra("weights", files / "net.pt2")

    def test_check_says_what_is_wrong(self, files):
        (files / "bad.pt2").write_bytes(b"nothing")
        text = umbra("check", files / "net.pt2", files / "bad.pt2", status=1)
        assert "net.pt2: ok" in text and "bad.pt2: " in text

    def test_tensors_of_checkpoints(self, files):
        torch.save({"model": {"weight": torch.ones(2, 3), "parts": [torch.zeros(4)]}, "epoch": 5, "note": "x"}, files / "checkpoint.pt")
        text = umbra("weights", files / "checkpoint.pt")
        assert "model.weight" in text and "model.parts.0" in text and "10 elements" in text and "also holds epoch (an int) and 1 more" in text
        torch.save({"epoch": 5}, files / "numbers.pt")
        assert "it holds no tensors" in umbra("weights", files / "numbers.pt", status=1)

    def test_tensors_of_torchscript(self, files):
        model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).eval()
        torch.jit.save(torch.jit.trace(model, torch.ones(4, 3)), str(files / "traced.pt"))
        listed = [line.split()[0] for line in umbra("weights", files / "traced.pt").splitlines()[:-1]]
        assert listed == list(model.state_dict())
        umbra("convert", files / "traced.pt", files / "traced.safetensors")
        assert torch.safetensors.load_file(str(files / "traced.safetensors"))["0.weight"].equal(model[0].weight)

    def test_costs_that_depend_on_data(self, files):
        save(export(Rows(), (torch.ones(4, 3),)), files / "rows.pt2")
        text = umbra("info", files / "rows.pt2")
        assert "not known: aten.nonzero.default gives what only data can tell" in text and "traceback" not in text
        assert "umbra run --profile" in umbra("estimate", files / "rows.pt2", status=1)

    def test_operators(self):
        assert "aten::relu(Tensor self) -> Tensor" in umbra("operators", "relu")
        assert "no operator of this build has 'rleu' in its name" in umbra("operators", "rleu", status=1)


class TestRunning:
    def test_outputs_and_writes_are_compared(self, files):
        text = umbra("run", files / "net.pt2", "--input", files / "inputs.safetensors", "--check", files / "expected.safetensors")
        assert "as expected" in text

    def test_other_outputs_are_told_apart(self, files):
        torch.safetensors.save_file({"o0": torch.zeros(4, 2)}, str(files / "other.safetensors"))
        text = umbra("run", files / "net.pt2", "--input", files / "inputs.safetensors", "--check", files / "other.safetensors", status=1)
        assert "o0, float32[4, 2], differs by" in text and "more than 0.0001" in text
        torch.safetensors.save_file({"o0": torch.zeros(4, 3)}, str(files / "other.safetensors"))
        text = umbra("run", files / "net.pt2", "--example", "--check", files / "other.safetensors", status=1)
        assert "o0 is float32[4, 2], expected float32[4, 3]" in text

    def test_example_inputs(self, files):
        assert "o0: tensor" in umbra("run", files / "net.pt2", "--example")

    def test_outputs_are_written(self, files):
        umbra("run", files / "net.pt2", "--example", "--output", files / "out.safetensors")
        assert set(torch.safetensors.load_file(str(files / "out.safetensors"))) == {"o0", "buffer:count"}

    def test_results_that_cannot_be_written_are_not_computed(self, files):
        text = umbra("run", files / "net.pt2", "--example", "--repeat", 3, "--output", files / "none/out.npz", status=1)
        assert "No such file" in text and "runs:" not in text
        assert "tensors are written to" in umbra("run", files / "net.pt2", "--output", files / "out.txt", status=1)

    def test_results_do_not_replace_what_is_read(self, files):
        before = (files / "inputs.safetensors").read_bytes()
        assert "is the one that is read" in umbra("run", files / "net.pt2", "--input", files / "inputs.safetensors", "--output", files / "inputs.safetensors", status=1)
        assert (files / "inputs.safetensors").read_bytes() == before
        text = umbra("run", files / "net.pt2", "--example", "--check", files / "expected.safetensors", "--output", files / "." / "expected.safetensors", status=1)
        assert "is the one that is read" in text

    def test_inputs_that_do_not_fit(self, files):
        torch.safetensors.save_file({"i0": torch.zeros(9, 3)}, str(files / "many.safetensors"))
        text = umbra("run", files / "net.pt2", "--input", files / "many.safetensors", status=1)
        assert "to be <= 8, but got 9" in text
        assert "takes 1 input, and 0 were given (--input FILE, or --example" in umbra("run", files / "net.pt2", status=1)

    def test_profile(self, files):
        text = umbra("run", files / "net.pt2", "--example", "--repeat", 3, "--profile")
        assert "3 runs" in text and "torch.ops.aten.linear.default" in text


@pytest.fixture
def models():
    path = next((p / "shared/models" for p in pathlib.Path(__file__).parents if (p / "shared/models/multi").exists()), None)
    if path is None:
        pytest.skip("no folder of model files beside the checkout")
    return path


def test_malformed_programs_are_named(models):
    errors = {path.name: subprocess.run([str(PROGRAM), "show", str(path)], capture_output=True, text=True).stderr for path in models.glob("bad/*.pt2")}
    assert len(errors) > 40 and "missing_argument.pt2' is not a valid program: Node 'linear'" in errors["missing_argument.pt2"]
    assert [name for name, error in errors.items() if error and name not in error] == []


class TestSeveralPrograms:
    """A file may hold several: the one that is meant is named behind the path."""

    @pytest.fixture
    def two(self, models):
        return models / "multi/two_programs.pt2"

    def test_the_names_are_told(self, two):
        text = umbra("info", two, status=1)
        assert "holds 2 programs: " in text and "name one of them behind it" in text
        assert "holds no program other" in umbra("show", f"{two}#other", status=1)

    def test_commands_take_the_one_that_is_named(self, two, tmp_path):
        names = umbra("info", two, status=1).split("programs: ")[1].split(";")[0].split(", ")
        assert len(names) == 2
        for name in names:
            assert "outputs" in umbra("info", f"{two}#{name}")
            umbra("view", f"{two}#{name}", "-o", tmp_path / "page.html")
            assert f"{two}#{name}: ok" in umbra("check", two)
        assert "differences" in umbra("diff", f"{two}#{names[0]}", f"{two}#{names[1]}", status=1)


class TestTraining:
    def test_a_file_of_one_tensor_has_the_only_output(self, files):
        umbra("run", files / "net.pt2", "--example", "--output", files / "y.npy")  # and not the buffer that the program writes
        assert "as expected" in umbra("run", files / "net.pt2", "--example", "--check", files / "y.npy")

    def test_a_program_is_trained_and_written(self, files):
        torch.safetensors.save_file({"y": torch.ones(4, 2)}, str(files / "target.safetensors"))
        text = umbra("train", files / "net.pt2", "--input", files / "inputs.safetensors", "--target", files / "target.safetensors",
                     "--steps", 50, "--lr", 0.1, "--output", files / "trained.pt2")
        losses = [float(line.split("loss")[1]) for line in text.splitlines() if line.startswith("step")]
        assert len(losses) == 11 and losses[-1] < losses[0] / 10
        changed = umbra("diff", files / "net.pt2", files / "trained.pt2", status=1)
        assert "linear.weight: other values" in changed and "linear.bias: other values" in changed

    def test_where_it_cannot_be_written_nothing_is_trained(self, files):
        (files / "folder.pt2").mkdir()
        for place, words in (("none/trained.pt2", "No such file"), ("trained.txt", "a program is written to a .pt2 file"), ("folder.pt2", "is a folder")):
            text = umbra("train", files / "net.pt2", "--example", "--target", files / "inputs.safetensors", "--output", files / place, status=1)
            assert words in text and "step" not in text

    def test_what_cannot_be_trained_is_named(self, files):
        torch.safetensors.save_file({"a": torch.ones(1), "b": torch.ones(1)}, str(files / "two.safetensors"))
        assert "one tensor is expected, and there are 2" in umbra("train", files / "net.pt2", "--example", "--target", files / "two.safetensors", status=1)
        umbra("train", files / "net.pt2", "--example", "--target", files / "two.safetensors", "--loss", "hinge", status=2)
        save(export(Rows(), (torch.ones(4, 3),)), files / "rows.pt2")
        torch.safetensors.save_file({"y": torch.ones(12, 2)}, str(files / "target.safetensors"))
        text = umbra("train", files / "rows.pt2", "--example", "--target", files / "target.safetensors", status=1)
        assert "first result does not depend on its parameters" in text


class TestChanging:
    def test_decompose(self, files):
        umbra("decompose", files / "net.pt2", files / "parts.pt2")
        assert "addmm" in umbra("show", files / "parts.pt2")
        umbra("run", files / "parts.pt2", "--input", files / "inputs.safetensors", "--check", files / "expected.safetensors")

    def test_what_orders_effects_is_no_output(self, files):
        x = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
        save(export(Inverse(), (x,)), files / "inverse.pt2")
        torch.safetensors.save_file({"o0": torch.linalg.inv(x)}, str(files / "inverse.safetensors"))
        umbra("decompose", files / "inverse.pt2", files / "parts.pt2")
        assert "TOKEN" in umbra("show", files / "parts.pt2")
        assert "float32[0]" not in umbra("info", files / "parts.pt2")
        umbra("run", files / "parts.pt2", "--example", "--check", files / "inverse.safetensors")

    def test_diff(self, files):
        assert "no differences" in umbra("diff", files / "net.pt2", files / "net.pt2")
        umbra("decompose", files / "net.pt2", files / "parts.pt2")
        assert "- " in umbra("diff", files / "net.pt2", files / "parts.pt2", status=1)

    def test_arrays_are_compared_whatever_their_files_are_called(self, files):
        umbra("run", files / "net.pt2", "--example", "--output", files / "a.npy")
        umbra("run", files / "net.pt2", "--example", "--output", files / "b.npy")
        assert "no differences" in umbra("diff", files / "a.npy", files / "b.npy")

    def test_a_program_is_not_written_under_a_strange_name(self, files):
        assert "a program is written to a .pt2 file" in umbra("decompose", files / "net.pt2", files / "parts.txt", status=1)

    def test_a_file_of_tensors_is_not_written_over_itself(self, files):
        torch.save({"model": torch.ones(2), "epoch": 5}, files / "checkpoint.pt")
        assert "is the one that is read" in umbra("convert", files / "checkpoint.pt", files / "checkpoint.pt", status=1)
        assert torch.load(files / "checkpoint.pt")["epoch"] == 5

    @pytest.mark.parametrize("command", ["convert", "decompose"])
    def test_a_program_is_not_written_over_itself(self, files, command):
        before = (files / "net.pt2").read_bytes()
        assert "is the one that is read" in umbra(command, files / "net.pt2", files / "net.pt2", status=1)
        assert (files / "net.pt2").read_bytes() == before

    @pytest.mark.parametrize("kind", ["safetensors", "pt", "npz"])
    def test_convert(self, files, kind):
        umbra("convert", files / "net.pt2", files / f"weights.{kind}")
        assert "no differences" in umbra("diff", files / "net.pt2", files / f"weights.{kind}")

    def test_onnx_models_are_not_read(self, files):
        (files / "net.onnx").write_bytes(b"")
        assert "ONNX models are written" in umbra("info", files / "net.onnx", status=1)

    def test_a_program_becomes_an_onnx_model(self, files):
        torch.export.save(torch.export.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),)), files / "linear.pt2")
        umbra("convert", files / "linear.pt2", files / "linear.onnx")
        assert b"MatMul" in (files / "linear.onnx").read_bytes()

    def test_what_onnx_cannot_hold_is_refused_by_name(self, files):
        save(export(Inverse(), (torch.eye(2),)), files / "inverse.pt2")
        assert "linalg_inv" in umbra("convert", files / "inverse.pt2", files / "inverse.onnx", status=1)

    def test_what_a_program_writes_is_an_output_of_its_model(self, files):
        umbra("convert", files / "net.pt2", files / "net.onnx")
        assert b"new_count" in (files / "net.onnx").read_bytes()

    def test_only_programs_become_models(self, files):
        assert "only a program (.pt2)" in umbra("convert", files / "weights.pt", files / "net.onnx", status=1)


class TestCommandLine:
    def test_mistyped_commands_are_named(self):
        assert "there is no command 'inof'; did you mean 'info'?" in umbra("inof", status=2)

    def test_mistyped_options_are_named(self, files):
        assert "there is no option '--exmple'; did you mean '--example'?" in umbra("run", files / "net.pt2", "--exmple", status=2)
        assert "'x.npy' is one file too many: inputs are given with --input" in umbra("run", files / "net.pt2", "x.npy", status=2)

    @pytest.mark.parametrize("count", ["0", "-3", "many", "2.5", "99999999999"])
    def test_counts_that_are_none_are_named(self, files, count):
        text = umbra("run", files / "net.pt2", "--example", "--repeat", count, status=2)
        assert text.startswith(f"umbra: --repeat: expected a whole number above 0, got {count}\n")

    def test_options_that_say_nothing_are_refused(self, files):
        assert "--tolerance requires --check" in umbra("run", files / "net.pt2", "--tolerance", 1, status=2)
        for number in ("-1", "nan"):
            text = umbra("run", files / "net.pt2", "--check", files / "expected.safetensors", "--tolerance", number, status=2)
            assert f"expected a number, 0 or above, got {number}" in text

    def test_defaults_are_in_the_help(self):
        assert "--loss TEXT:{mse,l1,cross_entropy}=mse" in umbra("train", "--help") and "--tolerance FLOAT=0.0001" in umbra("run", "--help")

    def test_usage_errors_have_a_status_of_their_own(self):
        umbra("run", status=2)
        umbra("info", "nowhere.pt2", status=1)

    def test_output_that_is_lost_is_an_error(self, files):
        with open("/dev/full", "w") as full:
            done = subprocess.run([str(PROGRAM), "show", str(files / "net.pt2")], stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1 and done.stderr == "umbra: cannot write to standard output\n"

    def test_no_command_is_answered_with_the_commands(self):
        assert "umbra convert weights.pt weights.safetensors" in umbra(status=2)

    def test_files_that_are_no_programs_are_named_as_what_they_are(self, files):
        assert "`umbra weights` lists the tensors" in umbra("info", files / "inputs.safetensors", status=1)
        assert "No such file" in umbra("diff", files / "net.pt2", files / "nothing", status=1)

    def test_operators_are_listed_by_name(self):
        names = [line.split("(")[0] for line in umbra("operators", "::add").splitlines()]
        assert "aten::add.Tensor" in names and names == sorted(names)

    def test_a_model_says_what_was_written(self, files):
        save(export(torch.nn.Linear(2, 2), (torch.ones(1, 2),)), files / "linear.pt2")
        assert "linear.onnx: an ONNX model" in umbra("convert", files / "linear.pt2", files / "linear.onnx")

    def test_help_and_version(self):
        assert "Examples:" in umbra("--help") and umbra("--version").startswith("umbra ")

    def test_completion(self):
        assert "complete" in umbra("completion", "bash") and "#compdef umbra" in umbra("completion", "zsh")
        assert "-l 'profile'" in umbra("completion", "fish")

    @pytest.mark.parametrize("line, expected", [("umbra vi", ["view"]), ("umbra run --pro", ["--profile"]), ("umbra estimate --si", ["--size"])])
    def test_bash_completes_commands_and_options(self, line, expected):
        words = line.split()
        script = f"{umbra('completion', 'bash')}\nCOMP_WORDS=({line}) COMP_CWORD={len(words) - 1}; _umbra; echo ${{COMPREPLY[@]}}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout.split() == expected

    def test_help_of_a_command_is_how_it_is_called(self):
        assert umbra("help", "run") == umbra("run", "--help") and "Usage: umbra run " in umbra("help", "run")
        assert umbra("info", status=2) == "umbra: file is required\n`umbra info --help` shows how it is called.\n"

    @pytest.mark.parametrize("command", ["info", "show", "weights", "check", "run", "view", "train", "estimate", "decompose", "diff", "convert", "operators", "completion"])
    def test_every_command_has_examples_in_its_help(self, command):
        assert command in umbra("--help") and "Examples:\n  " in umbra(command, "--help")
