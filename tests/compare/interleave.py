"""The same operators with Umbra and with PyTorch, in turns: times, ratios and their means, as a Markdown table.

usage: interleave.py --ours PYTHON --theirs PYTHON [--threads 1,2] [--only TEXT,...] [--sizes small,middle,large] [--seconds S] [--turns N]

What is printed is the least time seen in all turns; the ratio is Umbra's time over PyTorch's. With one thread the processor's time of the
thread is counted, with more the time that passes: then the machine must be quiet.
"""
import argparse
import math
import pathlib
import subprocess

HERE = pathlib.Path(__file__).parent


class Worker:
    def __init__(self, python, package, threads):
        self.process = subprocess.Popen([python, str(HERE / "worker.py"), package, str(threads)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        try:
            return float(answer)
        except ValueError:
            return answer or "the process ended"

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare(workers, name, size, seconds, turns):
    """The least times of both, or what went wrong."""
    least = [float("inf")] * 2
    for _ in range(turns):
        for side, worker in enumerate(workers):
            answer = worker.ask(f"{name}\t{size}\t{seconds}")
            if isinstance(answer, str):
                return answer
            least[side] = min(least[side], answer)
    return least


def cell(times):
    if isinstance(times, str):
        return times
    return f"{times[0] * 1e6:.1f} / {times[1] * 1e6:.1f} = {times[0] / times[1]:.2f}"


def table(options, threads):
    print(f"\n{threads} thread{'s' if threads > 1 else ''}: µs of Umbra / of PyTorch = ratio\n")
    print("| operator | " + " | ".join(options.sizes) + " |\n|---|" + "---|" * len(options.sizes), flush=True)
    workers = [Worker(options.ours, "umbra", threads), Worker(options.theirs, "torch", threads)]
    for group, title in (("names", "geometric mean"), ("blocks", "geometric mean of blocks")):
        logs = {size: [] for size in options.sizes}
        for name in workers[0].ask(group).split("\t"):
            if options.only and not any(text in name for text in options.only):
                continue
            row = []
            for size in options.sizes:
                times = compare(workers, name, size, options.seconds, options.turns)
                row.append(cell(times))
                if not isinstance(times, str):
                    logs[size].append(math.log(times[0] / times[1]))
            print(f"| {name} | " + " | ".join(row) + " |", flush=True)
        means = [f"{math.exp(sum(values) / len(values)):.2f}" if values else "" for values in logs.values()]
        print(f"| {title} | " + " | ".join(means) + " |", flush=True)
    for worker in workers:
        worker.close()


def words(text):
    return [word for word in text.split(",") if word]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ours", required=True)
    parser.add_argument("--theirs", required=True)
    parser.add_argument("--threads", default="1,2", type=words)
    parser.add_argument("--only", default="", type=words)
    parser.add_argument("--sizes", default="small,middle,large", type=words)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--turns", type=int, default=4)
    options = parser.parse_args()
    for threads in options.threads:
        table(options, int(threads))


main()
