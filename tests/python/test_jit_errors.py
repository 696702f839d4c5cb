"""How errors of TorchScript programs read: the lines of source, the functions that were compiled or running, and what archives remember of them."""
import io
import zipfile
from typing import List, Optional

import pytest
import umbra as torch
from jit_refusals import refused
from script_files import reloaded, saved
from umbra import Tensor, nn

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


def lines(text):
    """The lines of an error without those that name files."""
    return [line for line in text.splitlines() if not line.startswith("  File ")]


# ---- the compiler ----

def test_two_lines_around_the_place_are_shown_as_they_are_written():
    def f(x: Tensor):
        a = x + 1
        b = a + 1
        c = b.nope(1)
        d = c + 1
        e = d + 1
        return e

    assert lines(refused(f)) == [
        "", "'Tensor' object has no attribute or method 'nope'.:",
        "        a = x + 1",
        "        b = a + 1",
        "        c = b.nope(1)",
        "            ~~~~~~ <--- HERE",
        "        d = c + 1",
        "        e = d + 1"]


def test_a_place_of_several_lines_is_marked_on_each():
    def f(x: int) -> int:
        if x > 0:
            return 1

    assert lines(refused(f))[2:] == [
        "    def f(x: int) -> int:",
        "    ~~~~~~~~~~~~~~~~~~~~~",
        "        if x > 0:",
        "        ~~~~~~~~~",
        "            return 1",
        "            ~~~~~~~~ <--- HERE"]


def inner(x: Tensor):
    return x.nope()


def test_the_functions_that_wait_for_the_one_with_the_error_are_named():
    def outer(x: Tensor):
        y = inner(x)
        return y

    text = refused(outer)
    assert "'inner' is being compiled since it was called from 'outer'\n" in text
    assert text.endswith("        y = inner(x)\n        ~~~~~~~~~~~ <--- HERE\n        return y\n")


def test_a_variable_of_one_branch_says_which_branch_lacks_it():
    def f(x: int):
        if x > 0:
            q = 1
        return q

    text = refused(f)
    assert "q is not defined in the false branch:\n" in text and "and was used here:\n" in text


def test_the_second_of_two_returns_is_the_one_that_does_not_fit():
    def f(x: int):
        if x > 0:
            return 1
        return "a"

    assert lines(refused(f))[-2] == '        return "a"'


def test_an_annotation_converts_nothing():
    def f(x: Tensor):
        y: int = x
        return y

    assert "Variable 'y' is annotated with type int but is being assigned to a value of type Tensor" in refused(f)


def test_python_values_are_refused_where_they_are_read():
    def f(x: Tensor):
        return x + len(TABLE)

    assert lines(refused(f))[-1].strip() == "~~~~~ <--- HERE"


TABLE = [1, 2]


def test_an_exception_that_nobody_knows_is_refused():
    def f(x: int):
        if x > 0:
            raise NobodyKnows("a")  # noqa: F821
        return x

    assert "undefined value NobodyKnows" in refused(f)


def test_defaults_that_calls_would_share_are_refused():
    def f(x: Optional[List[int]] = None, y: List[int] = [1]):  # noqa: B006
        return y

    assert "Mutable default parameters are not supported" in refused(f)


# ---- runs ----

class Inner(nn.Module):
    def forward(self, x: Tensor):
        y = x + 1
        return y.view(7, 7)


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x: Tensor):
        z = self.inner(x)
        return z


ORIGINAL = [
    "    def forward(self, x: Tensor):",
    "        z = self.inner(x)",
    "            ~~~~~~~~~~ <--- HERE",
    "        return z",
    "    def forward(self, x: Tensor):",
    "        y = x + 1",
    "        return y.view(7, 7)",
    "               ~~~~~~ <--- HERE",
    "RuntimeError: shape '[7, 7]' is invalid for input of size 6"]


def failure(module, error=RuntimeError):
    with pytest.raises(error) as raised:
        module(torch.ones(2, 3))
    return str(raised.value)


def test_an_error_of_a_run_shows_every_call_from_the_outermost_on():
    text = failure(torch.jit.script(Outer()))
    assert lines(text)[:2] == ["The following operation failed in the TorchScript interpreter.", "Traceback of TorchScript (most recent call last):"]
    assert lines(text)[2:] == ORIGINAL
    assert text.count(", in forward\n") == 2


class Custom(Exception):
    pass


def test_what_a_program_raises_is_named_in_full():
    def f(x: Tensor):
        if x.size(0) > 1:
            raise Custom("too long")
        return x

    assert failure(torch.jit.script(f), torch.jit.Error).endswith(f"{Custom.__module__}.Custom: too long\n")


def test_an_assertion_says_so():
    def f(x: Tensor):
        assert x.size(0) < 2, f"{x.size(0)} rows"
        return x

    assert failure(torch.jit.script(f), torch.jit.Error).endswith("RuntimeError: AssertionError: 2 rows\n")


def test_an_assertion_may_be_a_call():
    def f(x: Tensor):
        torch._assert(x.size(0) < 2, f"{x.size(0)} rows")
        torch._assert(message="none", condition=(x > 0).all())
        return x

    scripted = torch.jit.script(f)
    assert scripted(torch.ones(1)).tolist() == [1]
    assert failure(scripted, torch.jit.Error).endswith("RuntimeError: AssertionError: 2 rows\n")
    with pytest.raises(torch.jit.Error, match="AssertionError: none"):
        scripted(torch.zeros(1))


def test_prints_go_where_pythons_go(capsys):
    def f(x: int):
        print(x, [1.5], "a")
        return x

    torch.jit.script(f)(3)
    assert capsys.readouterr().out == "3 [1.5] a\n"


# ---- archives ----

def test_an_archive_remembers_the_lines_that_it_was_written_from():
    for module in (reloaded(torch.jit.script(Outer())), reloaded(reloaded(torch.jit.script(Outer())))):
        serialized, original = failure(module).split("\nTraceback of TorchScript, original code (most recent call last):\n")
        assert "Traceback of TorchScript, serialized code (most recent call last):\n  File \"code/__torch__/" in serialized
        assert lines(original) == ORIGINAL


def test_a_trace_remembers_the_lines_that_were_running():
    traced = reloaded(torch.jit.trace(lambda x: x.view(2, 2), torch.ones(4)))
    assert "test_jit_errors.py(" in failure(traced) and "): <lambda>\n" in failure(traced)


def test_broken_debug_information_is_none():
    source = zipfile.ZipFile(saved(torch.jit.script(Outer())))
    broken = io.BytesIO()
    with zipfile.ZipFile(broken, "w") as target:
        for name in source.namelist():
            target.writestr(name, b"\x80\x02cos\nsystem\n." if name.endswith(".debug_pkl") else source.read(name))
    broken.seek(0)
    text = failure(torch.jit.load(broken))
    assert "original code" not in text and text.endswith("RuntimeError: shape '[7, 7]' is invalid for input of size 6\n")


def test_modules_without_sizes_are_refused():
    with_buffer = nn.Module()
    with_buffer.register_buffer("seen", nn.UninitializedBuffer())
    for module, text in ((nn.Sequential(nn.LazyLinear(3)), "LazyLinear' has uninitialized parameters weight"), (with_buffer, "uninitialized buffers seen")):
        with pytest.raises(RuntimeError, match=f"{text}. Did you forget to run a forward pass"):
            torch.jit.script(module)
    with pytest.raises(RuntimeError, match="has uninitialized parameters weight. Did you forget to run a forward pass"):
        torch.jit.trace(nn.LazyLinear(3), torch.ones(1, 2))
