"""Loads a program that torch exported and compares its output."""
import sys

import umbra
from umbra import safetensors


def main(folder):
    tensors = safetensors.load_file(f"{folder}/torch.safetensors")
    got = umbra.export.load(f"{folder}/torch.pt2").module()(tensors["x"])
    difference = (got - tensors["y"]).abs().max().item()
    good = difference < 1e-5
    print(f"torch's program in umbra: largest difference {difference:.2e}  {'ok' if good else 'FAILED'}")
    return 0 if good else 1


if __name__ == "__main__":
    import umbra.export
    sys.exit(main(sys.argv[1]))
