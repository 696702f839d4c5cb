"""TorchScript with Umbra and with PyTorch, in turns: tracing and running a GPT, compiling a module of 200 lines, a call of a small program.

usage: jit.py --ours PYTHON --theirs PYTHON [--turns N]

What is printed is the least time of all turns, by the processor's time of one thread; the ratio is PyTorch's time over Umbra's.
"""
import argparse
import importlib
import importlib.util
import subprocess
import sys
import tempfile
import time
import warnings


def gpt(torch, layers=12, width=32, heads=2, vocabulary=64, context=8):
    """GPT-2's structure; it is small, so that the time is that of tracing and not of computing."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = (p.view(b, t, heads, c // heads).transpose(1, 2) for p in self.qkv(self.first(x)).chunk(3, dim=-1))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
            return x + self.down(nn.functional.gelu(self.up(self.second(x))))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

        def forward(self, ids):
            x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    return Gpt().eval(), torch.arange(2 * context).reshape(2, context) % vocabulary


def long_module(package):
    """A module of 200 lines: branches, loops, lists, texts, calls of its own methods."""
    lines = ["import importlib", "from typing import Dict, List", f"torch = importlib.import_module({package!r})", "Tensor, nn = torch.Tensor, torch.nn", "",
             "class Long(nn.Module):", "    def __init__(self):", "        super().__init__()", "        self.w = nn.Parameter(torch.ones(4))",
             "        self.names: Dict[str, int] = {'a': 1}", ""]
    count = 16
    for i in range(count):
        lines += [f"    def step{i}(self, x: Tensor, n: int) -> Tensor:", "        parts: List[Tensor] = []", "        for k in range(n):", "            y = x * k + self.w",
                  f"            if k % 2 == {i % 2}:", "                y = torch.relu(y) - y.mean()", "            elif bool(y.sum() > 3):", "                y = y.view(2, 2).t().reshape(4)",
                  "            parts.append(y)", f"        text = f'{{n}} of {i}'", "        return torch.stack(parts).sum(0) + len(text)", ""]
    lines += ["    def forward(self, x: Tensor, n: int) -> Tensor:"] + [f"        x = self.step{i}(x, n)" for i in range(count)] + ["        return x"]
    file = tempfile.NamedTemporaryFile("w", suffix=".py", delete=False)
    file.write("\n".join(lines) + "\n")
    file.close()
    spec = importlib.util.spec_from_file_location("long_module", file.name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Long, len(lines)


def cases(torch, package):
    model, ids = gpt(torch)
    modules = [long_module(package)[0]() for _ in range(120)]  # each of a class of its own: PyTorch keeps what it has compiled
    traced = torch.jit.trace(model, ids, check_trace=False)
    small = torch.jit.script(_small)
    x = torch.ones(8, 16)
    with torch.no_grad():
        for _ in range(5):
            traced(ids), small(x, x)
    return {"trace": lambda: torch.jit.trace(model, ids, check_trace=False), "script": lambda: torch.jit.script(modules.pop()), "run": lambda: traced(ids),
            "small program": lambda: small(x, x), "the same by hand": lambda: _small(x, x)}


def _small(x, y):
    return (x + y) * x - y


def worker(package):
    warnings.simplefilter("ignore")
    torch = importlib.import_module(package)
    torch.set_num_threads(1)
    table = cases(torch, package)
    for line in sys.stdin:
        name, seconds = line.rstrip("\n").split("\t")
        call, best, end = table[name], float("inf"), time.perf_counter() + float(seconds)
        with torch.no_grad():
            start = time.thread_time()
            call()
            count = 1 if name == "script" else max(1, int(1e-3 / (time.thread_time() - start + 1e-9)))
            left = 12 if name == "script" else sys.maxsize
            while time.perf_counter() < end and left > 0:
                left -= 1
                start = time.thread_time()
                for _ in range(count):
                    call()
                best = min(best, (time.thread_time() - start) / count)
        print(best, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours")
    parser.add_argument("--theirs")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--worker")
    options = parser.parse_args()
    if options.worker:
        return worker(options.worker)
    sides = [subprocess.Popen([python, __file__, "--worker", package], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
             for python, package in ((options.ours, "umbra"), (options.theirs, "torch"))]
    for name in ("trace", "script", "run", "small program", "the same by hand"):
        least = [float("inf")] * 2
        for _ in range(options.turns):
            for side, process in enumerate(sides):
                process.stdin.write(f"{name}\t{options.seconds}\n")
                process.stdin.flush()
                least[side] = min(least[side], float(process.stdout.readline() or "nan"))
        print(f"{name:18} Umbra {least[0] * 1e6:12.1f} µs   PyTorch {least[1] * 1e6:12.1f} µs   {least[1] / least[0]:8.2f} times faster", flush=True)
    for process in sides:
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    main()
