"""The demonstration in Python: the same steps as examples/cpp/demo.cpp, through `import umbra as torch`."""
import os
import tempfile
import time

import umbra as torch
import umbra.export
from umbra import nn
from umbra._subclasses.fake_tensor import FakeTensorMode
from umbra.nn import functional as F


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
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, vocabulary=64, length=32, width=64, heads=4, layers=2):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, x):
        h = self.tokens(x) + self.positions(torch.arange(x.shape[1]))
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h))


def timed(what, f):
    start = time.perf_counter()
    result = f()
    print(f"{(time.perf_counter() - start) * 1e3:9.2f} ms  {what}")
    return result


def main():
    torch.manual_seed(0)
    model = Transformer()
    x = torch.randint(0, 64, (4, 32))
    timed("run", lambda: model(x))

    with FakeTensorMode() as mode:
        weight = torch.empty(1_000_000, 1_000_000, device="cuda")
        product = timed("a product of matrices of a million by a million, without data", lambda: weight @ weight)
        print(f"{'':14}{product.shape}, {product.dtype}, {product.device}")

    batch = umbra.export.Dim("batch", max=4096)
    program = timed("captured with a dynamic batch",
                    lambda: umbra.export.export(model, (x,), dynamic_shapes={"x": {0: batch}}, strict=False))
    for line in str(program).splitlines()[3:9]:
        print(f"{'':14}{line.strip()[:110]}")

    path = os.path.join(tempfile.mkdtemp(), "transformer.pt2")
    timed("saved: torch.export.load reads the file", lambda: umbra.export.save(program, path))
    loaded = timed("loaded", lambda: umbra.export.load(path)).module()
    other = torch.randint(0, 64, (9, 32))
    difference = (timed("run at another batch size", lambda: loaded(other)) - model(other)).abs().max().item()
    print(f"{'':14}largest difference to the model itself: {difference:.1e}")

    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []

    def train():
        for _ in range(40):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[:, :-1]).reshape(-1, 64), x[:, 1:].reshape(-1))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    timed("trained for 40 steps", train)
    print(f"{'':14}loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    assert losses[-1] < losses[0] and difference < 1e-4


if __name__ == "__main__":
    main()
