"""Texts of symbolic numbers: what Umbra prints has the expression's values, and so has what it parses of the texts that PyTorch's sympy printed."""
import json
import os
import sys

import pytest

import umbra

HERE = os.path.dirname(__file__)
sys.path.insert(0, os.path.join(HERE, "..", "compare"))
import expressions  # noqa: E402

STORED = [json.loads(line) for line in open(os.path.join(HERE, "expected", "expressions.jsonl"))]
DRAWS = int(os.environ.get("UMBRA_EXPRESSIONS", "1000"))


@pytest.mark.parametrize("block", range(10))
def test_what_sympy_printed_is_parsed(block):
    for text, printed, values in STORED[block::10]:
        for point, expected in zip(expressions.POINTS, values):
            assert expressions.of_text(printed, point) == expected
            assert expressions.is_parsed(printed, point, expected), (text, printed, point)


def test_what_is_printed_has_the_values_of_the_expression():
    for text, printed in expressions.texts(umbra, DRAWS, seed=1):
        for point in expressions.POINTS:
            assert expressions.of_text(printed, point) == expressions.value(text, point), (text, printed, point)
