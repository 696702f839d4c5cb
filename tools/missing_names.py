#!/usr/bin/env python3
"""Writes docs/missing.md: which of PyTorch's public names Umbra does not have.

    .venv/bin/python tools/missing_names.py            write it
    .venv/bin/python tools/missing_names.py --check    say whether it is up to date
"""
import importlib
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "missing.md"
sys.path.insert(0, str(ROOT / "python"))

HEAD = """# Names of PyTorch that are not here yet

Written by `tools/missing_names.py` from the list of PyTorch {version}'s public names (`python/umbra/_torch_names.txt`, which `tools/torch_names.py`
makes). Asking for one of them raises an AttributeError, or an ImportError, that says so: `torch.nn.LSTM is not in Umbra yet`.

| module | here | missing |
|---|---|---|
"""


def holder(name):
    """What holds a module's names here, or None."""
    module, _, last = ("umbra" + name.removeprefix("torch")).rpartition(".")
    try:
        if name == "torch.ops.aten":
            import umbra
            return umbra.ops.aten
        if last[:1].isupper():
            return getattr(importlib.import_module(module), last)
        return importlib.import_module("umbra" + name.removeprefix("torch"))
    except ModuleNotFoundError:
        return None


def has(found, name):
    """Whether a name is there, and not only as that of an operator that cannot be called."""
    from umbra._ops import UnbuiltOperator
    return hasattr(found, name) and not isinstance(getattr(found, name), UnbuiltOperator)


def page():
    """The page's text."""
    import umbra  # noqa: F401
    from umbra._modules import torch_names
    version = (ROOT / "python/umbra/_torch_names.txt").read_text().split(":")[0].split()[-1]
    lines, absent = [], []
    for module, names in sorted(torch_names().items()):
        if module == "torch.return_types":  # made when they are first returned
            continue
        found = holder(module)
        if found is None:
            absent.append(module)
            continue
        missing = sorted(name for name in names if not has(found, name))
        if names:
            lines.append(f"| {module} | {len(names) - len(missing)} of {len(names)} | {' '.join(missing)} |\n")
    outermost = [m for m in absent if m.rpartition(".")[0] not in absent]
    return HEAD.format(version=version) + "".join(lines) + "\nModules that are missing whole, with all that is in them: " + ", ".join(outermost) + ".\n"


if __name__ == "__main__":
    text = page()
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text() != text:
            sys.exit("docs/missing.md is not up to date: run tools/missing_names.py")
    else:
        PAGE.write_text(text)
