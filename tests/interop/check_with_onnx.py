"""Runs the ONNX models that onnx_models.py wrote in onnxruntime, for both calls of each model, and compares.

usage: check_with_onnx.py MODELS OUT     (a Python with onnxruntime and numpy)
"""
import json
import os
import struct
import sys

import numpy as np
import onnxruntime

onnxruntime.set_default_logger_severity(4)
DTYPES = {"F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1", "U8": "u1", "BOOL": "?"}


def read(path):
    raw = open(path, "rb").read()
    length, = struct.unpack("<Q", raw[:8])
    out = {}
    for name, t in json.loads(raw[8:8 + length]).items():
        if name != "__metadata__" and t["dtype"] in DTYPES:
            start, end = t["data_offsets"]
            out[name] = np.frombuffer(raw[8 + length + start:8 + length + end], dtype=DTYPES[t["dtype"]]).reshape(t["shape"])
    return out


def leaf(token, tensors):
    kind, _, text = token.partition(":")
    return tensors[text] if kind == "tensor" else np.array(json.loads(text), dtype=np.int64)


def leaves(tree):
    kind, value = next(iter(tree.items()))
    if kind == "dict":
        return [item for part in value.values() for item in leaves(part)]
    if kind in ("tuple", "list"):
        return [item for part in value for item in leaves(part)]
    return [f"{kind}:{value}"]


def check(models, out, name):
    note, spec = json.load(open(f"{out}/{name}.json")), json.load(open(f"{models}/{name}/spec.json"))
    session = onnxruntime.InferenceSession(f"{out}/{name}.onnx", providers=["CPUExecutionProvider"])
    first, calls = leaves(spec["inputs"]), 0
    for call in ("", "2") if "inputs2" in spec else ("",):
        tensors, expected = read(f"{models}/{name}/inputs{call}.safetensors"), read(f"{models}/{name}/expected{call}.safetensors")
        here = dict(zip(first, leaves(spec["inputs" + call])))  # numbers differ between the calls, names of tensors do not
        given = {node.name: leaf(here[token] if not token.startswith("tensor") else token, tensors) for node, token in zip(session.get_inputs(), note["inputs"])}
        for got, token in zip(session.run(None, given), note["outputs"]):
            if not token.startswith("tensor"):
                continue
            want = expected[token[7:]]
            assert got.shape == want.shape and got.dtype == want.dtype, f"{token}: {got.dtype}{got.shape}, expected {want.dtype}{want.shape}"
            tolerance = max(note["tolerance"], 1e-4)
            assert np.allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True), f"{token}: largest difference {np.abs(got - want).max()}"
        calls += 1
    return calls


def main(models, out):
    good, names = 0, sorted(file[:-5] for file in os.listdir(out) if file.endswith(".onnx"))
    for name in names:
        try:
            check(models, out, name)
            good += 1
        except Exception as error:  # noqa: BLE001 - counted and named
            print(f"  {name}: {type(error).__name__}: {str(error).splitlines()[0][:300]}")
    print(f"equal in onnxruntime, both calls: {good} of {len(names)}")


main(*sys.argv[1:])
