"""Every operator of the golden records at a middle size, with Umbra and with PyTorch in turns: those that take longer, the worst first.

usage: sweep.py --ours PYTHON --theirs PYTHON [--records FOLDER] [--only TEXT,...] [--above RATIO] [--elements N] [--seconds S] [--turns N]
       sweep.py worker umbra|torch RECORDS ELEMENTS        asked for an overload, answers with seconds a call; "list" names the overloads

A record's tensors are repeated along their dimensions until the largest has about N elements; sizes among the arguments follow.
Overloads that write into their arguments, and calls that cannot be made larger in this way, are left out.
"""
import argparse
import gzip
import importlib
import json
import math
import pathlib
import resource
import select
import subprocess
import sys
import time

LONGEST = 20  # seconds that an answer may take
HERE = pathlib.Path(__file__).parent
DTYPES = {"float32": "<f4", "float64": "<f8", "int64": "<i8", "int32": "<i4", "bool": "?", "complex64": "<c8", "int16": "<i2", "uint8": "u1", "int8": "i1"}


def read(path):
    packed = path.with_name(path.name + ".gz")
    return gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()


def records(folder):
    """One record for each overload: of float32 where there is one, with the most elements, and ordinary strides."""
    best = {}
    for path in sorted(folder.glob("*.json*")):
        group = path.name.split(".")[0]
        if group in ("index", "schemas", "errors", "views"):
            continue
        for record in json.loads(read(folder / (group + ".json")))["records"]:
            name, overload = record["op"].removeprefix("aten::").split(".")
            writes = name.endswith("_") or "mutated" in record or "out" in overload.split("_")
            if writes or not record["tensors"] or not record.get("deterministic", True) or any(t["dtype"] not in DTYPES for t in record["tensors"]):
                continue
            dtypes = [t["dtype"] for t in record["tensors"]]
            merit = ("float32" in dtypes, "float64" not in dtypes and "complex64" not in dtypes,
                     sum(math.prod(t["sizes"]) for t in record["tensors"]), record["id"])
            if record["op"] not in best or merit > best[record["op"]][0]:
                best[record["op"]] = merit, record, group
    return {op: (record, group) for op, (_, record, group) in best.items()}


class Maker:
    """Builds a record's call with one package, larger than it was."""

    def __init__(self, torch, folder, elements):
        self.torch, self.folder, self.elements, self.bytes = torch, folder, elements, {}

    def arrays(self, record, group):
        import numpy
        if group not in self.bytes:
            self.bytes = {group: read(self.folder / (group + ".bin"))}
        for t in record["tensors"]:
            offset, length = record["storages"][t["storage"]]
            dtype = numpy.dtype(DTYPES[t["dtype"]])
            memory = numpy.frombuffer(self.bytes[group][offset:offset + length], dtype=numpy.uint8)
            if 0 in t["sizes"]:
                yield numpy.zeros(t["sizes"], dtype)
                continue
            yield numpy.ndarray(t["sizes"], dtype, memory, t["storage_offset"] * dtype.itemsize, [s * dtype.itemsize for s in t["strides"]])

    def call(self, record, group, follow):
        import numpy
        arrays = list(self.arrays(record, group))
        largest = max(arrays, key=lambda a: a.size)
        dims = sum(size > 1 for size in largest.shape)
        if dims == 0:
            return None
        times = max(1, round((self.elements / largest.size) ** (1 / dims)))
        tensors = []
        for a in arrays:
            a = numpy.ascontiguousarray(numpy.tile(a, [times if size > 1 else 1 for size in a.shape])) if a.ndim else a
            tensors.append(self.torch.tensor(a.tolist(), dtype=getattr(self.torch, a.dtype.name)).reshape(a.shape))
        sizes = {size for a in arrays for size in a.shape if size > 1}

        def value(v, inside=False):
            if isinstance(v, list):
                return [value(x, True) for x in v]
            if isinstance(v, dict):
                kind, content = next(iter(v.items()))
                if kind == "tensor":
                    return tensors[content]
                if kind == "float":
                    return float(content)
                if kind == "complex":
                    return complex(*map(float, content))
                return self.torch.device(content) if kind == "device" else getattr(self.torch, content)
            if follow and inside and type(v) is int and v in sizes:
                return v * times
            return v

        space = getattr(self.torch.ops.aten, record["op"].removeprefix("aten::").split(".")[0])
        operator = getattr(space, record["op"].split(".")[1])
        args, kwargs = value(record["args"]), {k: value(v) for k, v in record["kwargs"].items()}
        return lambda: operator(*args, **kwargs)


def work(package, folder, elements):
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    torch = importlib.import_module(package)
    torch.set_num_threads(1)
    known, maker, ready = records(pathlib.Path(folder)), Maker(torch, pathlib.Path(folder), elements), {}

    def measure(op, follow, seconds):
        if (op, follow) not in ready:
            ready.clear()
            call = maker.call(*known[op], follow)
            if call is None:
                raise ValueError("nothing to make larger")
            for _ in range(2):
                start = time.perf_counter()
                call()
                once = time.perf_counter() - start
            if once > 0.2:
                raise ValueError("takes too long")
            ready[op, follow] = call, max(1, int(3e-4 / (once + 1e-9)))
        call, count = ready[op, follow]
        best, end = math.inf, time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.thread_time()
            for _ in range(count):
                call()
            best = min(best, (time.thread_time() - start) / count)
        return best

    for line in sys.stdin:
        if line.strip() == "list":
            print("\t".join(known), flush=True)
            continue
        op, follow, seconds = line.strip().split("\t")
        try:
            print(measure(op, follow == "1", float(seconds)), flush=True)
        except Exception as error:
            print("error", type(error).__name__, str(error).split("\n")[0][:100], flush=True)


class Worker:
    def __init__(self, python, package, options):
        self.command = [python, str(HERE / "sweep.py"), "worker", package, str(options.records), str(options.elements)]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = ""
        if select.select([self.process.stdout], [], [], LONGEST)[0]:
            answer = self.process.stdout.readline().strip()
        if not answer:  # it ended, or what it was asked grows faster than its input
            self.process.kill()
            self.process.wait()
            self.start()
        return answer or "no answer"


def compare(ours, theirs, op, options):
    """The least times of both, or what went wrong."""
    for follow in "01":
        line, least = f"{op}\t{follow}\t{options.seconds}", [math.inf, math.inf]
        for _ in range(options.turns):
            for side, worker in enumerate((theirs, ours)):
                answer = worker.ask(line)
                try:
                    least[side] = min(least[side], float(answer))
                except ValueError:
                    break
            else:
                continue
            break
        else:
            return least
    return answer


def words(text):
    return [word for word in text.split(",") if word]


def main():
    if sys.argv[1:2] == ["worker"]:
        return work(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    parser = argparse.ArgumentParser()
    parser.add_argument("--ours", required=True)
    parser.add_argument("--theirs", required=True)
    parser.add_argument("--records", default=HERE.parent / "golden/data", type=pathlib.Path)
    parser.add_argument("--only", default="", type=words)
    parser.add_argument("--above", default=1.3, type=float)
    parser.add_argument("--elements", default=65536, type=int)
    parser.add_argument("--seconds", default=0.01, type=float)
    parser.add_argument("--turns", default=3, type=int)
    options = parser.parse_args()
    ours, theirs = Worker(options.ours, "umbra", options), Worker(options.theirs, "torch", options)
    results, left_out = [], 0
    for op in theirs.ask("list").split("\t"):
        if options.only and not any(text in op for text in options.only):
            continue
        times = compare(ours, theirs, op, options)
        if isinstance(times, str):
            left_out += 1
        else:
            results.append((times[1] / times[0], op, times))
    mean = math.exp(sum(math.log(ratio) for ratio, *_ in results) / len(results))
    print(f"{len(results)} overloads, {left_out} left out; geometric mean of Umbra's time over PyTorch's {mean:.2f}\n")
    print("| operator | µs of Umbra | µs of PyTorch | ratio |\n|---|---|---|---|")
    for ratio, op, times in sorted(results, reverse=True):
        if ratio > options.above:
            print(f"| {op} | {times[1] * 1e6:.1f} | {times[0] * 1e6:.1f} | {ratio:.2f} |")


main()
