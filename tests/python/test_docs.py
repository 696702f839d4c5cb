"""The examples of the documentation run: blocks of Python as they stand, those of C++ as part of an example program."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGES = ["fake_tensors", "symbolic_shapes", "shape_errors"]


def blocks(page, language):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    return [(text[:m.start()].count("\n") + 2, m[1]) for m in re.finditer(rf"```{language}\n(.*?)```", text, re.S)]


@pytest.mark.parametrize("page", PAGES)
def test_python_examples_run(page):
    names = {"__name__": f"docs_{page}"}
    for line, source in blocks(page, "python"):
        exec(compile("\n" * (line - 1) + source, f"docs/{page}.md", "exec"), names)  # noqa: S102


@pytest.mark.parametrize("page", PAGES)
def test_cpp_examples_are_part_of_a_program_that_is_run(page):
    program = (ROOT / "examples" / "cpp" / "fakes.cpp").read_text()
    for line, source in blocks(page, "cpp"):
        assert source in program, f"docs/{page}.md, line {line}"
