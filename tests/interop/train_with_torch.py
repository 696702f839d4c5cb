"""Trains the same programs with PyTorch, compares the losses with those that Umbra printed, and runs what Umbra saved after training.

usage: train_with_torch.py MODELS OUT LOSSES
"""
import json
import sys

import torch

from safetensors_file import read


def rebuild(tree, tensors):
    kind, value = next(iter(tree.items()))
    if kind == "tensor":
        return tensors[value]
    if kind == "dict":
        return {key: rebuild(item, tensors) for key, item in value.items()}
    return (tuple if kind == "tuple" else list)(rebuild(item, tensors) for item in value)


def loss_of(result):
    return next(leaf for leaf in torch.utils._pytree.tree_leaves(result) if torch.is_tensor(leaf) and leaf.is_floating_point()).square().mean()


def losses_of(folder, name):
    spec, tensors = json.load(open(f"{folder}/{name}/spec.json")), read(f"{folder}/{name}/inputs.safetensors")
    args, kwargs = rebuild(spec["inputs"], tensors)
    module = torch.export.load(f"{folder}/{name}/program.pt2").module()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    losses = []
    for _ in range(5):
        loss = loss_of(module(*args, **kwargs))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, loss_of(module(*args, **kwargs)).item(), (args, kwargs)


def main(folder, out, path):
    good = total = 0
    for line in open(path):
        name, *texts = line.split()
        total += 1
        want, after, (args, kwargs) = losses_of(folder, name)
        trained = loss_of(torch.export.load(f"{out}/{name}.pt2").module()(*args, **kwargs)).item()
        difference = max(abs(a - float(b)) / max(1, abs(a)) for a, b in zip([*want, after], [*texts, trained]))
        good += difference < 1e-4
        print(f"{name:20} loss {want[0]:.6f} to {after:.6f}, largest difference {difference:.1e}" + ("" if difference < 1e-4 else "  FAILED"))
    print(f"trained alike: {good} of {total}")
    return good != total


sys.exit(main(*sys.argv[1:]))
