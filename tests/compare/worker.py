"""Times operators with one package, one case a line of standard input.

usage: worker.py umbra|torch THREADS      asked "name<tab>size<tab>seconds", answers with seconds a call (the least of many), or with what went wrong;
                                          asked "names" or "blocks", answers with the names of cases
"""
import importlib
import os
import sys
import time

package, threads = sys.argv[1], int(sys.argv[2])
os.environ["OMP_NUM_THREADS"] = str(threads)
torch = importlib.import_module(package)
from blocks import blocks  # noqa: E402  (after the package)
from operators import SIZES, cases  # noqa: E402

# With one thread the processor's time of that thread: what other programs take does not count.
clock = time.thread_time if threads == 1 else time.perf_counter
groups, ready = {"names": cases(torch), "blocks": blocks(torch)}, {}
table = {name: case for group in groups.values() for name, case in group.items()}


def prepare(name, size):
    """What is timed, and how many calls make a round of about half a millisecond."""
    if (name, size) not in ready:
        ready.clear()
        make, sizes = table[name]
        torch.manual_seed(0)
        call = make(*sizes[SIZES.index(size)])
        call()
        call()
        start = time.perf_counter()
        call()
        ready[name, size] = call, max(1, int(5e-4 / (time.perf_counter() - start + 1e-9)))
    return ready[name, size]


def measure(name, size, seconds):
    call, count = prepare(name, size)
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = clock()
        for _ in range(count):
            call()
        best = min(best, (clock() - start) / count)
    return best


def main():
    torch.set_num_threads(threads)
    for line in sys.stdin:
        if line.rstrip("\n") in groups:
            print("\t".join(groups[line.rstrip("\n")]), flush=True)
            continue
        name, size, seconds = line.rstrip("\n").split("\t")
        try:
            print(measure(name, size, float(seconds)), flush=True)
        except Exception as error:  # the table shows it
            print("error", type(error).__name__, str(error).split("\n")[0][:80], flush=True)


main()
