"""What a guarded call of a compiled function costs, in microseconds of the processor, beside the run of its graph.

    python tests/compare/compiled_calls.py              # small functions
    python tests/compare/compiled_calls.py start        # a 12-layer GPT compiled, with and without a cache on disk, in new processes
"""
import os
import subprocess
import sys
import tempfile
import time

import umbra as torch
from transformer import transformer
from umbra._functorch.aot_autograd import aot_function, aot_module
from umbra._functorch.partitioners import min_cut_rematerialization_partition


def least(call, count=20000, rounds=7):
    result = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(count):
            call()
        result = min(result, (time.process_time() - start) / count)
    return result * 1e6


def small():
    graphs = []

    def keep(module, _):
        graphs.append(module)
        return module

    def f(x, y):
        return torch.relu(x + y)
    x, y, linear = torch.randn(8, 16), torch.randn(8, 16), torch.nn.Linear(16, 16)
    for need in (False, True):
        x.requires_grad_(need)
        cases = {"aot_function": aot_function(f, keep), "torch.compile": torch.compile(f, backend=keep),
                 "torch.compile, sizes that are symbols": torch.compile(f, backend=keep, dynamic=True)}
        for name, compiled in cases.items():
            compiled(x, y)
            handle = graphs[-1]._handle
            print(f"{name}{' with a gradient' if need else ''}: {least(lambda: compiled(x, y)):.2f}, its graph {least(lambda: handle.run([x, y])):.2f}")
    x.requires_grad_(False)
    for name, compiled in (("aot_module", aot_module(linear, keep)), ("torch.compile", torch.compile(linear, backend=keep))):
        compiled(x)
        handle, tensors = graphs[-1]._handle, [linear.weight, linear.bias, x]
        print(f"{name} of a module: {least(lambda: compiled(x)):.2f}, its graph {least(lambda: handle.run(tensors)):.2f}")


def start_once():
    _, Gpt = transformer(torch)
    compiled = aot_module(Gpt(512, 64, width=64, heads=4), lambda module, _: module, partition_fn=min_cut_rematerialization_partition)
    ids = torch.zeros(2, 32, dtype=torch.int64)
    start = time.process_time()
    compiled.forward._compiled.prepare(ids)
    print(f"{(time.process_time() - start) * 1e3:.1f} ms, {torch.compiler.disk_cache_info().hits} found on disk")


def start():
    with tempfile.TemporaryDirectory() as folder:
        for name, cache in (("no cache", ""), ("an empty cache", folder), ("a full one", folder), ("a full one", folder)):
            done = subprocess.run([sys.executable, __file__, "once"], env={**os.environ, "UMBRA_CACHE_DIR": cache}, capture_output=True, text=True,
                                  check=True)
            print(f"{name}: {done.stdout.strip()}")


if __name__ == "__main__":
    {"start": start, "once": start_once}.get(sys.argv[-1], small)()
