#!/usr/bin/env python3
"""Writes docs/operators.md: every operator of the registry, what its definition has, and how it fares against the golden records.

    .venv/bin/python tools/operator_table.py            write it; runs build/golden_report for the scores
    .venv/bin/python tools/operator_table.py --check    say whether what it says of definitions is up to date (scores are not measured)
"""
import collections
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "operators.md"
BUILD = ROOT / os.environ.get("UMBRA_BUILD", "build")

HEAD = """# Operators

Written by `tools/operator_table.py` from the registry (`umbra operators --facts`) and the golden records (`golden_report --scores`): {count} operators of ATen,
{variants} of them in-place and out variants, which follow from the operator they stand with.

| column | |
|---|---|
| runs | `kernel` of its own; `parts`: other operators, below autograd; `composite`: other operators, differentiated through them; `view`: an alias; `functions`: it takes functions |
| gradient | `formula`; `parts` where it is differentiated through them; `constant`: not differentiable |
| forward | forward mode by a `rule`, by its `parts`, or by its gradient formula `transposed` |
| vmap | by a `rule`, by `parts`, or one element after another (`loop`) |
| decomposition | `own`: one beside its kernel; `parts`: what it is made of |
| golden | records passed of those there are, on all levels, its variants' among them |

| operator | variants | runs | gradient | forward | vmap | decomposition | golden |
|---|---|---|---|---|---|---|---|
"""


def facts():
    """The registry's lines, by the name of the operator: (base, schema, the columns)."""
    lines = subprocess.run([BUILD / "umbra", "operators", "--facts"], check=True, capture_output=True, text=True).stdout.splitlines()
    table = {}
    for line in lines:
        base, schema, *columns = line.split("\t")
        if schema.startswith("aten::"):
            table[schema.split("(")[0]] = (base, schema, columns)
    return table


def measured_scores():
    """Of each operator with records: (passed, failed)."""
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run([BUILD / "golden_report", "--scores", file.name], check=True, stdout=subprocess.DEVNULL)
        rows = [line.split("\t") for line in pathlib.Path(file.name).read_text().splitlines()]
    return {name: (int(passed), int(failed)) for name, passed, failed in rows}


def page(scores):
    """The page's text; without scores its last column is empty."""
    table, variants = facts(), collections.defaultdict(list)
    for name, (base, _, _) in table.items():
        if base:
            variants[base].append(name)
    rows = []
    for name, (base, schema, columns) in sorted(table.items()):
        if base:
            continue
        own = [scores[n] for n in [name, *variants[name]] if n in scores]
        passed, failed = sum(p for p, _ in own), sum(f for _, f in own)
        others = " ".join(sorted(v.removeprefix("aten::") for v in variants[name]))
        text = schema.removeprefix("aten::").replace("|", "\\|")
        golden = f"{passed} of {passed + failed}" if passed + failed else ""
        rows.append(f"| `{text}` | {others} | {' | '.join(columns)} | {golden} |\n")
    count = sum(map(len, variants.values()))
    return HEAD.format(count=len(table), variants=count) + "".join(rows)


def without_scores(text):
    return [line.rsplit(" | ", 1)[0] if line.startswith("| `") else line for line in text.splitlines()]


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        current = PAGE.exists() and without_scores(PAGE.read_text()) == without_scores(page({}))
        print("docs/operators.md is up to date" if current else "docs/operators.md is out of date: run tools/operator_table.py")
        sys.exit(0 if current else 1)
    PAGE.write_text(page(measured_scores()))
