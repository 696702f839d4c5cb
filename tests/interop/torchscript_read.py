"""Exported programs that Umbra made of TorchScript archives, and archives that Umbra wrote, in real torch.

usage: torchscript_read.py FOLDER
"""
import glob
import sys
import warnings

import torch

warnings.simplefilter("ignore")


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for v in (value.values() if isinstance(value, dict) else value or ()) for t in tensors(v)]


def agree(got, expected):
    return len(got) == len(expected) and all(torch.allclose(a, b, rtol=1e-4, atol=1e-4) for a, b in zip(got, expected))


def main(folder):
    failed = 0
    for kind, load in ((".pt2", lambda p: torch.export.load(p).module()), (".umbra", torch.jit.load)):
        files = sorted(glob.glob(f"{folder}/*{kind}"))
        good = 0
        for path in files:
            x, *expected = torch.load(path[: -len(kind)] + ".tensors.pth").values()
            try:
                with torch.no_grad():
                    ok = agree(tensors(load(path)(x)), expected)
            except Exception as error:  # noqa: BLE001
                ok = False
                print(f"{path}: {type(error).__name__}: {str(error)[:300]}")
            print(f"{path.rpartition('/')[2]}: {'ok' if ok else 'FAILED'}")
            good += ok
        failed += len(files) - good
        print(f"{good} of {len(files)} {kind} files load in torch and agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
