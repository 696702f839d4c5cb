"""Modules that Umbra traces and scripts, saved for real torch to load and repeat.

usage: torchscript_umbra.py FOLDER
"""
import os
import sys
import warnings
from typing import Dict, List, Optional, Tuple

import umbra as torch
from umbra import Tensor, nn

warnings.simplefilter("ignore")


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.norm(self.conv(x)) + x)


class Net(nn.Module):
    """Convolutions, a pool and a head."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2)
        self.blocks = nn.Sequential(Block(8), Block(8))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.blocks(self.stem(x)))
        return self.head(x.flatten(1))


class Branches(nn.Module):
    """Control flow, containers, an exception, optional values."""

    def __init__(self):
        super().__init__()
        self.scales: List[float] = [0.5, 2.0, 3.0]
        self.names: Dict[str, int] = {"a": 1, "b": 2}
        self.bias: Optional[Tensor] = None

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        out: List[Tensor] = []
        for i, scale in enumerate(self.scales):
            if bool(x.mean() > 0):
                out.append(x * scale + i)
            else:
                out.append(x - scale)
        total = torch.stack(out).sum(0)
        n = 0
        while n < 3:
            n += 1
            if n == 2:
                continue
            total = total + n
        for key, value in self.names.items():
            total = total * value if key == "b" else total + value
        if self.bias is not None:
            raise ValueError("no bias is expected")
        with torch.no_grad():
            y = total.clamp(min=0)
        return total, y[..., None, :2]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)
        self.norm = nn.LayerNorm(16)

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(b, t, 3, 2, c // 2).permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.transpose(-2, -1) / 8 ** 0.5, dim=-1)
        return x + self.out((weights @ v).transpose(1, 2).reshape(b, t, c))


def fill(module):
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(((torch.arange(p.numel()) % 11 - 5) / (20.0 + i)).reshape(p.shape))
    return module.eval()


def tensors(value):
    return [value] if isinstance(value, Tensor) else [t for v in value for t in tensors(v)]


def main(folder):
    image = (torch.arange(2 * 3 * 16 * 16) % 17 - 8).reshape(2, 3, 16, 16) / 8.0
    text = (torch.arange(2 * 5 * 16) % 13 - 6).reshape(2, 5, 16) / 6.0
    for name, module, x in (("net", Net(), image), ("branches", Branches(), text), ("attention", Attention(), text), ("linear", nn.Linear(16, 3), text),
                            ("mlp", nn.Sequential(nn.Linear(16, 8), nn.GELU(), nn.Dropout(0.1), nn.Linear(8, 2), nn.Softmax(dim=-1)), text)):
        fill(module)
        expected = tensors(module(x))
        for kind in ("traced", "scripted"):
            made = torch.jit.trace(module, x, check_trace=False) if kind == "traced" else torch.jit.script(module)
            base = os.path.join(folder, f"{name}_{kind}")
            torch.jit.save(made, base + ".umbra")
            torch.save({"x": x, **{f"o{i}": t.detach() for i, t in enumerate(expected)}}, base + ".tensors.pth")


if __name__ == "__main__":
    main(sys.argv[1])
