"""Times the same code with one package and prints JSON: microseconds (milliseconds for export) by case.

usage: cases.py umbra|torch
"""
import importlib
import json
import sys
import time

torch = importlib.import_module(sys.argv[1])
nn = importlib.import_module(sys.argv[1] + ".nn")
export = importlib.import_module(sys.argv[1] + ".export")
fake_tensor = importlib.import_module(sys.argv[1] + "._subclasses.fake_tensor")
symbolic_shapes = importlib.import_module(sys.argv[1] + ".fx.experimental.symbolic_shapes")
functional = importlib.import_module(sys.argv[1] + ".nn.functional")


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


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(width, dim=2)
        q, k, v = (t.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for t in (q, k, v))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, vocabulary=1000, context=128, width=768, heads=12, layers=12):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, x):
        h = self.tokens(x) + self.positions(torch.arange(x.shape[1]))
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h))


def export_time():
    model, x = Gpt().eval(), torch.zeros(2, 128, dtype=torch.int64)
    def once():
        export.export(model, (x,), dynamic_shapes={"x": {0: export.Dim("batch", max=64)}}, strict=False)
    return best(once, 1, 3) / 1000


def main():
    quick = 20000 if sys.argv[1] == "umbra" else 300
    x, y = torch.randn(8, 16), torch.randn(8, 16)
    results = {"eager add 8x16": best(lambda: x + y, 20000)}
    results.update({"fake " + k: v for k, v in fake(False, quick).items()})
    results.update({"fake symbolic " + k: v for k, v in fake(True, quick).items()})
    results["export GPT-2 12 layers (ms)"] = export_time()
    print(json.dumps(results))


main()
