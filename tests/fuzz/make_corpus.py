"""Makes the fuzz targets' corpus: the small files of this repository, and parts of the model files beside it.

usage: make_corpus.py FOLDER              from ../shared/models (nothing where it is not there)
       make_corpus.py --repository        anew what tests/fuzz/corpus has (of the smallest model files)

An archive is kept as one text, "@@@ name" and the bytes of each entry, so that a fuzzer changes what entries hold and
not their checksums (tests/fuzz/target.h).
"""
import json
import pathlib
import sys
import zipfile

ROOT = pathlib.Path(__file__).parents[2]
MODELS = next((p for p in (ROOT.parent / "shared/models", ROOT.parent.parent / "shared/models") if p.exists()), None)
LARGEST = 60_000


def text_of(path):
    with zipfile.ZipFile(path) as archive:
        return b"\n".join(b"@@@ %s\n%s" % (name.encode(), archive.read(name)) for name in archive.namelist())


def expressions(value):
    """Every expression that a program's JSON has."""
    if isinstance(value, dict):
        if isinstance(value.get("expr_str"), str):
            yield value["expr_str"]
        for item in value.values():
            yield from expressions(item)
    elif isinstance(value, list):
        for item in value:
            yield from expressions(item)


def pieces(largest):
    """(target, name, bytes) of all that model files have to offer."""
    for path in sorted(MODELS.rglob("*")):
        name = "-".join(path.relative_to(MODELS).parts).replace(".", "_")
        if not path.is_file() or path.stat().st_size > 4 * largest:
            continue
        if path.suffix == ".safetensors":
            yield "safetensors", name, path.read_bytes()
            continue
        if path.suffix not in (".pt", ".pt2"):
            continue
        yield "zip", name, path.read_bytes()
        try:
            text = text_of(path)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError):
            if path.suffix == ".pt":
                yield "pickle", name, path.read_bytes()
            continue
        if path.suffix == ".pt":
            yield ("torchscript" if b"constants.pkl" in text else "pickle"), name, text
            for i, part in enumerate(text.split(b"\n@@@ ")):
                if b".py\n" in part[:200] and b"class " in part:
                    yield "script", f"{name}-{i}", part.split(b"\n", 1)[1]
            continue
        yield "program", name, text
        for part in text.split(b"@@@ "):
            heading, _, body = part.partition(b"\n")
            if heading.endswith((b"model.json", b"serialized_exported_program.json")):
                yield "graph", name, body.rstrip(b"\n")
                try:
                    program = json.loads(body)["graph_module"]
                except (ValueError, KeyError, TypeError):
                    continue
                yield "json", name, json.dumps(program.get("signature")).encode()
                for entry in program.get("module_call_graph", [])[:1]:
                    for i, spec in enumerate(("in_spec", "out_spec")):
                        yield "tree_spec", f"{name}-{i}", ((entry.get("signature") or {}).get(spec) or "").encode()
                for i, expression in enumerate(sorted(set(expressions(program)))):
                    yield "expression", f"{name}-{i}", expression.encode()


def arrays():
    """NumPy's files of every kind that is read, and some that are not."""
    for kind, size in (("<f4", 4), ("<f8", 8), ("<i8", 8), ("|b1", 1), ("<c16", 16), ("<f2", 2), ("|u1", 1), (">f4", 4), ("|O", 8)):
        for order in ("False", "True"):
            header = f"{{'descr': '{kind}', 'fortran_order': {order}, 'shape': (2, 3), }}".ljust(117) + "\n"
            contents = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(range(6 * size))
            yield "npy", f"{kind.strip('<|>')}{'-fortran' if order == 'True' else ''}{'-big' if kind[0] == '>' else ''}", contents
    yield "npy", "two", b"@@@ a.npy\n" + contents + b"\n@@@ b.npy\n" + contents


def write(folder, largest, wanted=lambda name: True):
    count = 0
    for target, name, contents in (*arrays(), *(pieces(largest) if MODELS else ())):
        if len(contents) > largest or not wanted(name):
            continue
        place = folder / target
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(contents)
        count += 1
    return count


if __name__ == "__main__":
    if sys.argv[1] == "--repository":
        others = ("mlp-program_2_4", "checkpoints-", "bad-code", "derived_dims-program", "special_values-program_2_4", "symint_io-", "lstm-traced")
        write(ROOT / "tests/fuzz/corpus", 13_000, lambda name: "-" not in name or name.startswith(others) or "-fortran" in name)
    else:
        print(f"fuzz: {write(pathlib.Path(sys.argv[1]), LARGEST)} inputs{'' if MODELS else '; no model files beside the checkout'}")
