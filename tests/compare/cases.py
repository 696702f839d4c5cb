"""Times the same code with one package and prints JSON: microseconds (milliseconds for export) by case.

usage: cases.py umbra|torch
"""
import importlib
import json
import sys
import time

from transformer import transformer

torch = importlib.import_module(sys.argv[1])
export = importlib.import_module(sys.argv[1] + ".export")
fake_tensor = importlib.import_module(sys.argv[1] + "._subclasses.fake_tensor")
symbolic_shapes = importlib.import_module(sys.argv[1] + ".fx.experimental.symbolic_shapes")


def best(f, count, repeats=5):
    """The least mean of several rounds, in microseconds."""
    for _ in range(min(count, 20)):
        f()
    result = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(count):
            f()
        result = min(result, (time.perf_counter() - start) / count)
    return result * 1e6


def operators(x, y, w):
    return {"add": lambda: x + y, "view": lambda: x.view(x.shape[0], 4, 4), "mm": lambda: torch.mm(x, w), "sum": lambda: x.sum(),
            "softmax": lambda: torch.softmax(x, 1), "transpose": lambda: x.transpose(0, 1)}


def fake(symbolic, count):
    env = symbolic_shapes.ShapeEnv() if symbolic else None
    with fake_tensor.FakeTensorMode(shape_env=env) as mode:
        def convert(t):
            return mode.from_tensor(t, static_shapes=not symbolic) if symbolic else mode.from_tensor(t)
        x, y, w = convert(torch.randn(8, 16)), convert(torch.randn(8, 16)), convert(torch.randn(16, 8))
        if symbolic:
            w = convert(torch.randn(16, 8))
        return {name: best(f, count) for name, f in operators(x, y, w).items()}


def export_time():
    _, Gpt = transformer(torch)
    model, x = Gpt().eval(), torch.zeros(2, 128, dtype=torch.int64)
    def once():
        export.export(model, (x,), dynamic_shapes={"x": {0: export.Dim("batch", max=64)}}, strict=False)
    return best(once, 1, 10) / 1000


def main():
    quick = 20000 if sys.argv[1] == "umbra" else 300
    x, y = torch.randn(8, 16), torch.randn(8, 16)
    results = {"eager add 8x16": best(lambda: x + y, 20000)}
    results.update({"fake " + k: v for k, v in fake(False, quick).items()})
    results.update({"fake symbolic " + k: v for k, v in fake(True, quick).items()})
    results["export GPT-2 12 layers (ms)"] = export_time()
    print(json.dumps(results))


main()
