"""Reads and writes .safetensors files with nothing but torch, so that what Umbra wrote is not read by what it may share with it."""
import json
import struct

import torch

DTYPES = {"F32": torch.float32, "F64": torch.float64, "I64": torch.int64, "I32": torch.int32, "BOOL": torch.bool, "BF16": torch.bfloat16}


def read(path):
    """The tensors of a file by their names."""
    raw = open(path, "rb").read()
    length, = struct.unpack("<Q", raw[:8])
    tensors = {}
    for name, t in json.loads(raw[8:8 + length]).items():
        if name != "__metadata__":
            start, end = t["data_offsets"]
            data = bytearray(raw[8 + length + start:8 + length + end])
            tensors[name] = torch.frombuffer(data, dtype=DTYPES[t["dtype"]]).reshape(t["shape"])
    return tensors


def write(path, tensors):
    """Writes float32 tensors by their names."""
    header, data = {}, b""
    for name, t in tensors.items():
        raw = t.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)
