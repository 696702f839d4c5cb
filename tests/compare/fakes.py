"""Fake tensors and symbolic shapes beside PyTorch's: the time of an operator from Python, and how the time of large programs grows.

    python tests/compare/fakes.py [--torch PYTHON_WITH_TORCH]

Times are those of the processor, the best of some rounds, so that other processes on the machine hardly matter.
"""
import argparse
import json
import subprocess
import sys
import time
from importlib import import_module

LARGE = {"layers": 20_000, "symbols in one sum": 1_000, "nested mods": 20_000}


def best(function, rounds=5):
    times = []
    for _ in range(rounds):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def modes(torch):
    fakes, shapes = (import_module(f"{torch.__name__}.{name}") for name in ("_subclasses.fake_tensor", "fx.experimental.symbolic_shapes"))
    return fakes.FakeTensorMode, shapes.ShapeEnv


def operators(torch, calls):
    """Seconds of one operator on fakes, by kind."""
    FakeTensorMode, ShapeEnv = modes(torch)
    out = {}
    for kind, mode in (("static", FakeTensorMode()), ("symbolic", FakeTensorMode(shape_env=ShapeEnv()))):
        x, w = mode.from_tensor(torch.ones(8, 16)), mode.from_tensor(torch.ones(16, 16))
        with mode:
            for name, function in (("add", lambda: x + x), ("mm", lambda: x @ w), ("relu", lambda: torch.relu(x)), ("view", lambda: x.view(-1))):
                function()
                out[f"{kind} {name}"] = best(lambda: [function() for _ in range(calls)]) / calls
    return out


def layers(torch, count):
    FakeTensorMode, ShapeEnv = modes(torch)
    mode = FakeTensorMode(shape_env=ShapeEnv())
    x, w = mode.from_tensor(torch.ones(8, 16)), mode.from_tensor(torch.ones(16, 16))
    with mode:
        for _ in range(count):
            x = torch.relu(x @ w) + x
    return x.shape


def symbols(torch, count):
    FakeTensorMode, ShapeEnv = modes(torch)
    env = ShapeEnv(duck_shape=False)
    mode = FakeTensorMode(shape_env=env)
    sizes = [mode.from_tensor(torch.empty(2 + i, device="meta")).shape[0] for i in range(count)]
    return bool(torch.sym_sum(sizes) > count)


def mods(torch, count):
    FakeTensorMode, ShapeEnv = modes(torch)
    n = FakeTensorMode(shape_env=ShapeEnv()).from_tensor(torch.empty(1000, device="meta")).shape[0]
    number = n
    for i in range(count):
        number = (number + n) % (i + 7)
    return int(number)


def growth(torch):
    """By program: how much longer it takes than twice the time of half of it."""
    out = {}
    for (name, count), program in zip(LARGE.items(), (layers, symbols, mods)):
        program(torch, count // 2)
        half, whole = (best(lambda: program(torch, size)) for size in (count // 2, count))
        out[name] = whole, whole / (2 * half)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", help="a Python that has torch")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        import torch
        print(json.dumps(operators(torch, 200)))
        return
    import umbra
    ours = operators(umbra, 20_000)
    theirs = {}
    if options.torch:
        command = [options.torch, __file__, "--inside"]
        theirs = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    for name, seconds in ours.items():
        beside = f", PyTorch {1e6 * theirs[name]:8.1f}: {theirs[name] / seconds:6.1f} times" if theirs else ""
        print(f"{name:<16} {1e6 * seconds:6.2f} µs{beside}")
    for name, (seconds, ratio) in growth(umbra).items():
        print(f"{LARGE[name]:>6} {name:<20} {1e3 * seconds:8.1f} ms, {ratio:.2f} times twice the time of half of it")


if __name__ == "__main__":
    sys.exit(main())
