"""A checkpoint, written by one of umbra and torch and read by the other: checkpoints.py (torch|umbra) (write|read) PATH."""
import collections
import importlib
import sys


def checkpoint(torch):
    """The same values whoever makes them."""
    base = torch.arange(12, dtype=torch.float32)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4, bias=False), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    with torch.no_grad():
        for i, parameter in enumerate(model.parameters()):
            parameter.copy_(torch.arange(parameter.numel()).reshape(parameter.shape) / 7 + i)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    model(torch.arange(15).reshape(5, 3).remainder(4) / 3).pow(3).sum().backward()
    optimizer.step()
    kinds = (torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex64,
             torch.complex128, torch.uint16)
    return {
        "model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "big": -2**40, "rate": 0.1, "best": None, "name": "größe",
        "raw": bytes(range(256)), "flags": [True, (False, ())], "dtype": torch.bfloat16, "device": torch.device("cpu"), "size": torch.Size([2, 3]),
        "tensors": [torch.arange(6).to(kind) for kind in kinds], "whole": base, "view": base.reshape(3, 4).t()[1:], "empty": torch.empty(0, 3),
        "scalar": torch.tensor(1.5), "leaf": torch.ones(2, requires_grad=True), "parameter": torch.nn.Parameter(torch.ones(2), requires_grad=False),
        "ordered": collections.OrderedDict([("b", 1), (2, "a")]),
    }


def compare(torch, want, got, path="checkpoint"):
    assert type(want) is type(got), f"{path}: {type(got)}"
    if isinstance(want, torch.Tensor):
        assert (want.dtype, want.shape, want.stride(), want.requires_grad) == (got.dtype, got.shape, got.stride(), got.requires_grad), path
        close = torch.allclose(want, got, rtol=1e-3) if want.is_floating_point() else bool((want == got).all())
        assert close, f"{path}: {got} instead of {want}"
    elif isinstance(want, dict):
        assert list(want) == list(got), f"{path}: {list(got)}"
        for key in want:
            compare(torch, want[key], got[key], f"{path}[{key!r}]")
    elif isinstance(want, (list, tuple)):
        assert len(want) == len(got), path
        for i, (a, b) in enumerate(zip(want, got)):
            compare(torch, a, b, f"{path}[{i}]")
    else:
        assert want == got, f"{path}: {got!r} instead of {want!r}"


def main(package, action, path):
    torch = importlib.import_module(package)
    if action == "write":
        torch.save(checkpoint(torch), path)
        return
    got = torch.load(path, weights_only=True)
    compare(torch, checkpoint(torch), got)
    got["whole"][1] = -1
    assert got["view"][0, 0] == -1, "tensors that shared memory do not share it any more"
    print(f"checkpoint read by {package}: ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
