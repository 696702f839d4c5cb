"""What umbra.estimate says of five models, against PyTorch's FlopCounterMode and MemTracker on fake tensors: operations and time.

    python tests/compare/costs.py --torch PYTHON_WITH_TORCH
    python tests/compare/costs.py --llama                     # a step of training a Llama of 70 billion parameters with AdamW, Umbra alone

Each package runs in a process of its own, the two in turn, and the best of some rounds counts.
"""
import argparse
import json
import os
import subprocess
import sys
import time

from transformer import llama, transformer

MODELS = ("mlp", "convolutions", "residual", "gpt", "encoder")


def models(torch):
    """By name: a module and its arguments."""
    nn = torch.nn

    class Residual(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.first, self.second = (nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)) for _ in range(2))

        def forward(self, x):
            return (x + self.second(self.first(x).relu())).relu()

    Block, _ = transformer(torch)
    tokens = torch.zeros(4, 128, dtype=torch.int64)
    return {
        "mlp": (nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10)), torch.ones(64, 512)),
        "convolutions": (nn.Sequential(nn.Conv2d(3, 32, 3, stride=2), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, groups=4), nn.ReLU(),
                                       nn.ConvTranspose2d(64, 16, 2, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)), torch.ones(8, 3, 64, 64)),
        "residual": (nn.Sequential(nn.Conv2d(3, 32, 3), *(Residual(32) for _ in range(8)), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)), torch.ones(4, 3, 32, 32)),
        "gpt": (nn.Sequential(nn.Embedding(1000, 256), *(Block(256, 8) for _ in range(6)), nn.Linear(256, 1000)), tokens),
        "encoder": (nn.Sequential(nn.Embedding(1000, 128), *(nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True) for _ in range(3))), tokens),
    }


def of_torch(name):
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker
    from torch.utils.flop_counter import FlopCounterMode
    with FakeTensorMode():
        model, x = models(torch)[name]
        model(x).sum().backward()
        model.zero_grad()
        start = time.perf_counter()
        tracker = MemTracker()
        tracker.track_external(model, x)
        with FlopCounterMode(display=False) as flops, tracker:
            model(x).sum().backward()
        return flops.get_total_flops(), time.perf_counter() - start


def of_umbra(name):
    import umbra
    from umbra._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        model, x = models(umbra)[name]
        umbra.estimate(model, (x,), training=True)
        start = time.perf_counter()
        cost = umbra.estimate(model, (x,), training=True)
        return cost.flops, time.perf_counter() - start


def estimate_llama(rounds):
    """The cost of a step of training with AdamW, and the best time that it took to tell."""
    import umbra
    from umbra._subclasses.fake_tensor import FakeTensorMode
    seconds = []
    with FakeTensorMode():
        model, tokens = llama(umbra)(), umbra.zeros(4, 8192, dtype=umbra.int64)
        for _ in range(rounds):
            start = time.perf_counter()
            cost = umbra.estimate(model, (tokens,), training=True, optimizer="adamw")
            seconds.append(time.perf_counter() - start)
    return cost, min(seconds)


def run(python, package, rounds):
    """By model: operations, and the best time of some rounds."""
    command = [python, os.path.abspath(__file__), "--inside", package, "--rounds", str(rounds)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", help="a Python that has torch")
    parser.add_argument("--llama", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--inside", choices=["torch", "umbra"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.llama:
        cost, seconds = estimate_llama(options.rounds)
        print(f"{cost}\n{cost.operators} operators in {1000 * seconds:.1f} ms")
        return
    if options.inside:
        measure = of_torch if options.inside == "torch" else of_umbra
        out = {}
        for name in MODELS:
            results = [measure(name) for _ in range(options.rounds)]
            out[name] = results[0][0], min(seconds for _, seconds in results)
        print(json.dumps(out))
        return
    ours, theirs = run(sys.executable, "umbra", options.rounds), run(options.torch, "torch", options.rounds)
    for name in MODELS:
        (flops, seconds), (wanted, slow) = ours[name], theirs[name]
        print(f"{name:<14} {flops:>14} operations, PyTorch {wanted:>14} {'the same' if flops == wanted else 'DIFFERENT'}   "
              f"{1000 * seconds:8.2f} ms, PyTorch {1000 * slow:8.1f} ms: {slow / seconds:6.1f} times")


if __name__ == "__main__":
    main()
