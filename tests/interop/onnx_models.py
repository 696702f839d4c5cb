"""Writes the programs of a folder of models as ONNX, each with a note of what its inputs and outputs are called in the model's files.

usage: onnx_models.py MODELS OUT [NAME]
"""
import json
import os
import sys

import umbra
from umbra.utils import _pytree as pytree


def tokens(tree):
    """A tree of inputs or outputs as spec.json has it, with texts for leaves: "tensor:i0", "int:3"."""
    kind, value = next(iter(tree.items()))
    if kind == "dict":
        return {key: tokens(item) for key, item in value.items()}
    if kind in ("tuple", "list"):
        return (tuple if kind == "tuple" else list)(map(tokens, value))
    return f"{kind}:{value}"


def write(folder, spec, target):
    program = umbra.export.load(os.path.join(folder, "program.pt2"))
    umbra.onnx.export(program, f=target + ".onnx")
    signature = program.graph_signature
    fixed = umbra.export.graph_signature.ConstantArgument
    args, kwargs = tokens(spec["inputs"])
    inputs = [token for token, item in zip(program._flatten_inputs(args, kwargs), [item for item in signature.input_specs if item.kind is umbra.export.graph_signature.InputKind.USER_INPUT]) if not isinstance(item.arg, fixed)]
    outputs = [token for token, item in zip(pytree.tree_leaves(tokens(spec["outputs"])), signature.output_specs) if not isinstance(item.arg, fixed)]
    json.dump({"inputs": inputs, "outputs": outputs, "tolerance": spec["tolerance"]}, open(target + ".json", "w"))


def main(models, out, wanted=""):
    written, refused = 0, []
    for name in sorted(os.listdir(models)):
        path = os.path.join(models, name, "spec.json")
        if not os.path.exists(path) or wanted not in name:
            continue
        spec = json.load(open(path))
        if "inputs" not in spec or "program.pt2" not in spec["files"]:
            continue
        try:
            write(os.path.join(models, name), spec, os.path.join(out, name))
            written += 1
        except Exception as error:  # noqa: BLE001 - counted and named
            refused.append(f"  {name}: {type(error).__name__}: {str(error).splitlines()[0][:160]}")
    print("\n".join(refused + [f"written as ONNX: {written} of {written + len(refused)}"]))


main(*sys.argv[1:])
