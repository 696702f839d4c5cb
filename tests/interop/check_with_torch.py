"""Loads programs that Umbra exported and compares their outputs; then exports a program of torch's own for the way back."""
import sys

import torch

from safetensors_file import read, write


def main(folder):
    failed = 0
    for name in ("mlp", "cnn", "gpt", "lstm", "halves", "branches"):
        program = torch.export.load(f"{folder}/{name}.pt2")
        tensors = read(f"{folder}/{name}.safetensors")
        for size in (2, 7):
            got, want = program.module()(tensors[f"x{size}"]), tensors[f"y{size}"]
            difference = (got - want).abs().max().item()
            good = difference <= 1e-4 * (1 + want.abs().max().item())
            failed += not good
            print(f"{name:<8} batch {size}: largest difference {difference:.2e}  {'ok' if good else 'FAILED'}")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.norm, self.down = torch.nn.Linear(16, 32), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4)

        def forward(self, x):
            return torch.softmax(self.down(self.norm(torch.nn.functional.gelu(self.up(x)))), -1)

    model, x = Model(), torch.randn(3, 16)
    torch.export.save(torch.export.export(model, (x,), dynamic_shapes={"x": {0: torch.export.Dim("batch", max=64)}}), f"{folder}/torch.pt2")
    other = torch.randn(5, 16)
    write(f"{folder}/torch.safetensors", {"x": other, "y": model(other)})
    return failed


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1]) else 0)
