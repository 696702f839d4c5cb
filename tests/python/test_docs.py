"""The examples of the documentation run: blocks of Python as they stand, those of C++ as part of an example program."""
import os
import re
import subprocess

import numpy
import pytest
from built import BUILD, PROGRAM, ROOT

FAKES, PROGRAMS = "fakes.cpp", "programs.cpp"
PAGES = {  # and the program that has their examples in C++
    "fake_tensors": FAKES, "symbolic_shapes": FAKES, "shape_errors": FAKES,
    "run_in_cpp": PROGRAMS, "train_in_cpp": PROGRAMS, "export_from_cpp": PROGRAMS, "given_a_pt2": None, "from_torch_export": None,
    "from_libtorch": "from_libtorch.cpp", "functions_in_cpp": "functions.cpp", "jit": "torchscript.cpp", "compiled_functions": "mlp.cpp",
}


def blocks(page, language):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    return [(text[:m.start()].count("\n") + 2, m[1]) for m in re.finditer(rf"```{language}\n(.*?)```", text, re.S)]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with the files that pages speak of."""
    import umbra as torch
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    model, x = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)), torch.randn(8, 16)
    torch.export.save(torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("batch", max=1024)},)), "classifier.pt2")
    for name, tensor in (("x", x), ("y", torch.zeros(8, 4))):
        numpy.save(name + ".npy", tensor.numpy())
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_python_examples_run(page, files):
    names = {"__name__": f"docs_{page}"}
    file = str(ROOT / "docs" / f"{page}.md")  # lines of the examples are those of the page, where torch.jit.script finds their source
    for line, source in blocks(page, "python"):
        exec(compile("\n" * (line - 1) + source, file, "exec"), names)  # noqa: S102


@pytest.mark.parametrize("page", PAGES)
def test_cpp_examples_are_part_of_a_program_that_is_run(page):
    for line, source in blocks(page, "cpp"):
        assert source in (ROOT / "examples" / "cpp" / PAGES[page]).read_text(), f"docs/{page}.md, line {line}"


@pytest.mark.skipif(not PROGRAM.exists(), reason="the command-line program is not built")
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "sh")])
def test_commands_run(page, files):
    for line, source in blocks(page, "sh"):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", source], capture_output=True, text=True, check=False,
                              env={**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}", "DISPLAY": ""})
        assert done.returncode == 0, f"docs/{page}.md, line {line}:\n{done.stdout}{done.stderr}"


def test_pages_lead_to_pages_that_are_there():
    for page in (ROOT / "docs").glob("*.md"):
        for target in re.findall(r"\]\(([\w./]+\.(?:md|png))\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


# ---- the pages for whoever changes the code ----

DEVELOPERS = ["architecture", "adding_operators"]


def sources():
    folders = ("include", "src", "python", "cli", "cmake", "tools", "tests", "viewer/src", "benchmarks", "examples", "docs")
    return ["/" + str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*.*")]


@pytest.mark.parametrize("page", DEVELOPERS)
def test_files_that_developers_are_led_to_are_there(page):
    there = sources()
    text = (ROOT / "docs" / f"{page}.md").read_text()
    for name in set(re.findall(r"`([\w./*]+\.(?:cpp|h|py|inc|txt|map|cmake|mjs))`", text)):
        wanted = re.compile(re.escape("/" + name.removeprefix("/")).replace(r"\*", r"\w*") + "$")
        assert any(map(wanted.search, there)), f"docs/{page}.md: {name}"
    for name in set(re.findall(r"`((?:include|src|python|tests|tools|cli|viewer)/[\w/]+)/?`", text)):
        assert (ROOT / name).is_dir(), f"docs/{page}.md: {name}"


@pytest.mark.parametrize("page", DEVELOPERS)
def test_code_that_developers_are_shown_stands_in_the_file_that_it_names(page):
    shown = 0
    for line, block in blocks(page, "cpp"):
        for name, code in re.findall(r"^// (\S+/\S+)\n(.*?)(?=\n// \S+/|\Z)", block, re.M | re.S):
            assert code.strip() in (ROOT / name).read_text(), f"docs/{page}.md, line {line}: {name}"
            shown += 1
    assert shown >= {"architecture": 0, "adding_operators": 5}[page]
