"""Programs of the sizes of BERT, GPT-2, ViT and ResNet-50: decomposed, saved and loaded, and run with two threads. Prints JSON: milliseconds by case.

usage: programs.py umbra|torch [CASE]

Runs are those of Umbra's program and of PyTorch's eager module; one operator of the interpreter is a chain of a thousand `neg_` on a number, less what the calls
cost without it (Umbra alone).
"""
import importlib
import json
import os
import sys
import tempfile
import time

from partitions import models

torch = importlib.import_module(sys.argv[1])
export = importlib.import_module(sys.argv[1] + ".export")
OURS = sys.argv[1] == "umbra"


def best(f, repeats):
    """The least of several times, in milliseconds; the first is not counted."""
    f()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return min(times) * 1000


def of_model(name, make):
    torch.manual_seed(0)
    model, x = make()
    model, x = model.eval(), x[:1]
    program = export.export(model, (x,))
    results = {}
    if name == "BERT":
        results["run_decompositions, BERT"] = best(program.run_decompositions, 5 if OURS else 1)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.pt2")
            export.save(program, path)
            results["load, BERT"] = best(lambda: export.load(path), 5 if OURS else 2)
    run = program.module() if OURS else model
    with torch.no_grad():
        results[f"run, {name}"] = best(lambda: run(x), 5)
    return results


def interpreter():
    """Microseconds for an operator that does next to nothing."""
    class Chain(torch.nn.Module):
        def forward(self, x):
            for _ in range(1000):
                x = x.neg_()
            return x
    x, parts = torch.ones(()), torch.ones(())
    with torch.no_grad():
        program = export.export(Chain(), (x,)).module()
        whole = best(lambda: program(x), 20)

        def eager():
            for _ in range(1000):
                parts.neg_()
        call = best(eager, 20)
    return {"interpreter, an operator more than eager (us)": whole - call}


def main(wanted=""):
    torch.set_num_threads(2)
    results = {}
    for name, make in models(torch).items():
        if wanted in name:
            results.update(of_model(name, make))
    if OURS and not wanted:
        results.update(interpreter())
    print(json.dumps(results))


main(*sys.argv[2:])
