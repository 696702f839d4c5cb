"""Estimates against what was allocated, over folders of model files.

    python tests/compare/estimates.py FOLDER [--name PART] [--json OUT]

For each file: one call, and one step of training where an output has a gradient, as `umbra.estimate` says it costs, and what its run allocates. A program
without parameters is differentiated with respect to its inputs. A folder holds `program*.pt2`, `spec.json` (the call, as a tree) and `inputs.safetensors`. The
last lines say how many are within 3 %.
"""
import argparse
import glob
import json
import os
import sys

import umbra
from umbra.safetensors import load_file


def rebuild(tree, tensors):
    """The arguments that a tree of spec.json describes."""
    kind, content = next(iter(tree.items()))
    if kind == "tensor":
        return tensors[content]
    if kind in ("tuple", "list"):
        return (tuple if kind == "tuple" else list)(rebuild(part, tensors) for part in content)
    if kind == "dict":
        return {key: rebuild(part, tensors) for key, part in content.items()}
    return None if kind == "none" else content


def floats(tree):
    leaves = umbra.utils._pytree.tree_leaves(tree)
    return [t for t in leaves if isinstance(t, umbra.Tensor) and (t.is_floating_point() or t.is_complex())]


def loss(outputs):
    return sum((t.abs() if t.is_complex() else t).sum() for t in floats(outputs) if t.requires_grad)


def peaks(path, training):
    """(estimated, measured, where the estimate has its peak); None where the program has nothing to train."""
    folder = os.path.dirname(path)
    spec = json.load(open(os.path.join(folder, "spec.json")))
    args, kwargs = rebuild(spec["inputs"], load_file(os.path.join(folder, "inputs.safetensors")))
    model = umbra.export.load(path).module()
    trainable = [p for p in model.parameters() if p.requires_grad]
    if training and not trainable:
        for t in floats((args, kwargs)):
            t.requires_grad_()
    if training and not any(t.requires_grad for t in floats(model(*args, **kwargs))):
        return None
    options = {"training": True, "loss": loss, "optimizer": "adamw" if trainable else None} if training else {}
    estimated = umbra.estimate(model, args, kwargs, **options)
    measured = umbra.estimate(model, args, kwargs, with_data=True, **options)
    return estimated.peak, measured.peak, estimated.peak_operator, measured.peak_operator


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--name", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    umbra.set_num_threads(1)  # what several threads take at once depends on what else the machine does
    results, close, counted = {}, {False: 0, True: 0}, {False: 0, True: 0}
    for path in sorted(glob.glob(os.path.join(options.folder, "*", "program*.pt2"))):
        name = os.path.relpath(path, options.folder).removesuffix(".pt2").removesuffix("/program")
        if options.name not in name:
            continue
        for training in (False, True):
            try:
                result = peaks(path, training)
            except Exception as error:  # noqa: BLE001 - a program that does not run has no cost
                print(f"{name:<36} {'step' if training else 'call'}  {type(error).__name__}: {str(error).splitlines()[0][:120]}")
                continue
            if result is None:
                continue
            counted[training] += 1
            estimated, measured, *where = result
            good = abs(estimated - measured) <= 0.03 * measured
            close[training] += good
            results[f"{name} {'step' if training else 'call'}"] = estimated / measured
            if not good:
                print(f"{name:<36} {'step' if training else 'call'}  estimated {estimated:>10}  measured {measured:>10}  "
                      f"{100 * (estimated / measured - 1):+6.1f} %  {where[0]} / {where[1]}")
            sys.stdout.flush()
    print(f"within 3 %: {close[False]} of {counted[False]} calls, {close[True]} of {counted[True]} steps of training")
    if options.json:
        json.dump(results, open(options.json, "w"), indent=0)


if __name__ == "__main__":
    main()
