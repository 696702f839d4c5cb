"""TorchScript archives from strangers: whatever is wrong with one is an error, and nothing in it runs."""
import io
import os
import pickle
import random
import struct
import zipfile

import pytest
import umbra as torch
from umbra import Tensor, nn


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2, 3))
        self.names = ["a", "b"]

    def forward(self, x: Tensor, n: int) -> Tensor:
        for i in range(n):
            x = x * self.w.sum() + i
        return x


shifted = torch.jit.trace(lambda x: x + torch.tensor([1.0, 2.0, 3.0]), torch.ones(3), check_trace=False)


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.register_buffer("b", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        return shifted(self.inner(x, 2) + self.b)


def good_archive():
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(Outer()), buffer)
    return buffer.getvalue()


GOOD = good_archive()
NAMES = zipfile.ZipFile(io.BytesIO(GOOD)).namelist()
ROOT = NAMES[0].split("/")[0]


def rewritten(changes):
    """The archive with other contents for some entries: bytes, a function of the old ones, or None for none at all."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(GOOD)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            change = changes.get(name.partition("/")[2], old.read(name))
            if change is not None:
                new.writestr(name, change(old.read(name)) if callable(change) else change)
        for name, change in changes.items():
            if f"{ROOT}/{name}" not in old.namelist() and isinstance(change, bytes):
                new.writestr(f"{ROOT}/{name}", change)
    return out.getvalue()


class Runs:
    """What a hostile pickle would run."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def code(change):
    return lambda old: change(old.decode()).encode()


def pickled(build, protocol=2):
    return pickle.dumps(build, protocol)


PROGRAM = next(n for n in NAMES if n.endswith(".py") and b"Outer" in zipfile.ZipFile(io.BytesIO(GOOD)).read(n)).partition("/")[2]
CONSTANT = next(n for n in NAMES if n.endswith(".py") and b"CONSTANTS" in zipfile.ZipFile(io.BytesIO(GOOD)).read(n)).partition("/")[2]
DEEP = b"\x80\x02" + b"(" * 100000 + b"."
MALFORMED = {
    "empty": b"",
    "no zip": b"not an archive at all" * 10,
    "no data": rewritten({"data.pkl": None}),
    "no constants": rewritten({"constants.pkl": None}),
    "no code": rewritten({PROGRAM: None}),
    "no version": rewritten({".data/version": None}),
    "a version that is no number": rewritten({".data/version": b"new"}),
    "a version that is not known": rewritten({".data/version": b"99\n"}),
    "empty code": rewritten({PROGRAM: b""}),
    "a storage is missing": rewritten({"data/0": None}),
    "a constant's storage is missing": rewritten({"constants/0": None}),
    "a storage is cut": rewritten({"data/0": lambda b: b[:5]}),
    "a storage is empty": rewritten({"data/0": b""}),
    "a constant's storage is cut": rewritten({"constants/0": b"\0"}),
    "runs os.system": rewritten({"data.pkl": pickled(Runs(os.system, "touch /tmp/umbra_was_run"))}),
    "runs eval": rewritten({"data.pkl": pickled(Runs(eval, "open('/tmp/umbra_was_run', 'w')"))}),
    "runs in the constants": rewritten({"constants.pkl": pickled(Runs(os.system, "touch /tmp/umbra_was_run"))}),
    "data are a list": rewritten({"data.pkl": pickled([1, 2])}),
    "data are a text": rewritten({"data.pkl": pickled("text")}),
    "data are a number": rewritten({"data.pkl": pickled(7)}),
    "constants are a dict": rewritten({"constants.pkl": pickled({})}),
    "constants are texts": rewritten({"constants.pkl": pickled(("a", "b"))}),
    "an empty pickle": rewritten({"data.pkl": b""}),
    "a pickle that only stops": rewritten({"data.pkl": b"\x80\x02."}),
    "a pickle without a stop": rewritten({"data.pkl": lambda b: b[:-1]}),
    "a pickle that is cut": rewritten({"data.pkl": lambda b: b[: len(b) // 2]}),
    "a deep pickle": rewritten({"data.pkl": DEEP}),
    "unknown opcodes": rewritten({"data.pkl": b"\x80\x02\xff\xfe."}),
    "a huge text": rewritten({"data.pkl": b"\x80\x02X\xff\xff\xff\x7fabc."}),
    "a huge long": rewritten({"data.pkl": b"\x80\x02\x8b\xff\xff\xff\x7f\x01."}),
    "a memo that is not there": rewritten({"data.pkl": b"\x80\x02j\xff\xff\xff\x00."}),
    "an unknown class": rewritten({"data.pkl": lambda b: b.replace(b"Outer", b"Other")}),
    "a class of another module": rewritten({"data.pkl": lambda b: b.replace(b"\nOuter", b"\nInner")}),
    "another protocol": rewritten({"data.pkl": lambda b: b"\x80\x09" + b[2:]}),
    "a class inside itself": rewritten({PROGRAM: code(lambda s: s.replace("inner : ", "inner : Tuple[").replace("Inner\n", "Inner]\n", 1))}),
    "a class without an attribute": rewritten({PROGRAM: code(lambda s: s.replace("  b : Tensor\n", "  c : Tensor\n"))}),
    "an attribute of another type": rewritten({PROGRAM: code(lambda s: s.replace("  b : Tensor\n", "  b : int\n"))}),
    "an attribute twice": rewritten({PROGRAM: code(lambda s: s.replace("  b : Tensor\n", "  b : Tensor\n  b : Tensor\n"))}),
    "an unknown type": rewritten({PROGRAM: code(lambda s: s.replace("  b : Tensor\n", "  b : Nothing\n"))}),
    "a base that is unknown": rewritten({PROGRAM: code(lambda s: s.replace("(Module)", "(Something)"))}),
    "broken syntax": rewritten({PROGRAM: code(lambda s: s.replace("def forward", "def forward(("))}),
    "a class with no end": rewritten({PROGRAM: b"class Outer(Module"}),
    "deep types": rewritten({PROGRAM: code(lambda s: s.replace("  b : Tensor\n", "  b : " + "List[" * 5000 + "int" + "]" * 5000 + "\n"))}),
    "a type that is no type": rewritten({PROGRAM: code(lambda s: s.replace("  b : Tensor\n", "  b : 3 + 4\n"))}),
    "bytes that are no text": rewritten({PROGRAM: b"\xff\xfe\x00class"}),
}
CALLED = {  # loads, and fails when it is compiled for its first call
    "a name that is not there": {PROGRAM: code(lambda s: s.replace("return ", "return nothing_here + "))},
    "an operator that is not there": {PROGRAM: code(lambda s: s.replace("torch.mul", "torch.no_such_operator"))},
    "a deep expression": {PROGRAM: code(lambda s: s.replace("return ", "return " + "(" * 5000))},
    "a constant that is not there": {CONSTANT: code(lambda s: s.replace("CONSTANTS.c0", "CONSTANTS.c7"))},
    "a constant with no number": {CONSTANT: code(lambda s: s.replace("CONSTANTS.c0", "CONSTANTS.q"))},
    "another type is returned": {PROGRAM: code(lambda s: s.replace("return ", "return 'text' if True else "))},
    "imports": {PROGRAM: code(lambda s: s.replace("return ", "import os\n    return "))},
    "no constants where one is read": {"constants.pkl": pickled(())},
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_archive_is_an_error(name):
    with pytest.raises((RuntimeError, ValueError, NotImplementedError)):
        torch.jit.load(io.BytesIO(MALFORMED[name]))
    assert not os.path.exists("/tmp/umbra_was_run")


@pytest.mark.parametrize("name", CALLED)
def test_a_malformed_program_is_an_error(name):
    with pytest.raises((RuntimeError, ValueError, NotImplementedError)):
        torch.jit.load(io.BytesIO(rewritten(CALLED[name])))(torch.ones(3))


@pytest.mark.parametrize("size", [len(GOOD) * i // 16 for i in range(1, 16)])
def test_a_cut_archive_is_an_error(size):
    with pytest.raises((RuntimeError, ValueError)):
        torch.jit.load(io.BytesIO(GOOD[:size]))


def test_flipped_bytes_are_an_error_or_another_program():
    chosen = random.Random(0)
    for _ in range(200):
        data = bytearray(GOOD)
        for _ in range(chosen.choice((1, 2, 8))):
            data[chosen.randrange(len(data))] = chosen.randrange(256)
        try:
            torch.jit.load(io.BytesIO(bytes(data)))(torch.ones(3))
        except (RuntimeError, ValueError, NotImplementedError, TypeError, IndexError, KeyError, AttributeError, OverflowError):
            continue


def test_endless_programs_are_not_run_by_loading():
    text = "class Outer(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n  def forward(self: __torch__.Outer) -> int:\n    while True:\n      pass\n    return 1\n"
    pickle_of = b"\x80\x02c__torch__\nOuter\n)\x81}X\x08\x00\x00\x00training\x88sb."
    loaded = torch.jit.load(io.BytesIO(rewritten({"data.pkl": pickle_of, "code/__torch__.py": text.encode()})))
    assert loaded.training is True


def test_sizes_in_a_file_are_not_believed():
    with zipfile.ZipFile(io.BytesIO(GOOD)) as archive:
        data = archive.read(f"{ROOT}/data.pkl")
    small, large = struct.pack("<i", 6), struct.pack("<i", 2**31 - 1)
    assert small in data
    with pytest.raises((RuntimeError, ValueError)):
        torch.jit.load(io.BytesIO(rewritten({"data.pkl": data.replace(small, large)})))


def test_bytecode_for_mobile_is_left_alone_and_not_written():
    loaded = torch.jit.load(io.BytesIO(rewritten({"bytecode.pkl": b"anything"})))
    assert loaded.code == torch.jit.load(io.BytesIO(GOOD)).code
    with pytest.raises(NotImplementedError, match="bytecode for mobile"):
        loaded._save_for_lite_interpreter("nowhere.ptl")


@pytest.mark.parametrize("annotation", ["Dict[str,, int]", "List[]", "Tuple[,]", "Union[:]"])
def test_an_index_that_is_not_there_is_an_error(annotation):
    text = f"class Outer(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n  other : {annotation}\n"
    pickle_of = b"\x80\x02c__torch__\nOuter\n)\x81}X\x08\x00\x00\x00training\x88sb."
    with pytest.raises((RuntimeError, ValueError)):
        torch.jit.load(io.BytesIO(rewritten({"data.pkl": pickle_of, "code/__torch__.py": text.encode()})))
